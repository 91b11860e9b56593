import { setImmediate } from 'node:timers/promises';
import { describe, expect, expectTypeOf, it, vi } from 'vitest';
import type { AuditEntry } from '../audit/audit-events.ts';
import { virtualClock } from '../virtual-clock.ts';
import { IdempotencyError, isIdempotencyError } from './idempotency-error.ts';
import { type Claim, idempotent } from './idempotent.ts';
import { memoryIdempotency } from './memory.ts';
import type { IdempotentOptions } from './options.ts';
import type { IdempotencyStore } from './store.ts';

type Method = 'claim' | 'renew' | 'record' | 'read' | 'release';
/** What becomes of the next calls of a method, in order; then they work. */
type Fault = 'down' | 'answer lost' | 'no answer' | 'late' | 'works';

function withResolvers<T>() {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

const { promise: never } = withResolvers<never>();

/** The memory store behind a network. */
function stage() {
  const clock = virtualClock();
  const memory = memoryIdempotency({ clock });
  const faults = new Map<Method, Fault[]>();
  const late: (() => void)[] = [];
  const calls: Method[] = [];
  const over =
    <Args extends unknown[], T>(method: Method, act: (...args: Args) => T | PromiseLike<T>) =>
    async (...args: Args): Promise<T> => {
      calls.push(method);
      switch (faults.get(method)?.shift()) {
        case 'down':
          throw new Error('connection refused');
        case 'answer lost':
          await act(...args);
          throw new Error('connection reset');
        case 'no answer':
          return never;
        case 'late':
          late.push(() => void act(...args));
          return never;
        case 'works':
        case undefined:
          return act(...args);
      }
    };
  const store: IdempotencyStore = {
    claim: over('claim', memory.claim),
    renew: over('renew', memory.renew),
    record: over('record', memory.record),
    read: over('read', memory.read),
    release: over('release', memory.release),
    prune: memory.prune,
  };
  const events: AuditEntry[] = [];
  const audit = (entry: AuditEntry) => void events.push(entry);
  const actions = () => events.map(({ action }) => action);
  let effects = 0;
  const effect = () => (effects += 1);
  const once = <T>(fn: (claim: Claim) => T, options: IdempotentOptions = {}, key = 'k') =>
    idempotent(store, key, fn, { clock, audit, ...options });
  /** So often and no more. */
  const fault = (method: Method, ...list: Fault[]) => void faults.set(method, list);
  const sleep = (ms: number) =>
    new Promise<void>((resolve) => {
      clock.setTimer(resolve, ms);
    });
  const arrive = () => late.splice(0).forEach((one) => one());
  return {
    clock,
    memory,
    store,
    once,
    fault,
    arrive,
    sleep,
    calls,
    events,
    actions,
    effect,
    get effects() {
      return effects;
    },
  };
}

/** A function that runs until it is told how to end. */
function work<T = string>() {
  let end!: { resolve: (value: T) => void; reject: (error: unknown) => void };
  const done = new Promise<T>((resolve, reject) => {
    end = { resolve, reject };
  });
  const claims: Claim[] = [];
  const fn = (claim: Claim) => {
    claims.push(claim);
    return done;
  };
  return { fn, ...end, claims };
}

async function failing(call: Promise<unknown>): Promise<IdempotencyError> {
  const error: unknown = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!isIdempotencyError(error)) throw new Error(`no IdempotencyError: ${String(error)}`);
  return error;
}

const settle = async () => {
  for (let i = 0; i < 5; i++) await setImmediate();
};

describe('idempotent', () => {
  it('runs the work once, and gives its result to everybody', async () => {
    const s = stage();
    expect(await s.once(() => s.effect())).toBe(1);
    expect(await s.once(() => s.effect())).toBe(1);
    expect(s.effects).toBe(1);
    expect(s.actions()).toEqual(['record', 'hit']);
  });

  it.each<[string, unknown]>([
    ['null', null],
    ['undefined', undefined],
    ['false', false],
    ['0', 0],
    ['an empty text', ''],
    ['a list', [1, { a: null }]],
    ['an odd text', '\ud800 \0 "'],
  ])('stores %s as a result like any other', async (_, value) => {
    const s = stage();
    const fn = vi.fn(() => value);
    expect(await s.once(fn)).toEqual(value);
    expect(await s.once(fn)).toEqual(value);
    expect(fn).toHaveBeenCalledTimes(1);
  });

  it('gives later callers what JSON makes of the result', async () => {
    const s = stage();
    const at = new Date(0);
    expect(await s.once(() => ({ at, none: undefined }))).toEqual({ at });
    expect(await s.once(() => 0)).toEqual({ at: at.toISOString() });
  });

  it('has the type of the work', () => {
    const s = stage();
    expectTypeOf(s.once(async () => 5)).toEqualTypeOf<Promise<number>>();
    expectTypeOf(idempotent(s.store, 'k', () => 'x')).toEqualTypeOf<Promise<string>>();
  });

  it('works without options, on a store that answers at once', async () => {
    const memory = memoryIdempotency();
    expect(await idempotent(memory, 'k', () => 7)).toBe(7);
    expect(await idempotent(memory, 'k', () => 8)).toBe(7);
  });

  it('keeps keys apart', async () => {
    const s = stage();
    await s.once(() => s.effect(), {}, 'a');
    await s.once(() => s.effect(), {}, 'b');
    expect(s.effects).toBe(2);
  });

  it('lets the work run again after a failure', async () => {
    const s = stage();
    await expect(s.once(() => Promise.reject(new Error('no funds')))).rejects.toThrow('no funds');
    expect(await s.once(() => s.effect())).toBe(1);
    expect(s.actions()).toEqual(['record']);
  });

  it('forgets a result when its time is over', async () => {
    const s = stage();
    await s.once(() => s.effect(), { expiresIn: '1m' });
    await s.clock.advance(59_999);
    expect(await s.once(() => s.effect())).toBe(1);
    await s.clock.advance(1);
    expect(await s.once(() => s.effect())).toBe(2);
  });

  it('keeps results for good unless told otherwise', async () => {
    const s = stage();
    await s.once(() => s.effect());
    await s.clock.advance('3650d');
    expect(await s.once(() => s.effect())).toBe(1);
  });

  it('hands out fencing tokens that grow', async () => {
    const s = stage();
    const tokens: (number | undefined)[] = [];
    for (let i = 0; i < 3; i++) {
      const call = s.once(({ fencingToken }) => {
        tokens.push(fencingToken);
        throw new Error('again');
      });
      await expect(call).rejects.toThrow('again');
    }
    expect(tokens).toEqual([...tokens].sort((a, b) => a! - b!));
    expect(new Set(tokens).size).toBe(3);
  });

  it('writes the event of the contract, field for field', async () => {
    const s = stage();
    const subject = {
      category: 'RETRY_KV_PUT',
      operation: 'Store kill switch state',
      tenantId: 'tenant-123',
      correlationId: 'corr-456',
    };
    const key = 'abc123def4567890fedcba';
    await s.once(() => 1, { subject }, key);
    await s.once(() => 1, { subject }, key);
    const { redrive, ...fields } = s.events[1]!;
    expect(JSON.stringify(fields)).toBe(
      JSON.stringify({
        event_type: 'idempotency',
        retry_category: 'RETRY_KV_PUT',
        operation: 'Store kill switch state',
        idempotency_key: 'abc123def4567890...',
        action: 'hit',
        tenant_id: 'tenant-123',
        correlation_id: 'corr-456',
        trace_id: null,
      }),
    );
    expect(redrive).toEqual({});
    expect(s.events[0]).toMatchObject({ event_type: 'idempotency', action: 'record' });
  });

  it('is not broken by an audit that throws', async () => {
    const s = stage();
    const told = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const audit = () => {
      throw new Error('audit is down');
    };
    expect(await s.once(() => 1, { audit })).toBe(1);
    expect(told).toHaveBeenCalledTimes(1);
    told.mockRestore();
  });
});

