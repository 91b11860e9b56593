import { type IdempotencyStore, memoryIdempotency, recordResult } from 'redrive';
import { describe, expect, expectTypeOf, it, vi } from 'vitest';
import { memory } from '../adapters/memory/index.ts';
import { postgres, postgresIdempotency } from '../adapters/postgres/index.ts';
import { createEngine } from '../engine.ts';
import { giveUp, retryIn, snooze } from '../model/outcomes.ts';
import type { Transaction } from '../ports/idempotency.ts';
import { createTestEngine } from '../testing/index.ts';
import type { HandlerContext } from './handlers.ts';

const ID = '018f2d3e-0000-7000-8000-000000000001';
const never = new Promise(() => {});
const KEY = `handler:charge:${ID}`;

/** An engine with one idempotent handler, on keys that a test can look into. */
function charging(
  run: (payload: unknown, context: HandlerContext) => unknown,
  keys: IdempotencyStore = memoryIdempotency(),
) {
  const engine = createTestEngine({ idempotency: keys }).handle(
    'charge',
    { idempotent: true },
    run,
  );
  return { engine, keys };
}

describe('a task of an idempotent handler', () => {
  it('runs, and is recorded as done without a result', async () => {
    const seen: string[] = [];
    const { engine, keys } = charging((payload, context) => {
      seen.push(context.idempotencyKey);
      return { secret: payload };
    });
    await engine.submit('charge', 'card 4711', { id: ID });
    await engine.drain();
    expect(await engine.get(ID)).toMatchObject({ status: 'done' });
    expect(seen).toEqual([ID]);
    expect(await keys.read(KEY)).toMatchObject({
      state: 'done',
      outcome: { kind: 'undefined', text: '' },
    });
  });

  it('is done without running where its key has a record', async () => {
    const run = vi.fn<() => void>();
    const { engine, keys } = charging(run);
    await recordResult(keys, KEY, undefined);
    await engine.submit('charge', {}, { id: ID });
    await engine.drain();
    expect(await engine.get(ID)).toMatchObject({ status: 'done', attempt: 0 });
    expect(run).not.toHaveBeenCalled();
  });

  it('has a key of its own at each handler of its message', async () => {
    const seen: string[] = [];
    const engine = createTestEngine()
      .handle('charge', { idempotent: true }, () => seen.push('charge'))
      .handle('mail', { idempotent: true }, () => seen.push('mail'));
    await engine.submit('charge', {}, { id: ID });
    await engine.submit('mail', {}, { id: ID });
    await engine.drain();
    expect(seen.sort()).toEqual(['charge', 'mail']);
  });

  it('has a key that every store can keep, however long the name of its handler', async () => {
    const name = 'x'.repeat(250);
    const keys = memoryIdempotency();
    const claim = vi.spyOn(keys, 'claim');
    const engine = createTestEngine({ idempotency: keys }).handle(
      name,
      { idempotent: true },
      () => undefined,
    );
    await engine.submit(name, {}, { id: ID });
    await engine.drain();
    expect(await engine.get(ID)).toMatchObject({ status: 'done' });
    expect(claim.mock.calls[0]![0].key).toMatch(/^[0-9a-f]{64}$/);
  });

  it('runs again after a failure, which frees the key', async () => {
    let runs = 0;
    const { engine, keys } = charging(() => {
      runs += 1;
      if (runs === 1) throw new Error('no connection');
    });
    await engine.submit('charge', {}, { id: ID });
    await engine.drain();
    expect(await keys.read(KEY)).toBeUndefined();
    expect(await engine.get(ID)).toMatchObject({ status: 'pending', attempt: 1 });
    await engine.advance('1h');
    expect(await engine.get(ID)).toMatchObject({ status: 'done' });
    expect(runs).toBe(2);
  });

  it.each([
    ['retryIn', () => retryIn('1m'), { status: 'pending', attempt: 1 }],
    ['snooze', () => snooze('1m'), { status: 'pending', attempt: 0 }],
    ['giveUp', () => giveUp('closed account'), { status: 'failed' }],
  ])('is not recorded by a wish: %s', async (_, wish, expected) => {
    const { engine, keys } = charging(wish);
    await engine.submit('charge', {}, { id: ID });
    await engine.drain();
    expect(await engine.get(ID)).toMatchObject(expected);
    expect(await keys.read(KEY)).toBeUndefined();
  });

  it('runs under another key once an operator has changed it, and under the same one otherwise', async () => {
    const seen: string[] = [];
    let isBroken = true;
    const { engine, keys } = charging((_, { idempotencyKey }) => {
      seen.push(idempotencyKey);
      return isBroken ? giveUp('broken') : undefined;
    });
    await engine.submit('charge', { amount: 1 }, { id: ID });
    await engine.drain();
    const [item] = await engine.inbox();
    isBroken = false;
    // As if the first execution had been recorded after all.
    await recordResult(keys, KEY, undefined);
    await engine.inbox.replay(item!.id, { payload: { amount: 2 } });
    await engine.drain();
    expect(seen).toEqual([ID, `${ID}.1`]);
    expect(await keys.read(`${KEY}.1`)).toMatchObject({ state: 'done' });
  });
});

