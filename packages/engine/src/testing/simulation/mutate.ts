import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Mutant } from './mutants.ts';
import type { simulate } from './simulate.ts';

const source = fileURLToPath(new URL('../../', import.meta.url));
// Inside the package, so that what is imported by name is found.
const copies = fileURLToPath(new URL('../../../.mutants/', import.meta.url));

/** The simulation of an engine that is broken in this way: a copy of the source with that one change. */
export async function broken(mutant: Mutant): Promise<typeof simulate> {
  mkdirSync(copies, { recursive: true });
  // One of its own: several runs may be at it at once.
  const copy = mkdtempSync(join(copies, `${mutant.name.replaceAll(' ', '-')}-`));
  try {
    cpSync(source, copy, { recursive: true, filter: isNeeded });
    breakIt(mutant, join(copy, mutant.file));
    const { href } = pathToFileURL(join(copy, 'testing/simulation/simulate.ts'));
    const module = (await import(/* @vite-ignore */ href)) as { simulate: typeof simulate };
    return module.simulate;
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

function isNeeded(path: string): boolean {
  return !path.endsWith('.test.ts') && !/[/\\](?:sqlite|postgres|http)$/.test(path);
}

function breakIt({ name, from, to, file }: Mutant, path: string): void {
  const text = readFileSync(path, 'utf8');
  if (text.split(from).length !== 2) {
    throw new Error(`${file} does not have exactly one '${from}': mend the mutant '${name}'.`);
  }
  writeFileSync(
    path,
    text.replace(from, () => to),
  );
}