describe('the same key with another payload', () => {
  it('is refused while the first runs, after it was done, and after its owner crashed', async () => {
    const s = stage();
    const first = work();
    const running = s.once(first.fn, { payload: { amount: 1 } });
    await settle();
    expect(await failing(s.once(() => 'x', { payload: { amount: 2 } }))).toMatchObject({
      code: 'IDEMPOTENCY_MISMATCH',
    });
    first.resolve('paid');
    await running;
    const error = await failing(s.once(() => 'x', { payload: { amount: 2 } }));
    expect(error.code).toBe('IDEMPOTENCY_MISMATCH');

    const crashed = { key: 'c', owner: 'gone', fingerprint: 'other', leaseMs: 1000 };
    await s.store.claim({ ...crashed, takeOver: true });
    await s.clock.advance(1000);
    expect(await failing(s.once(() => 'x', { payload: 1 }, 'c'))).toMatchObject({
      code: 'IDEMPOTENCY_MISMATCH',
    });
    expect(s.actions().filter((action) => action === 'mismatch')).toHaveLength(3);
    expect(s.effects).toBe(0);
  });

  it('is the same where only the order of members differs', async () => {
    const s = stage();
    await s.once(() => s.effect(), { payload: { a: 1, b: [2] } });
    expect(await s.once(() => s.effect(), { payload: { b: [2], a: 1 } })).toBe(1);
  });

  it('is not compared where one of them has none', async () => {
    const s = stage();
    await s.once(() => s.effect(), { payload: 1 });
    expect(await s.once(() => s.effect())).toBe(1);
    await s.once(() => s.effect(), {}, 'b');
    expect(await s.once(() => s.effect(), { payload: 2 }, 'b')).toBe(2);
  });

  it('is compared still where an owner without one took over', async () => {
    const s = stage();
    const crashed = { key: 'k', owner: 'gone', fingerprint: 'first', leaseMs: 1000 };
    await s.store.claim({ ...crashed, takeOver: true });
    await s.clock.advance(1000);
    await s.once(() => 1);
    expect(await failing(s.once(() => 1, { payload: 'other' }))).toMatchObject({
      code: 'IDEMPOTENCY_MISMATCH',
    });
  });

  it('is any payload once the result has expired', async () => {
    const s = stage();
    await s.once(() => s.effect(), { payload: 1, expiresIn: '1s' });
    await s.clock.advance('1s');
    expect(await s.once(() => s.effect(), { payload: 2 })).toBe(2);
  });

  it('is frozen at the call, whatever the work does with it', async () => {
    const s = stage();
    const payload = { amount: 1 };
    await s.once(() => (payload.amount = 99), { payload });
    expect(await s.once(() => 0, { payload: { amount: 1 } })).toBe(99);
  });
});