describe('a key that somebody else holds', () => {
  function heldFor(remainingMs: number): IdempotencyStore {
    const keys = memoryIdempotency();
    return { ...keys, claim: () => ({ state: 'held', fingerprint: '', remainingMs }) };
  }

  it('puts the task off for the rest of the lease, and uses up no attempt', async () => {
    const run = vi.fn<() => void>();
    const { engine } = charging(run, heldFor(7000));
    await engine.submit('charge', {}, { id: ID });
    await engine.drain();
    const task = await engine.get(ID);
    expect(task).toMatchObject({ status: 'pending', attempt: 0, uncounted: 1 });
    expect(task!.dueAtMs - engine.clock.now()).toBe(7000);
    expect(run).not.toHaveBeenCalled();
  });

  it('is no busy loop where nobody knows for how long', async () => {
    const { engine } = charging(() => undefined, heldFor(0));
    await engine.submit('charge', {}, { id: ID });
    await engine.drain();
    const task = await engine.get(ID);
    expect(task!.dueAtMs - engine.clock.now()).toBe(3000);
  });

  it('ends in the inbox by the limit of the task', async () => {
    const engine = createTestEngine({
      idempotency: heldFor(1000),
      policy: { maxUncounted: 2 },
    }).handle('charge', { idempotent: true }, () => undefined);
    await engine.submit('charge', {}, { id: ID });
    await engine.advance('1m');
    expect(await engine.inbox()).toMatchObject([
      { reason: 'TOO_MANY_UNCOUNTED', failure: { code: 'KEY_HELD' } },
    ]);
  });
});

describe('a store of keys that is away', () => {
  it('lets nothing run, and uses up no attempt', async () => {
    const run = vi.fn<() => void>();
    let isAway = true;
    const real = memoryIdempotency();
    const keys: IdempotencyStore = {
      ...real,
      claim: (request) => {
        if (isAway) throw new Error('the keys are away');
        return real.claim(request);
      },
    };
    const { engine } = charging(run, keys);
    await engine.submit('charge', {}, { id: ID });
    await engine.advance('10s');
    expect(await engine.get(ID)).toMatchObject({ status: 'pending', attempt: 0 });
    expect(run).not.toHaveBeenCalled();
    isAway = false;
    await engine.advance('1h');
    expect(await engine.get(ID)).toMatchObject({ status: 'done' });
  });

  it('lets nothing run where it takes more than half of the time, and uses up no attempt', async () => {
    const run = vi.fn<() => void>();
    const real = memoryIdempotency();
    let answer = () => {};
    const keys: IdempotencyStore = {
      ...real,
      claim: (request) =>
        new Promise((resolve) => {
          answer = () => resolve(real.claim(request));
        }),
    };
    const engine = createTestEngine({ idempotency: keys, patience: 1 }).handle(
      'charge',
      { idempotent: true, timeout: '4s' },
      run,
    );
    await engine.submit('charge', {}, { id: ID });
    await engine.advance('2s');
    expect(await engine.get(ID)).toMatchObject({ status: 'pending', attempt: 0, uncounted: 1 });
    // An answer that comes later frees the key.
    answer();
    await vi.waitFor(async () => expect(await real.read(KEY)).toBeUndefined(), { timeout: 20_000 });
    expect(run).not.toHaveBeenCalled();
  });

  it('does not undo what was done: the task is done, and not repeated', async () => {
    const run = vi.fn<() => void>();
    const keys: IdempotencyStore = { ...memoryIdempotency(), record: () => false };
    const { engine } = charging(run, keys);
    await engine.submit('charge', {}, { id: ID });
    await engine.drain();
    expect(await engine.get(ID)).toMatchObject({ status: 'done' });
    expect(run).toHaveBeenCalledOnce();
  });
});

describe('a handler that ignores its signal', () => {
  it('keeps its key for no longer than a lease', async () => {
    const renewed: boolean[] = [];
    const clock = { current: undefined as HandlerContext | undefined };
    const real = memoryIdempotency();
    const keys: IdempotencyStore = {
      ...real,
      renew: (...args) => {
        renewed.push(clock.current!.signal.aborted);
        return real.renew(...args);
      },
    };
    const engine = createTestEngine({ idempotency: keys, patience: 1 }).handle(
      'charge',
      { idempotent: true, timeout: '12s' },
      (_: unknown, context) => {
        clock.current = context;
        return never;
      },
    );
    await engine.submit('charge', {}, { id: ID });
    await engine.advance('2m');
    expect(renewed.length).toBeGreaterThan(0);
    expect(renewed).not.toContain(true);
  });
});

