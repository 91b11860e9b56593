import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stickySuite } from '../../testing/sticky-suite.ts';
import { sqliteSticky } from './index.ts';

let folder: string;
let files = 0;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-sticky-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const fresh = () => join(folder, 'made', `${files++}.db`);

describe('sticky sessions in SQLite', () => {
  const cases = stickySuite({
    shared: true,
    counting: true,
    async open(now) {
      const file = fresh();
      const [store, twin] = [sqliteSticky(file, { now }), sqliteSticky(file, { now })];
      const count = async () => {
        const db = new DatabaseSync(file);
        const { n } = db.prepare('SELECT count(*) AS n FROM redrive_sticky').get()!;
        db.close();
        return n as number;
      };
      const close = async () => {
        await store.close();
        await twin.close();
      };
      return { store, twin, count, closeStore: () => store.close(), close };
    },
  });
  for (const { name, run: assertCase } of cases) test(`${name}`, () => assertCase());

  test('survive a restart', async () => {
    const file = fresh();
    const session = { provider: 'a', expires_at_ms: Date.now() + 60_000 };
    const before = sqliteSticky(file);
    await before.set('k', session);
    await before.close();
    const after = sqliteSticky(file);
    expect(await after.get('k')).toEqual(session);
    await after.close();
  });

  test('a file that is no database is said to be damaged, and nothing is opened before its first use', async () => {
    const file = join(folder, 'broken.db');
    writeFileSync(file, 'this is no database at all, and long enough to be looked at');
    const store = sqliteSticky(file);
    expect(() => store.get('k')).toThrow(expect.objectContaining({ code: 'STORE_CORRUPT' }));
    await store.close();
  });

  test('keep no key as it is', async () => {
    const file = fresh();
    const store = sqliteSticky(file);
    await store.set('alice@example.com', { provider: 'a', expires_at_ms: Date.now() + 60_000 });
    const db = new DatabaseSync(file);
    expect(JSON.stringify(db.prepare('SELECT * FROM redrive_sticky').all())).not.toContain('alice');
    db.close();
    await store.close();
  });
});