describe('a second caller while the first runs', () => {
  it('waits for the result', async () => {
    const s = stage();
    const first = work();
    const calls = [s.once(first.fn), s.once(first.fn), s.once(first.fn)];
    await s.clock.advance('5s');
    first.resolve('paid');
    await s.clock.advance('2s');
    expect(await Promise.all(calls)).toEqual(['paid', 'paid', 'paid']);
    expect(first.claims).toHaveLength(1);
    expect(s.actions()).toEqual(['wait', 'wait', 'record', 'hit', 'hit']);
  });

  it('runs the work itself where the first fails', async () => {
    const s = stage();
    const first = work();
    const failed = s.once(first.fn);
    await settle();
    const second = s.once(() => s.effect());
    await settle();
    first.reject(new Error('no'));
    await expect(failed).rejects.toThrow('no');
    await s.clock.advance('2s');
    expect(await second).toBe(1);
  });

  it('waits only so long, then it is a conflict', async () => {
    const s = stage();
    const first = work();
    const running = s.once(first.fn);
    await settle();
    const second = failing(s.once(() => 'x', { maxWait: '5s' }));
    await s.clock.advance('5s');
    const error = await second;
    expect(error).toMatchObject({ code: 'IDEMPOTENCY_CONFLICT' });
    expect(error.message).toContain('waited for 5000 ms');
    expect(error.retryAfterMs).toBeGreaterThan(0);
    first.resolve('paid');
    await running;
  });

  it('gets a conflict at once by option', async () => {
    const s = stage();
    const first = work();
    const running = s.once(first.fn);
    await settle();
    const error = await failing(s.once(() => 'x', { whileRunning: 'conflict' }));
    expect(error).toMatchObject({ code: 'IDEMPOTENCY_CONFLICT', retryAfterMs: 30_000 });
    expect(s.events.at(-1)).toMatchObject({
      event_type: 'idempotency_detail',
      action: 'conflict',
      redrive: { state: 'held' },
    });
    first.resolve('paid');
    await running;
  });

  it('stops waiting when its signal is aborted', async () => {
    const s = stage();
    const first = work();
    const running = s.once(first.fn);
    await settle();
    const controller = new AbortController();
    const second = s.once(() => 'x', { signal: controller.signal });
    await settle();
    controller.abort(new Error('enough'));
    await expect(second).rejects.toThrow('enough');
    first.resolve('paid');
    await running;
  });

  it('does not begin to wait when its signal was aborted while the store was asked', async () => {
    const s = stage();
    const controller = new AbortController();
    const claim = () => {
      controller.abort(new Error('enough'));
      return { state: 'held', fingerprint: '', remainingMs: 60_000 } as const;
    };
    const { signal } = controller;
    const call = idempotent({ ...s.store, claim }, 'k', () => 1, { clock: s.clock, signal });
    const caught = call.catch((error: unknown) => error);
    await s.clock.advance(0);
    expect(await caught).toMatchObject({ message: 'enough' });
  });

  it('asks at its own pace where the store does not know when the key may be free', async () => {
    const s = stage();
    let claims = 0;
    const claim = () => {
      claims += 1;
      return { state: 'held', fingerprint: '', remainingMs: 0 } as const;
    };
    const call = failing(
      idempotent({ ...s.store, claim }, 'k', () => 1, { clock: s.clock, maxWait: '10s' }),
    );
    await s.clock.advance('10s');
    expect(await call).toMatchObject({ code: 'IDEMPOTENCY_CONFLICT', retryAfterMs: 0 });
    expect(claims).toBeGreaterThan(8);
    expect(claims).toBeLessThan(40);
  });

  it('asks no store when its signal is aborted already', async () => {
    const s = stage();
    const signal = AbortSignal.abort(new Error('too late'));
    await expect(s.once(() => 'x', { signal })).rejects.toThrow('too late');
    expect(s.calls).toEqual([]);
  });

  it('of fifty at once only one runs', async () => {
    const s = stage();
    const calls = Array.from({ length: 50 }, () =>
      s.once(async () => {
        await settle();
        return s.effect();
      }),
    );
    await s.clock.advance('5s');
    expect(await Promise.all(calls)).toEqual(Array.from({ length: 50 }, () => 1));
    expect(s.effects).toBe(1);
  });
});