describe('records of handlers', () => {
  it('are pruned when the retention is over', async () => {
    const kept: (number | undefined)[] = [];
    const prune = vi.fn<IdempotencyStore['prune']>(() => 0);
    const real = memoryIdempotency();
    const keys: IdempotencyStore = {
      ...real,
      record: (key, owner, record) => {
        kept.push(record.expiresInMs);
        return real.record(key, owner, record);
      },
      prune,
    };
    const engine = createTestEngine({
      idempotency: keys,
      poll: '10s',
      retention: { done: '40d' },
      inbox: { retention: '10d' },
    }).handle('charge', { idempotent: true }, () => undefined);
    await engine.submit('charge', {}, { id: ID });
    await engine.advance('11m');
    expect(kept).toEqual([40 * 86_400_000]);
    // Once at the start, to make the table, and then every ten minutes.
    expect(prune.mock.calls).toEqual([[0], [1000], [1000]]);
  });

  it('are nobody’s business where no handler is idempotent', async () => {
    const keys = { ...memoryIdempotency(), prune: vi.fn<IdempotencyStore['prune']>(() => 0) };
    const engine = createTestEngine({ idempotency: keys }).handle('charge', () => undefined);
    await engine.advance('25m');
    expect(keys.prune).not.toHaveBeenCalled();
  });
});

describe('the audit trail of an idempotent handler', () => {
  it('has the hit of a task that was done before, with its message', async () => {
    const keys = memoryIdempotency();
    const audited = createTestEngine({ idempotency: keys, audit: true }).handle(
      'charge',
      { idempotent: true },
      () => undefined,
    );
    await recordResult(keys, KEY, undefined);
    await audited.submit('charge', {}, { id: ID });
    await audited.submit('charge', {});
    await audited.advance('10s');
    const { events } = await audited.auditEvents({ limit: 10 });
    expect(events.map(({ event }) => event)).toMatchObject([
      {
        event_type: 'idempotency',
        action: 'hit',
        operation: 'handler:charge',
        redrive: { message_id: ID },
      },
    ]);
  });

  it('has the record too where successes are written', async () => {
    const engine = createTestEngine({ audit: { successes: true } }).handle(
      'charge',
      { idempotent: true },
      () => undefined,
    );
    await engine.submit('charge', {}, { id: ID });
    await engine.advance('10s');
    const { events } = await engine.auditEvents({ limit: 10 });
    const written = events.map(({ event }) => event['action'] ?? event.event_type);
    expect(new Set(written)).toEqual(new Set(['record', 'retry_succeeded']));
  });
});

describe('handle', () => {
  it('refuses an idempotent handler where nobody keeps keys', () => {
    const store = new Proxy(memory(), {
      get: (target, name): unknown =>
        name === 'idempotency' ? undefined : Reflect.get(target, name, target),
    });
    const engine = createEngine({ store });
    expect(() => engine.handle('charge', { idempotent: true }, () => undefined)).toThrow(
      expect.objectContaining({ code: 'NO_IDEMPOTENCY' }),
    );
  });

  it('refuses an option that is neither true nor false', () => {
    const engine = createEngine({ store: memory() });
    const handle = () => engine.handle('charge', { idempotent: 'yes' as never }, () => undefined);
    expect(handle).toThrow(expect.objectContaining({ code: 'INVALID_ENGINE' }));
  });

  it('refuses keys that are no store of keys', () => {
    const idempotency = {} as IdempotencyStore;
    expect(() => createEngine({ store: memory(), idempotency })).toThrow(
      expect.objectContaining({ code: 'INVALID_ENGINE' }),
    );
  });

  it('types the tx of idempotent handlers, and of no others', () => {
    const url = 'postgres://localhost/none';
    createEngine({ store: postgres(url) })
      .handle('a', { idempotent: true }, (_: string, { tx }) => {
        expectTypeOf(tx).toEqualTypeOf<Transaction>();
      })
      .handle('b', {}, (_: string, context) => {
        expectTypeOf(context).not.toHaveProperty('tx');
      })
      .handle('c', (_: string, context) => {
        expectTypeOf(context).not.toHaveProperty('tx');
      });
    createEngine({ store: memory() }).handle('a', { idempotent: true }, (_: string, context) => {
      expectTypeOf(context).not.toHaveProperty('tx');
    });
    createEngine({ store: memory(), idempotency: postgresIdempotency(url) }).handle(
      'a',
      { idempotent: true },
      (_: string, { tx }) => {
        expectTypeOf(tx).toEqualTypeOf<Transaction>();
      },
    );
    const keys = memoryIdempotency();
    createEngine({ store: postgres(url), idempotency: keys }).handle(
      'a',
      { idempotent: true },
      (_: string, context) => {
        expectTypeOf(context).not.toHaveProperty('tx');
      },
    );
  });
});
