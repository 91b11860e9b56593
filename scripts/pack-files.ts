/** What a package publishes of its build: the files that its entries reach, and nothing else. */
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

/** `from './x.js'`, `import './x.js'`, `import('./x.js')`, in code and in declarations. */
const IMPORTS = /(?:\bfrom|\bimport)\s*\(?\s*['"](\.{1,2}\/[^'"]+)['"]/g;

/** Stems of files in a build: `index`, `cli/main`. */
export interface Entries {
  exported: readonly string[];
  ran: readonly string[];
}

/** Deletes what no entry reaches. Only what is exported has types that anybody reads. */
export function prune(folder: string, { exported, ran }: Entries): void {
  const kept = new Set([
    ...reached(folder, [...exported, ...ran], '.js'),
    ...reached(folder, exported, '.d.ts'),
  ]);
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (/\.(?:js|d\.ts|map)$/.test(path) && !kept.has(normalize(path))) rmSync(join(folder, path));
  }
}

/** The files of this kind that the entries lead to. */
export function reached(
  folder: string,
  entries: readonly string[],
  kind: '.js' | '.d.ts',
): Set<string> {
  const found = new Set<string>();
  const open = entries.map((stem) => normalize(stem + kind));
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (found.has(path)) continue;
    if (!existsSync(join(folder, path))) throw new Error(`${path} is imported and was not built`);
    found.add(path);
    for (const [, specifier = ''] of readFileSync(join(folder, path), 'utf8').matchAll(IMPORTS)) {
      open.push(join(dirname(path), specifier.replace(/\.[jt]s$/, kind)));
    }
  }
  return found;
}
