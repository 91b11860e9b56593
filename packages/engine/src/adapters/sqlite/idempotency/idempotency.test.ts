import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type IdempotencyStore, idempotent, memoryIdempotency } from 'redrive';
import { describe, expect, test } from 'vitest';
import { systemClock } from 'redrive/internal';
import { idempotencySuite, type OpenedIdempotency } from '../../../testing/index.ts';
import { sqlite, sqliteIdempotency } from '../index.ts';

async function open(): Promise<OpenedIdempotency & { file: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-keys-'));
  const file = join(folder, 'keys.db');
  const stores: IdempotencyStore[] = [];
  const another = async () => {
    const store = sqliteIdempotency(file);
    stores.push(store);
    return store;
  };
  const store = await another();
  return {
    file,
    store,
    another,
    elsewhere: {
      module: new URL('../index.ts', import.meta.url).href,
      create: `adapter.sqliteIdempotency(${JSON.stringify(file)})`,
    },
    async close() {
      for (const one of stores) await one.close?.();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

describe('the SQLite store', () => {
  for (const { name, run: assertCase } of idempotencySuite({ open, shared: true })) {
    test(`${name}`, () => assertCase());
  }

  test('gives larger tokens after a key was let go or cleared, within one ms and after the clock went back', async () => {
    const { file, close } = await open();
    let now = Date.UTC(2025, 0, 1);
    const store = sqliteIdempotency(file, { clock: { ...systemClock, now: () => now } });
    const tokens: number[] = [];
    const claim = async (owner: string) => {
      const request = { key: 'k', owner, fingerprint: '', leaseMs: 1000, takeOver: true };
      const answer = await store.claim(request);
      if (answer.state === 'claimed') tokens.push(answer.fencingToken);
    };
    await claim('a');
    await store.release('k', 'a');
    await claim('b');
    await store.release('k');
    now -= 3_600_000;
    await claim('c');
    expect(tokens).toHaveLength(3);
    expect(tokens).toEqual([...new Set(tokens)].toSorted((a, b) => a - b));
    await store.close?.();
    await close();
  });

  test('lives beside an engine in one file', async () => {
    const { file, store, close } = await open();
    const engine = sqlite(file);
    await engine.open();
    await idempotent(store, 'k', () => 1);
    expect(await idempotent(store, 'k', () => 2)).toBe(1);
    await engine.close();
    await close();
  });

  test('keeps results over a restart', async () => {
    const { file, store, close } = await open();
    await idempotent(store, 'k', () => 1);
    await store.close?.();
    const again = sqliteIdempotency(file);
    expect(await idempotent(again, 'k', () => 2)).toBe(1);
    await again.close?.();
    await close();
  });

  test('refuses a table that a newer program made', async () => {
    const { file, store, close } = await open();
    await store.read('k');
    await store.close?.();
    const db = new DatabaseSync(file);
    db.exec('UPDATE redrive_idempotency_schema SET version = 9, oldest = 9');
    db.close();
    await expect(sqliteIdempotency(file).read('k')).rejects.toMatchObject({
      code: 'SCHEMA_TOO_NEW',
    });
    await close();
  });

  test('prunes by an index', async () => {
    const { file, store, close } = await open();
    await store.read('k');
    await store.close?.();
    const db = new DatabaseSync(file);
    const plan = db
      .prepare(
        'EXPLAIN QUERY PLAN SELECT rowid FROM redrive_idempotency WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ?',
      )
      .all(1, 1);
    expect(JSON.stringify(plan)).toContain('redrive_idempotency_expiry');
    db.close();
    await close();
  });
});

describe('the memory store', () => {
  const inMemory = async () => ({ store: memoryIdempotency(), close: async () => undefined });
  for (const { name, skip, run: assertCase } of idempotencySuite({ open: inMemory })) {
    test.skipIf(skip !== undefined)(`${name}`, () => assertCase());
  }
});
