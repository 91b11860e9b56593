import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readSettings } from '../settings/read.ts';
import { examineEverything } from './doctor.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-doctor-routing-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** What the doctor says about routing, as lines. */
async function findings(env: Record<string, string> = { ROUTING_DIR: './routing' }) {
  const reading = await readSettings({ env, cwd: folder });
  const all = await examineEverything({
    reading,
    serverUrl: 'http://127.0.0.1:1',
    askServer: () => Promise.resolve({ type: 'away', why: 'test' }),
  });
  const own = all.filter(({ about }) => about === 'routing');
  return own.map(({ level, what }) => `${level} ${what}`);
}

function write(name: string, text: string): void {
  mkdirSync(join(folder, 'routing'), { recursive: true });
  writeFileSync(join(folder, 'routing', name), text);
}

const good = '{"version": "1.0", "weights": {"a": 100}}';

describe('the doctor', () => {
  it('says nothing of routing where there is none', async () => {
    expect(await findings({})).toEqual([]);
  });

  it('finds bad policies, and counts the good ones', async () => {
    write('good.json', good);
    write('bad.json', '{"version": 1}');
    write('broken.json', '{');
    write('providers.json', 'of the gateway');
    expect(await findings()).toEqual([
      expect.stringMatching(/^broken bad\.json: INVALID_POLICY: .* version: 1 is not a text/),
      expect.stringMatching(/^broken broken\.json: INVALID_JSON: /),
      `fine 1 good file in ${join(folder, 'routing')}.`,
    ]);
  });

  it('finds that the folder is missing, or empty', async () => {
    expect(await findings()).toEqual([expect.stringContaining('cannot be read (ENOENT)')]);
    mkdirSync(join(folder, 'routing'));
    expect(await findings()).toEqual([expect.stringMatching(/^warning .* has no policies/)]);
  });

  it('shows a few of very many faults', async () => {
    for (let i = 0; i < 30; i++) write(`p${i}.json`, '{');
    const found = await findings();
    expect(found).toHaveLength(21);
    expect(found.at(-1)).toBe('broken 10 more policies have faults.');
  });
});
