import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readArguments } from '../packages/server/src/cli/command.ts';
import { commandsOf, firstWords } from '../packages/server/src/cli/directory.ts';
import { cliReference } from './cli-reference.ts';

describe('the reference of the command line', () => {
  it('is what the commands say: otherwise run `npm run generate`', async () => {
    const page = readFileSync(join(import.meta.dirname, '../docs/reference/cli.md'), 'utf8');
    expect(page).toBe(await cliReference());
  });

  it('has every command, each with an example that is understood', async () => {
    const page = await cliReference();
    for (const word of firstWords) {
      for (const command of (await commandsOf(word)) ?? []) {
        expect(page).toContain(`### redrive ${command.name}\n`);
        expect(command.examples.length).toBeGreaterThan(0);
        for (const example of command.examples) {
          const line = example.split(' # ')[0]!.replace(/ \|.*$| > .*$/, '');
          const at = line.indexOf(`redrive ${command.name}`);
          if (at === -1) continue;
          const words = shellWords(line.slice(at + `redrive ${command.name}`.length));
          expect(readArguments(command, words), example).toMatchObject({ type: 'run' });
        }
      }
    }
  });
});

/** As a shell would take a line apart, as far as the examples need it. */
function shellWords(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, single, double, plain]) => single ?? double ?? plain ?? '',
  );
}
