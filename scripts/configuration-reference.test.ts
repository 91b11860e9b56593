import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readSettings } from '../packages/server/src/settings/read.ts';
import { variables } from '../packages/server/src/settings/variables.ts';
import { configurationTables, dotenvExample, otherTable } from './configuration-reference.ts';

const root = new URL('../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), 'utf8');

describe('what is derived from the table of variables', () => {
  it('is up to date: the reference page and .env.example', () => {
    const hint = 'run `npm run generate`';
    expect(read('docs/reference/configuration.md'), hint).toContain(configurationTables());
    expect(read('docs/reference/configuration.md'), hint).toContain(otherTable());
    expect(read('packages/server/.env.example'), hint).toBe(dotenvExample());
  });

  it('names every variable', () => {
    for (const { env } of Object.values(variables)) {
      expect(configurationTables()).toContain(`| \`${env}\` |`);
      expect(dotenvExample()).toContain(`\n#${env}=`);
    }
  });

  it('is an example that works: uncommented, but for secrets and files of a machine', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'redrive-example-'));
    try {
      const text = dotenvExample().replaceAll(/^#(?=[A-Z_]+=)/gm, '');
      writeFileSync(
        join(folder, '.env'),
        text.replaceAll(
          /^(REDRIVE_TOKENS|CYODA_TOKEN|KAFKA_(TLS_\w+_FILE|SASL_\w+|USERNAME|PASSWORD))=.*$/gm,
          '',
        ),
      );
      const reading = await readSettings({ env: {}, cwd: folder });
      expect(reading).toMatchObject({ ok: true, warnings: [] });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
