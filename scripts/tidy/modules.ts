/** What each code file imports and exports, and which file or package an import means. */
import { posix } from 'node:path';
import { parseSync } from 'rolldown/utils';
import { lineAt, type Tree } from './tree.ts';

export interface Import {
  specifier: string;
  line: number;
  /** The names taken; `*` for all of them. */
  names: string[];
}

export interface Export {
  name: string;
  line: number;
}

/** `export { name } from` and `export * from` (then both names are `*`). */
export interface ReExport {
  specifier: string;
  line: number;
  taken: string;
  given: string;
}

export interface Module {
  imports: Import[];
  exports: Export[];
  reExports: ReExport[];
}

type Program = ReturnType<typeof parseSync>['program'];

export function parse(tree: Tree, path: string): ReturnType<typeof parseSync> {
  return parseSync(path, tree.read(path));
}

export function readModule(tree: Tree, path: string): Module {
  const text = tree.read(path);
  const { module, program } = parse(tree, path);
  const imports: Import[] = module.staticImports.map((statement) => ({
    specifier: statement.moduleRequest.value,
    line: lineAt(text, statement.start),
    names: statement.entries.map((entry) =>
      entry.importName.kind === 'Default' ? 'default' : (entry.importName.name ?? '*'),
    ),
  }));
  for (const { start, specifier } of dynamicImports(program)) {
    imports.push({ specifier, line: lineAt(text, start), names: ['*'] });
  }
  const exports: Export[] = [];
  const reExports: ReExport[] = [];
  for (const entry of module.staticExports.flatMap((statement) => statement.entries)) {
    const line = lineAt(text, entry.start);
    const given = entry.exportName.kind === 'Default' ? 'default' : (entry.exportName.name ?? '*');
    if (entry.moduleRequest) {
      const taken = entry.importName.name ?? '*';
      reExports.push({ specifier: entry.moduleRequest.value, line, taken, given });
    }
    if (given !== '*') exports.push({ name: given, line });
  }
  return { imports, exports, reExports };
}

/** `import('x')` as an expression and as a type: neither is among the static imports. */
function dynamicImports(program: Program): { start: number; specifier: string }[] {
  const found: { start: number; specifier: string }[] = [];
  walk(program, (node) => {
    if (node.type !== 'ImportExpression' && node.type !== 'TSImportType') return;
    const source = node['source'] as { value?: unknown };
    if (typeof source.value === 'string')
      found.push({ start: node.start, specifier: source.value });
  });
  return found;
}

export interface Node {
  type: string;
  start: number;
  [field: string]: unknown;
}

/** Visits every node of a syntax tree, parents first. */
export function walk(node: unknown, visit: (node: Node) => void): void {
  if (typeof node !== 'object' || node === null) return;
  if ('type' in node && typeof node.type === 'string') visit(node as Node);
  for (const child of Object.values(node)) walk(child, visit);
}

export interface Package {
  /** Its folder: `packages/core`. */
  folder: string;
  name: string;
  dependencies: Set<string>;
  /** Import path (`redrive/testing`) -> the file it names. */
  entries: Map<string, string>;
}

export function readPackages(tree: Tree): Package[] {
  return tree.paths
    .filter((path) => /^packages\/[^/]+\/package\.json$/.test(path))
    .map((path) => {
      const folder = posix.dirname(path);
      const manifest = JSON.parse(tree.read(path)) as {
        name: string;
        exports?: Record<string, unknown>;
        bin?: Record<string, string>;
        dependencies?: object;
        peerDependencies?: object;
      };
      const entries = new Map<string, string>();
      for (const [key, target] of Object.entries({ ...manifest.exports, ...manifest.bin })) {
        if (typeof target !== 'string') continue;
        addEntry(tree, entries, posix.join(manifest.name, key), posix.join(folder, target));
      }
      return {
        folder,
        name: manifest.name,
        dependencies: new Set(
          Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }),
        ),
        entries,
      };
    });
}

function addEntry(tree: Tree, entries: Map<string, string>, name: string, target: string): void {
  const [head = '', tail] = target.split('*');
  if (tail === undefined) {
    entries.set(name, target);
    return;
  }
  for (const path of tree.paths) {
    if (path.startsWith(head) && path.endsWith(tail)) {
      entries.set(name.replace('*', path.slice(head.length, path.length - tail.length)), path);
    }
  }
}

/** The file of this repository that an import means; nothing for a dependency or a built-in. */
export function resolve(packages: Package[], from: string, specifier: string): string | undefined {
  if (specifier.startsWith('.')) return posix.join(posix.dirname(from), specifier);
  return packages.map((one) => one.entries.get(specifier)).find((target) => target !== undefined);
}
