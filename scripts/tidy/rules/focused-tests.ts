/** A test that is not run protects nothing. Skipping on a condition is fine when it says why. */
import { type Node, parse, walk } from '../modules.ts';
import { type Finding, isTest, lineAt, type Tree } from '../tree.ts';

const RUNNERS = new Set(['it', 'test', 'describe', 'suite', 'bench']);
const SWITCHES = new Set(['only', 'todo', 'skip']);

export function focusedTests(tree: Tree): Finding[] {
  return tree.paths.filter(isTest).flatMap((path) => {
    const findings: Finding[] = [];
    walk(parse(tree, path).program, (node) => {
      for (const [used, advice] of switches(node)) {
        findings.push({
          path,
          line: lineAt(tree.read(path), node.start),
          rule: 'focused-tests',
          message: `${used}: ${advice}`,
        });
      }
    });
    return findings;
  });
}

function switches(node: Node): [string, string][] {
  if (node.type === 'MemberExpression') {
    const property = identifier(node['property']);
    if (!SWITCHES.has(property) || !RUNNERS.has(rootOf(node['object']))) return [];
    return [
      [`.${property}`, 'run the test, or skip it on a condition (skipIf) named in its title'],
    ];
  }
  if (node.type !== 'CallExpression') return [];
  const callee = node['callee'] as Node;
  const [title, options] = node['arguments'] as Node[];
  if (identifier(callee['property']) === 'skip' && !title && !RUNNERS.has(rootOf(callee))) {
    return [['.skip()', 'say why, in its argument']];
  }
  if (!RUNNERS.has(rootOf(callee)) || options?.type !== 'ObjectExpression') return [];
  return (options['properties'] as Node[])
    .map((property) => identifier(property['key']))
    .filter((key) => SWITCHES.has(key))
    .map((key) => [`{ ${key} }`, 'run the test']);
}

/** `it` of `it.concurrent.each`. */
function rootOf(node: unknown): string {
  const { type, object, callee } = node as Partial<Node>;
  if (type === 'MemberExpression') return rootOf(object);
  return type === 'CallExpression' ? rootOf(callee) : identifier(node);
}

function identifier(node: unknown): string {
  const { type, name } = (node ?? {}) as { type?: string; name?: string };
  return type === 'Identifier' && name !== undefined ? name : '';
}