describe('the lease', () => {
  it('is renewed as long as the work runs', async () => {
    const s = stage();
    const first = work();
    const running = s.once(first.fn, { lease: '30s' });
    await s.clock.advance('10m');
    expect(await s.memory.read('k')).toMatchObject({ state: 'held' });
    first.resolve('paid');
    expect(await running).toBe('paid');
    const renewals = () => s.calls.filter((call) => call === 'renew').length;
    expect(renewals()).toBe(60);
    // One timer is shared by all leases. It ends with the last of them.
    await s.clock.advance('10s');
    expect([s.clock.pending, renewals()]).toEqual([0, 60]);
  });

  it('is renewed in its own rhythm, whatever other leases there are', async () => {
    const s = stage();
    const renewed: string[] = [];
    const store: IdempotencyStore = {
      ...s.memory,
      renew: (key, owner, leaseMs) => {
        renewed.push(`${key} ${s.clock.monotonic()}`);
        return s.memory.renew(key, owner, leaseMs);
      },
    };
    const [slow, quick] = [work(), work()];
    const { clock } = s;
    const calls = [
      idempotent(store, 'slow', slow.fn, { clock, lease: 9000 }),
      idempotent(store, 'quick', quick.fn, { clock, lease: 3000 }),
    ];
    await clock.advance(1500);
    quick.resolve('q');
    await calls[1];
    await clock.advance(5000);
    slow.resolve('s');
    expect(await Promise.all(calls)).toEqual(['s', 'q']);
    expect(renewed).toEqual(['quick 1000', 'slow 3000', 'slow 6000']);
  });

  it('of a crashed owner is taken over when it is over, and not before', async () => {
    const s = stage();
    await s.store.claim({ key: 'k', owner: 'x', fingerprint: '', leaseMs: 30_000, takeOver: true });
    const call = s.once(() => s.effect());
    await s.clock.advance(29_999);
    expect(s.effects).toBe(0);
    await s.clock.advance(1000);
    expect(await call).toBe(1);
    expect(s.events.find(({ action }) => action === 'expired')).toMatchObject({
      event_type: 'idempotency_detail',
      redrive: { claims: 2 },
    });
  });

  it('of a crashed owner blocks the key for good by option', async () => {
    const s = stage();
    await s.store.claim({ key: 'k', owner: 'x', fingerprint: '', leaseMs: 1000, takeOver: true });
    await s.clock.advance('1d');
    const error = await failing(s.once(() => s.effect(), { afterCrash: 'conflict' }));
    expect(error.code).toBe('IDEMPOTENCY_ABANDONED');
    expect(s.effects).toBe(0);
    expect(s.events.at(-1)).toMatchObject({ action: 'conflict', redrive: { state: 'abandoned' } });
  });

  it('that is taken over by two waiters goes to one of them', async () => {
    const s = stage();
    await s.store.claim({ key: 'k', owner: 'x', fingerprint: '', leaseMs: 1000, takeOver: true });
    const calls = [s.once(() => s.effect()), s.once(() => s.effect())];
    await s.clock.advance('5s');
    expect(await Promise.all(calls)).toEqual([1, 1]);
  });

  it('does not end by a jump of the wall clock', async () => {
    const s = stage();
    const first = work();
    const running = s.once(first.fn);
    await settle();
    s.clock.jump(86_400_000);
    const options = { whileRunning: 'conflict' } as const;
    expect(await failing(s.once(() => 'x', options))).toMatchObject({
      code: 'IDEMPOTENCY_CONFLICT',
    });
    s.clock.jump(-2 * 86_400_000);
    first.resolve('paid');
    expect(await running).toBe('paid');
  });

  it('of a paused owner: it wakes up, is told by its signal, and cannot record', async () => {
    const s = stage();
    const first = work();
    const running = failing(s.once(first.fn, { lease: '3s' }));
    await settle();
    // Paused: its renewals never get anywhere, and another caller takes over meanwhile.
    s.fault('renew', ...Array.from({ length: 50 }, () => 'no answer' as const));
    const second = s.once(() => 'second');
    await s.clock.advance('5s');
    expect(await second).toBe('second');
    const { signal } = first.claims[0]!;
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toMatchObject({ code: 'IDEMPOTENCY_LEASE_LOST' });
    first.resolve('first');
    expect(await running).toMatchObject({ code: 'IDEMPOTENCY_LEASE_LOST', result: 'first' });
    expect(await s.once(() => 'third')).toBe('second');
    expect(s.actions()).toContain('lost');
  });

  it('that another caller took over aborts the work at the next renewal', async () => {
    const s = stage();
    const first = work();
    const running = failing(s.once(first.fn, { lease: '30s' }));
    await settle();
    await s.memory.release('k');
    await s.clock.advance('10s');
    expect(first.claims[0]!.signal.aborted).toBe(true);
    first.reject(new Error('aborted'));
    const error = await running;
    expect(error).toMatchObject({ code: 'IDEMPOTENCY_LEASE_LOST', cause: { message: 'aborted' } });
  });

  it('is asked for again within its time where a renewal fails', async () => {
    const s = stage();
    const first = work();
    const running = s.once(first.fn, { lease: '30s' });
    await settle();
    s.fault('renew', 'down', 'answer lost', 'no answer', 'down');
    await s.clock.advance('5m');
    expect(first.claims[0]!.signal.aborted).toBe(false);
    first.resolve('paid');
    expect(await running).toBe('paid');
  });

  it('is not lost by a renewal that is answered after the work is done', async () => {
    const s = stage();
    const first = work();
    const answer = withResolvers<boolean>();
    const running = idempotent({ ...s.store, renew: () => answer.promise }, 'k', first.fn, {
      clock: s.clock,
    });
    await s.clock.advance('10s');
    first.resolve('paid');
    expect(await running).toBe('paid');
    answer.resolve(false);
    await settle();
    expect(first.claims[0]!.signal.aborted).toBe(false);
    expect(s.clock.pending).toBe(0);
  });

  it('that was lost by the clock alone may still be recorded, since nobody took over', async () => {
    const s = stage();
    const first = work();
    const running = s.once(first.fn, { lease: '3s' });
    await settle();
    s.fault('renew', ...Array.from({ length: 50 }, () => 'down' as const));
    await s.clock.advance('1m');
    expect(first.claims[0]!.signal.aborted).toBe(true);
    first.resolve('paid');
    expect(await running).toBe('paid');
    expect(await s.once(() => 'again')).toBe('paid');
  });

  it('counts from before the claim was sent, since the store may have begun it then', async () => {
    const s = stage();
    const first = work();
    const slow = async (request: Parameters<IdempotencyStore['claim']>[0]) => {
      const answer = await s.memory.claim(request);
      await s.sleep(3000);
      return answer;
    };
    const away = () => Promise.reject(new Error('down'));
    const store = { ...s.store, claim: slow, renew: away };
    const running = idempotent(store, 'k', first.fn, { clock: s.clock, lease: '10s' });
    await s.clock.advance(9999);
    expect(first.claims[0]!.signal.aborted).toBe(false);
    await s.clock.advance(1);
    expect(first.claims[0]!.signal.aborted).toBe(true);
    first.resolve('paid');
    await running;
  });

  it('counts from the claim that was answered, not from one before it', async () => {
    const s = stage();
    const first = work();
    s.fault('claim', 'no answer');
    s.fault('renew', ...Array.from({ length: 50 }, () => 'down' as const));
    const running = s.once(first.fn, { lease: '10s', storeTimeout: '4s' });
    // The second claim is sent after 4 s and a pause, and is answered at once.
    await s.clock.advance('13s');
    expect(first.claims[0]!.signal.aborted).toBe(false);
    await s.clock.advance('2s');
    expect(first.claims[0]!.signal.aborted).toBe(true);
    first.resolve('paid');
    await running;
  });

  it('that is over leaves time for one record all the same', async () => {
    const s = stage();
    const first = work();
    const slow = async (...args: Parameters<IdempotencyStore['record']>) => {
      await s.sleep(1000);
      return s.memory.record(...args);
    };
    const store = { ...s.store, renew: () => Promise.reject(new Error('down')), record: slow };
    const actions: unknown[] = [];
    const running = idempotent(store, 'k', first.fn, {
      clock: s.clock,
      lease: '3s',
      audit: ({ action }) => actions.push(action),
    });
    await s.clock.advance('10s');
    first.resolve('paid');
    await s.clock.advance('2s');
    expect(await running).toBe('paid');
    expect(actions).toEqual(['record']);
  });

  it('that was lost stores no failure, since the work was stopped', async () => {
    const s = stage();
    const first = work();
    s.fault('renew', ...Array.from({ length: 50 }, () => 'down' as const));
    const running = failing(s.once(first.fn, { lease: '3s', storeFailures: true }));
    await s.clock.advance('10s');
    first.reject(new Error('aborted'));
    expect(await running).toMatchObject({ code: 'IDEMPOTENCY_LEASE_LOST' });
    expect(await s.memory.read('k')).toBeUndefined();
  });

  it('counts from before a renewal was sent', async () => {
    const s = stage();
    const first = work();
    let renewals = 0;
    const slowOnce = async (...args: Parameters<IdempotencyStore['renew']>) => {
      renewals += 1;
      if (renewals > 1) throw new Error('down');
      const isMine = await s.memory.renew(...args);
      await s.sleep(2000);
      return isMine;
    };
    const store = { ...s.store, renew: slowOnce };
    const running = idempotent(store, 'k', first.fn, { clock: s.clock, lease: '9s' });
    // Sent after a third of the lease, so that the key is sure for nine seconds from then on.
    await s.clock.advance(11_999);
    expect(first.claims[0]!.signal.aborted).toBe(false);
    await s.clock.advance(1);
    expect(first.claims[0]!.signal.aborted).toBe(true);
    first.resolve('paid');
    await running;
  });

  it('is over with the work: a signal that is aborted later aborts nothing', async () => {
    const s = stage();
    const controller = new AbortController();
    const signals: AbortSignal[] = [];
    await s.once(({ signal }) => void signals.push(signal), { signal: controller.signal });
    controller.abort();
    expect(signals[0]!.aborted).toBe(false);
  });

  it('passes the signal of the caller on', async () => {
    const s = stage();
    const controller = new AbortController();
    const first = work();
    const running = s.once(first.fn, { signal: controller.signal });
    await settle();
    controller.abort(new Error('stop'));
    expect(first.claims[0]!.signal.reason).toMatchObject({ message: 'stop' });
    first.reject(new Error('stopped'));
    await expect(running).rejects.toThrow('stopped');
    expect(await s.memory.read('k')).toBeUndefined();
  });

  it('does not run the work where the caller aborted while the claim was under way', async () => {
    const s = stage();
    const controller = new AbortController();
    const memory = memoryIdempotency({ clock: s.clock });
    const store: IdempotencyStore = {
      ...memory,
      claim: async (request) => {
        controller.abort(new Error('stop'));
        return memory.claim(request);
      },
    };
    const run = vi.fn<() => void>();
    const { signal } = controller;
    await expect(idempotent(store, 'k', run, { clock: s.clock, signal })).rejects.toThrow('stop');
    expect(run).not.toHaveBeenCalled();
    expect(memory.read('k')).toBeUndefined();
  });

  it('reaches the work or keeps it from running, at whatever moment the caller aborts', async () => {
    const seen = new Set<string>();
    for (let turns = 0; turns < 30; turns++) {
      const memory = memoryIdempotency();
      const store: IdempotencyStore = { ...memory, claim: async (one) => memory.claim(one) };
      const controller = new AbortController();
      let ran: Claim | undefined;
      const call = idempotent(
        store,
        'k',
        async (claim) => {
          ran = claim;
          await setImmediate();
          if (claim.signal.aborted) throw claim.signal.reason;
        },
        { signal: controller.signal },
      );
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      seen.add(ran ? 'the work ran' : 'the claim was under way');
      controller.abort(new Error('stop'));
      await expect(call).rejects.toThrow('stop');
      expect(ran?.signal.aborted ?? true).toBe(true);
      expect(memory.read('k')).toBeUndefined();
    }
    expect(seen.size).toBe(2);
  });

  it('does not run the work where the answer to the claim came after the lease', async () => {
    const s = stage();
    const memory = memoryIdempotency({ clock: s.clock });
    const store: IdempotencyStore = {
      ...memory,
      claim: async (request) => later(s, 1000, await memory.claim(request)),
    };
    const run = vi.fn<() => void>();
    const late = failing(idempotent(store, 'k', run, { clock: s.clock, lease: 1000 }));
    await s.clock.advance(10_000);
    expect(await late).toMatchObject({
      code: 'IDEMPOTENCY_STORE_FAILED',
      message: expect.stringContaining('came after the lease was over') as string,
    });
    expect(run).not.toHaveBeenCalled();
    expect(memory.read('k')).toBeUndefined();
    const open = { clock: s.clock, lease: 1000, whenStoreFails: 'run' } as const;
    const unprotected = idempotent(store, 'k', ({ fencingToken }) => fencingToken, open);
    await s.clock.advance(10_000);
    expect(await unprotected).toBeUndefined();
  });

  it('asks once more where only the first answer came after the lease, as that of a slow connection', async () => {
    const s = stage();
    const memory = memoryIdempotency({ clock: s.clock });
    const answers: string[] = [];
    const store: IdempotencyStore = {
      ...memory,
      claim: async (request) => {
        const answer = await memory.claim(request);
        return later(s, answers.push(answer.state) === 1 ? 1000 : 0, answer);
      },
    };
    const called = idempotent(store, 'k', () => 'done', { clock: s.clock, lease: 1000 });
    await s.clock.advance(10_000);
    expect(await called).toBe('done');
    expect(answers).toEqual(['claimed', 'claimed']);
  });

  it('waits for who took over while its first answer was on its way', async () => {
    const s = stage();
    const memory = memoryIdempotency({ clock: s.clock });
    const run = vi.fn<() => string>(() => 'mine');
    let isFirst = true;
    const store: IdempotencyStore = {
      ...memory,
      claim: async (request) => {
        const answer = memory.claim(request);
        if (!isFirst) return answer;
        isFirst = false;
        await later(s, 1000, undefined);
        await idempotent(memory, 'k', () => 'theirs', { clock: s.clock, lease: 1000 });
        return answer;
      },
    };
    const called = idempotent(store, 'k', run, { clock: s.clock, lease: 1000 });
    await s.clock.advance(10_000);
    expect(await called).toBe('theirs');
    expect(run).not.toHaveBeenCalled();
  });

  it('runs the work of a transaction, which has no lease, however late the answer', async () => {
    const s = stage();
    const memory = memoryIdempotency({ clock: s.clock });
    const store: IdempotencyStore = {
      ...memory,
      transactional: true,
      claim: async (request) => {
        await s.clock.advance(2000);
        return memory.claim(request);
      },
    };
    expect(await idempotent(store, 'k', () => 1, { clock: s.clock, lease: 1000 })).toBe(1);
  });
});

