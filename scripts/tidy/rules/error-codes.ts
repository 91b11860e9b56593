/**
 * Every code a user can meet is listed once, in the `errorCodes` of its package's `errors.ts`, has
 * a row in the reference, and is used. The reference has no row for a code that does not exist.
 */
import { type Node, parse, walk } from '../modules.ts';
import { type Finding, isPublished, lineAt, type Tree } from '../tree.ts';

const DOCS = 'docs/reference/errors.md';
const RULE = 'error-codes';

interface Place {
  path: string;
  line: number;
}

export function errorCodes(tree: Tree): Finding[] {
  const sources = tree.paths.filter(isPublished);
  const listed = new Map<string, Place>(
    sources
      .filter((path) => /^packages\/[^/]+\/src\/errors\.ts$/.test(path))
      .flatMap((path) => listedCodes(tree, path)),
  );
  const documented = new Map(documentedCodes(tree));
  const used = new Set(sources.flatMap((path) => usedTexts(tree, path)));

  const findings: Finding[] = [];
  for (const [code, place] of listed) {
    if (!documented.has(code)) {
      const message = `${code} is not documented: add a row | \`${code}\` | ... | to ${DOCS}`;
      findings.push({ ...place, rule: RULE, message });
    }
    if (!used.has(code)) {
      findings.push({
        ...place,
        rule: RULE,
        message: `no code uses ${code}: drop it, or throw it`,
      });
    }
  }
  for (const [code, place] of documented) {
    if (listed.has(code)) continue;
    const message = `no errorCodes lists ${code}: drop the row, or add the code to errors.ts`;
    findings.push({ ...place, rule: RULE, message });
  }
  return findings;
}

function listedCodes(tree: Tree, path: string): [string, Place][] {
  const codes: [string, Place][] = [];
  eachCode(parse(tree, path).program, (code, node) => {
    codes.push([code, { path, line: lineAt(tree.read(path), node.start) }]);
  });
  return codes;
}

function documentedCodes(tree: Tree): [string, Place][] {
  if (!tree.has(DOCS)) return [];
  return tree
    .read(DOCS)
    .split('\n')
    .flatMap((text, index): [string, Place][] => {
      const code = /^\|\s*`([A-Z][A-Z0-9_]*)`\s*\|/.exec(text)?.[1];
      return code ? [[code, { path: DOCS, line: index + 1 }]] : [];
    });
}

/** Every text in the code, but not the keys of the list itself. */
function usedTexts(tree: Tree, path: string): string[] {
  const texts: string[] = [];
  walk(parse(tree, path).program, (node) => {
    if (node.type === 'Literal' && typeof node['value'] === 'string') texts.push(node['value']);
    // A code may also be the key of a table: `CIRCUIT_OPEN: 'circuit-open'`.
    if (node.type === 'Property' && !path.endsWith('/errors.ts')) texts.push(keyOf(node));
  });
  return texts;
}

function eachCode(program: unknown, visit: (code: string, node: Node) => void): void {
  walk(program, (node) => {
    if (node.type !== 'VariableDeclarator') return;
    if ((node['id'] as { name?: string }).name !== 'errorCodes') return;
    let value = node['init'] as Node;
    // `as const` and `satisfies ...` stand around the object itself.
    while (value.type === 'TSAsExpression' || value.type === 'TSSatisfiesExpression') {
      value = value['expression'] as Node;
    }
    for (const property of (value['properties'] ?? []) as Node[]) visit(keyOf(property), property);
  });
}

function keyOf(property: Node): string {
  const key = property['key'] as { name?: string; value?: unknown } | undefined;
  return key?.name ?? String(key?.value);
}
