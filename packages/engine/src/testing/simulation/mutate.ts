import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Mutant } from './mutants.ts';
import type { simulate } from './simulate.ts';

const source = fileURLToPath(new URL('../../', import.meta.url));
const copies = fileURLToPath(new URL('../../../.mutants/', import.meta.url));

/** The simulation of an engine that is broken in this way: a copy of the source with that one change. */
export async function broken(mutant: Mutant): Promise<typeof simulate> {
  const copy = `${copies}${mutant.name.replaceAll(' ', '-')}/`;
  rmSync(copy, { recursive: true, force: true });
  cpSync(source, copy, { recursive: true, filter: (path) => !path.endsWith('.test.ts') });
  const path = copy + mutant.file;
  const text = readFileSync(path, 'utf8');
  if (text.split(mutant.from).length !== 2) {
    throw new Error(
      `${mutant.file} does not have exactly one '${mutant.from}': mend the mutant '${mutant.name}'.`,
    );
  }
  writeFileSync(
    path,
    text.replace(mutant.from, () => mutant.to),
  );
  const { href } = pathToFileURL(`${copy}testing/simulation/simulate.ts`);
  const module = (await import(/* @vite-ignore */ href)) as { simulate: typeof simulate };
  return module.simulate;
}