/** An answer that takes its time. */
function later<T>({ clock }: ReturnType<typeof stage>, ms: number, answer: T): Promise<T> {
  return new Promise((resolve) => {
    clock.setTimer(() => resolve(answer), ms);
  });
}

describe('a cleared key', () => {
  it('is lost for the owner that still runs, and its result is not recorded', async () => {
    const s = stage();
    const first = work();
    const running = failing(s.once(first.fn));
    await settle();
    await s.memory.release('k');
    expect(await s.once(() => 'second')).toBe('second');
    first.resolve('first');
    expect(await running).toMatchObject({ code: 'IDEMPOTENCY_LEASE_LOST', result: 'first' });
    expect(await s.once(() => 'third')).toBe('second');
  });
});

describe('a store that fails', () => {
  it('before the work: the work does not run', async () => {
    const s = stage();
    s.fault('claim', 'down', 'down', 'down');
    const call = failing(s.once(() => s.effect()));
    await s.clock.advance('10s');
    const error = await call;
    expect(error).toMatchObject({ code: 'IDEMPOTENCY_STORE_FAILED' });
    expect(error.message).toContain('connection refused');
    expect(error.cause).toMatchObject({ message: 'connection refused' });
    expect(s.effects).toBe(0);
    expect(s.events).toMatchObject([
      { event_type: 'idempotency_detail', action: 'refused', redrive: {} },
    ]);
  });

  it('before the work: it runs unprotected by option, which is audited', async () => {
    const s = stage();
    s.fault('claim', 'down', 'down', 'down');
    const tokens: unknown[] = [];
    const call = s.once(
      ({ fencingToken, signal }) => {
        tokens.push(fencingToken, signal.aborted);
        return s.effect();
      },
      { whenStoreFails: 'run' },
    );
    await s.clock.advance('10s');
    expect(await call).toBe(1);
    expect(tokens).toEqual([undefined, false]);
    expect(s.actions()).toEqual(['unprotected']);
  });

  it('passes the signal of the caller to work that runs unprotected', async () => {
    const s = stage();
    s.fault('claim', 'down', 'down', 'down');
    const { signal } = new AbortController();
    const call = s.once((claim) => claim.signal === signal, { whenStoreFails: 'run', signal });
    await s.clock.advance('10s');
    expect(await call).toBe(true);
  });

  it('once or twice is asked again', async () => {
    const s = stage();
    s.fault('claim', 'down', 'no answer');
    const call = s.once(() => s.effect());
    await s.clock.advance('10s');
    expect(await call).toBe(1);
  });

  it('and loses the answer to a claim: the same caller gets the key all the same', async () => {
    const s = stage();
    s.fault('claim', 'answer lost');
    const call = s.once(() => s.effect());
    await s.clock.advance('1s');
    expect(await call).toBe(1);
    expect(s.actions()).toEqual(['record']);
  });

  it('and loses every answer to a claim: the key is let go', async () => {
    const s = stage();
    s.fault('claim', 'answer lost', 'answer lost', 'answer lost');
    const call = failing(s.once(() => s.effect()));
    await s.clock.advance('1s');
    expect(await call).toMatchObject({ code: 'IDEMPOTENCY_STORE_FAILED' });
    await settle();
    expect(await s.memory.read('k')).toBeUndefined();
  });

  it('and takes a claim after it was given up: the key is free after a lease', async () => {
    const s = stage();
    s.fault('claim', 'late', 'late', 'late');
    const call = failing(s.once(() => s.effect()));
    await s.clock.advance('20s');
    await call;
    s.arrive();
    expect(await s.memory.read('k')).toMatchObject({ state: 'held' });
    const second = s.once(() => s.effect(), { maxWait: '1m' });
    await s.clock.advance('31s');
    expect(await second).toBe(1);
  });

  it('after the work: it is told again, and the result is recorded', async () => {
    const s = stage();
    s.fault('record', 'down', 'no answer', 'answer lost');
    const call = s.once(() => s.effect());
    await s.clock.advance('20s');
    expect(await call).toBe(1);
    expect(await s.once(() => s.effect())).toBe(1);
    expect(s.actions()).toEqual(['record', 'hit']);
  });

  it('after the work, for longer than the lease: the result is returned, and audited as unrecorded', async () => {
    const s = stage();
    s.fault('record', ...Array.from({ length: 1000 }, () => 'down' as const));
    const call = s.once(() => s.effect(), { lease: '30s' });
    await s.clock.advance('29s');
    expect(s.actions()).toEqual([]);
    await s.clock.advance('2s');
    expect(await call).toBe(1);
    expect(s.actions()).toEqual(['unrecorded']);
  });

  it('and takes a record late: nothing is done twice', async () => {
    const s = stage();
    s.fault('record', 'late');
    const call = s.once(() => s.effect());
    await s.clock.advance('10s');
    expect(await call).toBe(1);
    s.arrive();
    expect(await s.once(() => s.effect())).toBe(1);
  });

  it('when the key is to be let go: the caller gets the error of the work', async () => {
    const s = stage();
    s.fault('release', ...Array.from({ length: 99 }, () => 'down' as const));
    const call = s.once(() => Promise.reject(new Error('no funds'))).catch(String);
    await s.clock.advance('5s');
    expect(await call).toBe('Error: no funds');
    expect(await s.memory.read('k')).toMatchObject({ state: 'held' });
  });

  it.each(['down', 'answer lost'] as const)(
    'for a moment when the key is to be let go (%s): it is free all the same',
    async (how) => {
      const s = stage();
      s.fault('release', how);
      const call = s.once(() => Promise.reject(new Error('no'))).catch(String);
      await s.clock.advance('1s');
      expect(await call).toBe('Error: no');
      expect(await s.memory.read('k')).toBeUndefined();
    },
  );

  it('by throwing at once, or by being full', async () => {
    const memory = memoryIdempotency({ maxKeys: 1 });
    await idempotent(memory, 'a', () => 1);
    let claims = 0;
    const counting: IdempotencyStore = {
      ...memory,
      claim(request) {
        claims += 1;
        return memory.claim(request);
      },
    };
    const error = await failing(idempotent(counting, 'b', () => 1));
    expect(claims).toBe(1);
    expect(error).toMatchObject({
      code: 'IDEMPOTENCY_STORE_FAILED',
      cause: { code: 'IDEMPOTENCY_STORE_FULL' },
    });
    const odd: IdempotencyStore = {
      ...memory,
      claim() {
        throw 'odd';
      },
    };
    expect((await failing(idempotent(odd, 'c', () => 1))).message).toContain('odd');
  });
});

