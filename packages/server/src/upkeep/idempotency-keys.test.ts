import pino from 'pino';
import { type IdempotencyStore, memoryIdempotency } from 'redrive';
import { virtualClock } from 'redrive/testing';
import { describeService, freshDatabase } from '@redrive/services/vitest';
import { expect, it } from 'vitest';
import { settings } from '../http/harness.test.ts';
import { idempotencyOf, KeyPruner } from './idempotency-keys.ts';
import { migrateStore } from './schema.ts';

function stage(change: Partial<IdempotencyStore> = {}) {
  const clock = virtualClock();
  const calls: string[] = [];
  const logged: string[] = [];
  const left = [1000, 1000, 3, 0, 0];
  const store: IdempotencyStore = {
    ...memoryIdempotency(),
    prune: (limit) => {
      calls.push(`prune ${limit}`);
      return left.shift() ?? 0;
    },
    close: () => void calls.push('close'),
    ...change,
  };
  const log = pino({ level: 'warn' }, { write: (line: string) => void logged.push(line) });
  return { pruner: new KeyPruner({ store, clock, log }), clock, calls, logged };
}

it('deletes what has expired in small parts, at the start and every ten minutes', async () => {
  const { pruner, clock, calls } = stage();
  pruner.start();
  await clock.advance(599_999);
  expect(calls).toEqual(['prune 1000', 'prune 1000', 'prune 1000']);
  await clock.advance(1);
  expect(calls).toHaveLength(4);
  await pruner.stop();
  await clock.advance(600_000);
  expect(calls.slice(4)).toEqual(['close']);
});

it('tries again after a failure, and says so', async () => {
  let asked = 0;
  const { pruner, clock, logged } = stage({
    prune: () => {
      asked += 1;
      throw new Error('the store is away');
    },
  });
  pruner.start();
  await clock.advance(600_000);
  expect(asked).toBe(2);
  expect(logged).toHaveLength(2);
  expect(logged[0]).toContain('the store is away');
  await pruner.stop();
});

it('closes the store after the last part', async () => {
  const part = Promise.withResolvers<number>();
  const { pruner, calls } = stage({ prune: () => part.promise });
  pruner.start();
  const stopped = pruner.stop();
  expect(calls).toEqual([]);
  part.resolve(0);
  await stopped;
  expect(calls).toEqual(['close']);
});

describeService('PostgreSQL 18', () => {
  it('keeps the keys of all instances in the database, whose table `redrive migrate` makes', async () => {
    await using database = await freshDatabase(18);
    const own = { ...settings, databaseUrl: database.url };
    await migrateStore(own);
    const [one, other] = [await idempotencyOf(own), await idempotencyOf(own)];
    const claim = { key: 'k', fingerprint: '', leaseMs: 1000, takeOver: true };
    expect(await one.claim({ ...claim, owner: 'a' })).toMatchObject({ state: 'claimed' });
    expect(await other.claim({ ...claim, owner: 'b' })).toMatchObject({ state: 'held' });
    await Promise.all([one.close?.(), other.close?.()]);
  });
});
