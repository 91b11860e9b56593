import { describe, expect, it } from 'vitest';
import type { AuditEntry } from '../audit/audit-events.ts';
import { virtualClock } from '../virtual-clock.ts';
import { idempotent } from './idempotent.ts';
import { memoryIdempotency } from './memory.ts';
import { checkIdempotency, clearIdempotency, recordResult } from './results.ts';
import type { IdempotencyStore } from './store.ts';

const NOW = Date.UTC(2025, 0, 1);

function stage(changes: Partial<IdempotencyStore> = {}) {
  const clock = virtualClock(NOW);
  const store = { ...memoryIdempotency({ clock }), ...changes };
  const events: AuditEntry[] = [];
  const options = { clock, audit: (entry: AuditEntry) => void events.push(entry) };
  const hold = () =>
    store.claim({ key: 'k', owner: 'x', fingerprint: 'f', leaseMs: 1000, takeOver: true });
  return { clock, store, options, hold, actions: () => events.map(({ action }) => action), events };
}

describe('checkIdempotency', () => {
  it('finds nothing, and says so', async () => {
    const { store, options, actions } = stage();
    expect(await checkIdempotency(store, 'k', options)).toEqual({ state: 'absent' });
    expect(await checkIdempotency(store, 'k')).toEqual({ state: 'absent' });
    expect(actions()).toEqual([]);
  });

  it('finds a result, null and undefined included, with its metadata', async () => {
    const { store, options, actions } = stage();
    const results = { a: { n: 1 }, b: null, c: undefined };
    for (const [key, result] of Object.entries(results)) {
      expect(await recordResult(store, key, result, { ...options, metadata: [key] })).toBe(true);
      expect(await checkIdempotency(store, key, options)).toEqual({
        state: 'done',
        result,
        isStored: true,
        metadata: [key],
        recordedAtMs: NOW,
      });
    }
    expect(actions()).toEqual(['record', 'hit', 'record', 'hit', 'record', 'hit']);
  });

  it('finds work that runs, that was abandoned, that failed, and whose result was not stored', async () => {
    const { store, options, hold, clock } = stage();
    await hold();
    expect(await checkIdempotency(store, 'k', options)).toEqual({
      state: 'running',
      remainingMs: 1000,
    });
    await clock.advance(1000);
    expect(await checkIdempotency(store, 'k', options)).toEqual({ state: 'abandoned' });

    const failed = idempotent(store, 'f', () => Promise.reject(new Error('no')), {
      storeFailures: true,
    });
    await expect(failed).rejects.toThrow('no');
    expect(await checkIdempotency(store, 'f', options)).toMatchObject({
      state: 'failed',
      failure: { name: 'Error', message: 'no' },
    });

    await expect(idempotent(store, 'u', () => 1n)).rejects.toThrow('BigInt');
    expect(await checkIdempotency(store, 'u', options)).toMatchObject({
      state: 'done',
      result: undefined,
      isStored: false,
    });
  });
});

describe('recordResult', () => {
  it('leaves a result that is there', async () => {
    const { store, options } = stage();
    await recordResult(store, 'k', 1);
    expect(await recordResult(store, 'k', 2, options)).toBe(false);
    expect(await idempotent(store, 'k', () => 3)).toBe(1);
  });

  it('is a conflict while somebody works on the key', async () => {
    const { store, options, hold, actions } = stage();
    await hold();
    await expect(recordResult(store, 'k', 1, options)).rejects.toMatchObject({
      code: 'IDEMPOTENCY_CONFLICT',
    });
    expect(actions()).toEqual(['conflict']);
  });

  it('is a conflict where the key was cleared and taken in between', async () => {
    const { store, options } = stage({ record: () => false });
    await expect(recordResult(store, 'k', 1, options)).rejects.toMatchObject({
      code: 'IDEMPOTENCY_CONFLICT',
    });
  });

  it('marks an abandoned key as done', async () => {
    const { store, options, hold, clock } = stage();
    await hold();
    await clock.advance(1000);
    expect(await recordResult(store, 'k', 'by hand', options)).toBe(true);
    expect(await idempotent(store, 'k', () => 'x')).toBe('by hand');
  });

  it('forgets the result when its time is over, and compares its payload', async () => {
    const { store, options, clock } = stage();
    await recordResult(store, 'k', 1, { ...options, expiresIn: '1s', payload: 'p' });
    await expect(idempotent(store, 'k', () => 2, { payload: 'q' })).rejects.toMatchObject({
      code: 'IDEMPOTENCY_MISMATCH',
    });
    await clock.advance('1s');
    expect(await idempotent(store, 'k', () => 2, { payload: 'q' })).toBe(2);
  });

  it('refuses what cannot be stored, and records nothing', async () => {
    const { store, options } = stage();
    await expect(recordResult(store, 'k', 1n, options)).rejects.toMatchObject({
      code: 'RESULT_NOT_STORED',
    });
    expect(await store.read('k')).toBeUndefined();
  });
});

describe('clearIdempotency', () => {
  it('lets the work run again, and is audited', async () => {
    const { store, options, events } = stage();
    await recordResult(store, 'k', 1);
    expect(await clearIdempotency(store, 'k', options)).toBe(true);
    expect(await clearIdempotency(store, 'k', options)).toBe(false);
    expect(events).toMatchObject([
      { event_type: 'idempotency_detail', action: 'clear', redrive: { was_there: true } },
      { event_type: 'idempotency_detail', action: 'clear', redrive: { was_there: false } },
    ]);
    expect(await idempotent(store, 'k', () => 2)).toBe(2);
  });

  it('is asked once: where its answer is lost, it takes the key from nobody who came since', async () => {
    const { store } = stage();
    let effects = 0;
    const effect = () => idempotent(store, 'k', () => (effects += 1));
    const release: IdempotencyStore['release'] = async (...args) => {
      await store.release(...args);
      await effect();
      throw new Error('connection reset');
    };
    await expect(clearIdempotency({ ...store, release }, 'k')).rejects.toMatchObject({
      code: 'IDEMPOTENCY_STORE_FAILED',
    });
    expect(await effect()).toBe(1);
  });

  it.each([
    ['check', checkIdempotency],
    ['clear', clearIdempotency],
    [
      'record',
      (...[store, key, options]: Parameters<typeof clearIdempotency>) =>
        recordResult(store, key, 1, options),
    ],
  ])('says that the store is away: %s', async (_, fn) => {
    const away = () => Promise.reject(new Error('connection refused'));
    const { store, clock, options } = stage({ claim: away, read: away, release: away });
    const refused = fn(store, 'k', options).catch((error: unknown) => error);
    await clock.advance('1m');
    expect(await refused).toMatchObject({
      code: 'IDEMPOTENCY_STORE_FAILED',
      message: expect.stringContaining('connection refused') as string,
    });
  });

  it.each([checkIdempotency, clearIdempotency])('refuses bad keys and stores: %o', async (fn) => {
    await expect(fn(stage().store, '')).rejects.toMatchObject({ code: 'INVALID_KEY' });
    await expect(fn({} as never, 'k')).rejects.toMatchObject({ code: 'INVALID_CONFIG' });
  });
});