describe('a result that cannot be stored', () => {
  const ring: Record<string, unknown> = {};
  ring['ring'] = ring;
  it.each<[string, unknown, string]>([
    ['too large', 'x'.repeat(100), 'it has 102 bytes of JSON'],
    ['too large in bytes', 'ü'.repeat(60), 'it has 122 bytes of JSON'],
    ['a BigInt', 1n, 'cannot be written as JSON'],
    ['a cycle', ring, 'cannot be written as JSON'],
    ['a function', () => 1, 'a function cannot be written as JSON'],
    ['a Map', new Map([['a', 1]]), 'JSON would lose a Map.'],
    ['NaN', { total: NaN }, 'JSON would lose NaN at total.'],
  ])('is recorded as done without its value, then an error: %s', async (_, value, why) => {
    const s = stage();
    const fn = vi.fn(() => value);
    const error = await failing(s.once(fn, { maxResultBytes: 100 }));
    expect(error).toMatchObject({ code: 'RESULT_NOT_STORED', result: value });
    expect(error.message).toContain(why);
    const again = await failing(s.once(fn, { maxResultBytes: 100 }));
    expect(again).toMatchObject({ code: 'RESULT_NOT_STORED' });
    expect(again).not.toHaveProperty('result');
    expect(fn).toHaveBeenCalledTimes(1);
    expect(s.actions()).toEqual(['record', 'unstored', 'hit']);
  });

  it('is stored up to the limit', async () => {
    const s = stage();
    expect(await s.once(() => 'x'.repeat(98), { maxResultBytes: 100 })).toHaveLength(98);
  });
});

describe('failures', () => {
  it('are stored where that was asked for, and the work does not run again', async () => {
    const s = stage();
    const declined = Object.assign(new TypeError('declined'), { code: 'E_DECLINED' });
    const call = s.once(() => Promise.reject(declined), { storeFailures: true });
    await expect(call).rejects.toBe(declined);
    const error = await failing(s.once(() => s.effect()));
    expect(error).toMatchObject({
      code: 'IDEMPOTENCY_FAILED_BEFORE',
      failure: { name: 'TypeError', message: 'declined', code: 'E_DECLINED' },
    });
    expect(s.effects).toBe(0);
    expect(s.actions()).toEqual(['record', 'hit']);
  });

  it('are stored as a predicate says', async () => {
    const s = stage();
    const storeFailures = (error: unknown) => error === 'final';
    const fail = (error: unknown) => () => {
      throw error;
    };
    await expect(s.once(fail('passing'), { storeFailures })).rejects.toBe('passing');
    await expect(s.once(fail('final'), { storeFailures })).rejects.toBe('final');
    expect(await failing(s.once(() => 1))).toMatchObject({
      failure: { name: 'Error', message: 'final' },
    });
  });

  it('are those of the work, also where the predicate throws or the store is away', async () => {
    const s = stage();
    const storeFailures = () => {
      throw new Error('predicate');
    };
    await expect(s.once(() => Promise.reject(new Error('a')), { storeFailures })).rejects.toThrow(
      'a',
    );
    s.fault('record', ...Array.from({ length: 1000 }, () => 'down' as const));
    const call = s.once(() => Promise.reject(new Error('b')), { storeFailures: true });
    const caught = call.catch((error: unknown) => error);
    await s.clock.advance('31s');
    expect(await caught).toMatchObject({ message: 'b' });
    expect(s.actions()).toEqual(['unrecorded']);
  });
});

describe('within a transaction of the caller', () => {
  function transactional() {
    const s = stage();
    const store = { ...s.store, transactional: true };
    const once = <T>(fn: (claim: Claim) => T, options: IdempotentOptions = {}) =>
      idempotent(store, 'k', fn, { clock: s.clock, ...options });
    return { ...s, once };
  }

  it('no lease is renewed', async () => {
    const s = transactional();
    const first = work();
    const running = s.once(first.fn);
    await s.clock.advance('10m');
    first.resolve('paid');
    expect(await running).toBe('paid');
    expect(s.calls).toEqual(['claim', 'record']);
  });

  it('a record that fails is an error, so that the caller rolls back', async () => {
    const s = transactional();
    s.fault('record', 'down');
    const error = await failing(s.once(() => 1));
    expect(error).toMatchObject({ code: 'IDEMPOTENCY_STORE_FAILED' });
    expect(error.message).toContain('roll back');
    expect(s.calls).toEqual(['claim', 'record']);
  });

  it('a failure that cannot be stored is that of the work', async () => {
    const s = transactional();
    s.fault('record', 'down');
    const call = s.once(() => Promise.reject(new Error('no')), { storeFailures: true });
    await expect(call).rejects.toThrow('no');
  });

  it('nothing is let go after a claim that failed, but after work that failed', async () => {
    const s = transactional();
    s.fault('claim', 'down');
    const error = await failing(s.once(() => 1));
    expect(error.message).toMatch(/connection refused.*not run.*roll back/);
    // After its first failure a transaction only says that it has failed.
    expect(s.calls).toEqual(['claim']);
    await expect(s.once(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(s.calls.at(-1)).toBe('release');
  });
});

describe('bad input is refused before the work', () => {
  const memory = memoryIdempotency();
  const fn = vi.fn(() => 1);
  it('asks for the store where the key came first', async () => {
    const call = idempotent as unknown as (...args: unknown[]) => Promise<unknown>;
    const missing =
      'idempotent(store, key, fn): the third argument must be a function, and is undefined.';
    await expect(call('key', fn)).rejects.toThrow(`${missing} Is the store missing?`);
    await expect(call(memory, 'key')).rejects.toThrow(missing);
  });

  it.each<[string, unknown[], string]>([
    ['an empty key', [memory, '', fn], 'INVALID_KEY'],
    ['a long key', [memory, 'x'.repeat(256), fn], 'INVALID_KEY'],
    ['a promise for the work', [memory, 'k', Promise.resolve(1)], 'NOT_A_FUNCTION'],
    ['no store', [undefined, 'k', fn], 'INVALID_CONFIG'],
    ['half a store', [{ claim: () => 1 }, 'k', fn], 'INVALID_CONFIG'],
    ['a misspelt option', [memory, 'k', fn, { leese: 1 }], 'INVALID_CONFIG'],
    ['a lease of nothing', [memory, 'k', fn, { lease: 0 }], 'INVALID_CONFIG'],
    ['an audit that is no function', [memory, 'k', fn, { audit: {} }], 'INVALID_CONFIG'],
    ['options that are null', [memory, 'k', fn, null], 'INVALID_CONFIG'],
    ['options that are a number', [memory, 'k', fn, 5], 'INVALID_CONFIG'],
    ['storeFailures as a text', [memory, 'k', fn, { storeFailures: 'no' }], 'INVALID_CONFIG'],
    ['a signal that is none', [memory, 'k', fn, { signal: {} }], 'INVALID_CONFIG'],
    ['a payload with a BigInt', [memory, 'k', fn, { payload: { a: 1n } }], 'NOT_JSON'],
    ['a payload with a function', [memory, 'k', fn, { payload: [fn] }], 'NOT_JSON'],
    ['a payload with a lone surrogate', [memory, 'k', fn, { payload: '\ud800' }], 'NOT_JSON'],
    ['metadata that is no JSON', [memory, 'k', fn, { metadata: 1n }], 'NOT_JSON'],
    ['metadata that is a function', [memory, 'k', fn, { metadata: fn }], 'NOT_JSON'],
    [
      'metadata that is too large',
      [memory, 'k', fn, { metadata: 'x'.repeat(20_000) }],
      'INVALID_VALUE',
    ],
    [
      'metadata that throws',
      [
        memory,
        'k',
        fn,
        {
          metadata: {
            toJSON() {
              throw 'odd';
            },
          },
        },
      ],
      'NOT_JSON',
    ],
  ])('%s', async (_, args, code) => {
    const call = (idempotent as unknown as (...args: unknown[]) => Promise<unknown>)(...args);
    await expect(call).rejects.toMatchObject({ code });
    expect(fn).not.toHaveBeenCalled();
  });
});

it('an error of this kind is known by its name', () => {
  expect(isIdempotencyError(new IdempotencyError('IDEMPOTENCY_CONFLICT', 'x'))).toBe(true);
  expect(isIdempotencyError(new Error('x'))).toBe(false);
  expect(isIdempotencyError(undefined)).toBe(false);
});

describe('whatever is thrown', () => {
  const bare: unknown = Object.create(null);
  const evil = {
    get message(): string {
      throw new Error('a getter');
    },
    get name(): string {
      throw new Error('a getter');
    },
  };

  it.each([
    ['an object without a prototype', bare],
    ['getters that throw', evil],
    ['nothing', undefined],
    ['a symbol', Symbol('x')],
  ])('by the work comes back, and is stored as a failure: %s', async (_, thrown) => {
    const s = stage();
    const call = s.once(() => Promise.reject(thrown as Error), { storeFailures: true });
    expect(await call.catch((error: unknown) => error)).toBe(thrown);
    expect(await failing(s.once(() => 1))).toMatchObject({ code: 'IDEMPOTENCY_FAILED_BEFORE' });
  });

  it.each([
    ['an object without a prototype', bare],
    ['getters that throw', evil],
    ['a text that no store keeps', new Error(`\0\ud800${'x'.repeat(100_000)}`)],
  ])('by the result when it is written, the work is recorded as done: %s', async (_, thrown) => {
    const s = stage();
    const result = {
      toJSON() {
        throw thrown as Error;
      },
    };
    const error = await failing(s.once(() => result));
    expect(error).toMatchObject({ code: 'RESULT_NOT_STORED', result });
    const again = await failing(s.once(() => s.effect()));
    expect(again).toMatchObject({ code: 'RESULT_NOT_STORED' });
    expect(again.message.length).toBeLessThan(2000);
    expect(again.message).not.toMatch(/[\0\p{Surrogate}]/u);
    expect(s.effects).toBe(0);
  });

  it('by an asynchronous predicate, the failure is not stored', async () => {
    const s = stage();
    const storeFailures = () => Promise.reject<boolean>(new Error('of the predicate'));
    const call = s.once(() => Promise.reject(new Error('of the work')), { storeFailures });
    await expect(call).rejects.toThrow('of the work');
    expect(await s.memory.read('k')).toBeUndefined();
    const kept = s.once(() => Promise.reject(new Error('x')), { storeFailures: async () => true });
    await expect(kept).rejects.toThrow('x');
    expect(await s.memory.read('k')).toMatchObject({ outcome: { kind: 'failure' } });
  });

  it('by the subject of the events, the work is done', async () => {
    vi.spyOn(console, 'error').mockReturnValueOnce(undefined);
    const subject = {
      operation: '',
      get category(): string {
        throw new Error('a getter');
      },
    };
    expect(await stage().once(() => 1, { subject })).toBe(1);
    vi.restoreAllMocks();
  });
});
