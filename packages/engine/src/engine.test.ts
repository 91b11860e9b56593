import { presets, replayAudit } from 'redrive';
import { virtualClock } from 'redrive/testing';
import { describe, expect, it, vi } from 'vitest';
import { memory, MemoryAudit } from './adapters/memory/index.ts';
import { createEngine } from './engine.ts';
import { EngineError, isEngineError } from './errors.ts';
import type { EngineEvent } from './events.ts';
import type { HandlerContext } from './dispatch/handlers.ts';
import * as everything from './index.ts';
import { giveUp } from './model/outcomes.ts';
import { createTestBroker, createTestEngine } from './testing/index.ts';

const nothing = () => undefined;

describe('options', () => {
  const make = (options: object) => () => createEngine({ store: memory(), ...options });

  it('that do not exist are refused, with the nearest one', () => {
    const refused = { name: 'EngineError', code: 'INVALID_ENGINE' };
    expect(make({ leese: '5s' })).toThrow(expect.objectContaining(refused));
    expect(make({ leese: '5s' })).toThrow("There is no option 'leese'. Did you mean 'lease'?");
    expect(make({ zzz: 1 })).toThrow(/^There is no option 'zzz'\.$/);
  });

  it('without a store are refused, with a way out', () => {
    for (const store of [undefined, null, {}, 'tasks.db']) {
      expect(() => createEngine({ store } as never)).toThrow(
        expect.objectContaining({
          code: 'INVALID_ENGINE',
          message: expect.stringContaining("sqlite('tasks.db')"),
        }),
      );
    }
  });

  it.each([
    [{ lease: 'long' }, 'INVALID_CONFIG'],
    [{ lease: 5 }, 'INVALID_CONFIG'],
    [{ poll: 0 }, 'INVALID_CONFIG'],
    [{ maxLostLeases: 0 }, 'INVALID_CONFIG'],
    [{ maxPayloadBytes: 1.5 }, 'INVALID_CONFIG'],
    [{ onUnavailable: 'drop' }, 'INVALID_CONFIG'],
    [{ retention: { retried: '1h' } }, 'INVALID_CONFIG'],
    [{ retention: { done: 'never' } }, 'INVALID_CONFIG'],
    [{ lane: { concurrency: 0 } }, 'INVALID_CONFIG'],
    [{ lanes: { 'handler:a': { timeout: -1 } } }, 'INVALID_CONFIG'],
    [{ lanes: { 'handler:a': { policy: { maxAttempts: 0 } } } }, 'INVALID_POLICY'],
    [{ lane: { policy: { base: 'x' } } }, 'INVALID_POLICY'],
    [{ policy: { maxAttempts: 0 } }, 'INVALID_POLICY'],
    [{ policies: { a: { maxAttempts: 0 } } }, 'INVALID_POLICY'],
  ])('with a fault are refused: %j', (options, code) => {
    expect(make(options)).toThrow(expect.objectContaining({ name: 'ConfigError', code }));
  });

  it('list all faults at once', () => {
    expect(make({ lease: 'x', poll: 'y', grace: 'z' })).toThrow(
      /^The engine has faults:\n {2}lease: .*\n {2}poll: .*\n {2}grace: /,
    );
  });

  it('of a lane go before those of its handler, and those of the handler before those of all', async () => {
    const at: string[] = [];
    const engine = createTestEngine({
      lane: { policy: { base: '3s', jitter: 'none' } },
      lanes: { 'handler:a': { policy: { base: '1s', jitter: 'none' } } },
    });
    const fails = (name: string) => () => {
      at.push(`${name} ${engine.clock.monotonic()}`);
      throw new Error('down');
    };
    engine.handle('a', { policy: { base: '2s', jitter: 'none' } }, fails('a'));
    engine.handle('b', { policy: { base: '2s', jitter: 'none' } }, fails('b'));
    engine.handle('c', fails('c'));
    for (const to of ['a', 'b', 'c']) await engine.submit(to, 1);
    await engine.advance(3000);
    expect(at).toEqual(['a 0', 'b 0', 'c 0', 'a 1000', 'b 2000', 'a 3000', 'c 3000']);
  });

  it('that say nothing mean the policy of the scheduler, for errors nobody knows too', async () => {
    const at: number[] = [];
    const engine = createTestEngine();
    engine.handle('a', () => {
      at.push(engine.clock.monotonic());
      throw new Error('whatever');
    });
    const { id } = await engine.submit('a', 1);
    await engine.advance('10m');
    expect(at).toHaveLength(presets.scheduler.maxAttempts);
    const gaps = at.slice(1).map((ms, i) => ms - at[i]!);
    for (const [i, gap] of gaps.entries()) {
      expect(gap).toBeGreaterThanOrEqual(2000 * 2 ** i);
      expect(gap).toBeLessThanOrEqual(2000 * 2 ** i + 1000);
    }
    expect(await engine.get(id)).toMatchObject({ status: 'failed', attempt: 4 });
  });

  it('without a log speak up only when somebody should look', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(nothing);
    const error = vi.spyOn(console, 'error').mockImplementation(nothing);
    try {
      const clock = virtualClock();
      const on = () => {
        throw new Error('a bad listener');
      };
      const store = memory({ clock });
      const engine = createEngine({ store, clock, on, defer: queueMicrotask });
      engine.handle('a', (_: unknown, { log }: HandlerContext) => {
        log.debug({}, 'not shown');
        log.info({}, 'not shown');
        log.warn({ n: 1 }, 'shown');
      });
      await engine.start();
      await engine.submit('a', 1);
      await clock.advance(0);
      expect(warn.mock.calls).toEqual([[expect.stringMatching(/^redrive: shown \{.*"n":1\}$/)]]);
      expect(error.mock.calls[0]).toEqual(['redrive: a listener failed: a bad listener']);
      // And a listener that throws has disturbed nothing.
      expect(await engine.list({ status: 'done', limit: 9 })).toHaveLength(1);
    } finally {
      warn.mockRestore();
      error.mockRestore();
    }
  });
});

describe('a task by its id', () => {
  it('is found whatever the case of its letters', async () => {
    const engine = createTestEngine();
    const { id } = await engine.submit('a', 1);
    expect(await engine.get(id.toUpperCase())).toMatchObject({ messageId: id });
    expect(await engine.get(id, 'a')).toMatchObject({ messageId: id });
    expect(await engine.get(id, 'b')).toBeUndefined();
    expect(await engine.get('0b7c0000-0000-4000-8000-00000000c0de')).toBeUndefined();
  });

  it('needs its destination where there are several', async () => {
    const engine = createTestEngine();
    const { id } = await engine.submit('a', 1);
    await engine.submit({ kind: 'queue', address: 'a' }, 1, { id });
    const unclear = { code: 'INVALID_TASK' };
    await expect(engine.get(id)).rejects.toMatchObject(unclear);
    await expect(engine.cancel(id)).rejects.toMatchObject(unclear);
    await expect(engine.expedite(id)).rejects.toMatchObject(unclear);
    expect(await engine.cancel(id, { kind: 'queue', address: 'a' })).toBe('cancelled');
    expect(await engine.get(id, 'a')).toMatchObject({ status: 'pending' });
  });

  it('is cancelled at once while it waits', async () => {
    const engine = createTestEngine().handle('a', nothing);
    const { id } = await engine.submit('a', 1);
    expect(await engine.cancel(id)).toBe('cancelled');
    expect(await engine.cancel(id)).toBe('cancelled');
    await engine.advance('1h');
    expect(await engine.get(id)).toMatchObject({ status: 'cancelled', attempt: 0 });
    expect(await engine.cancel('0b7c0000-0000-4000-8000-00000000c0de')).toBe('unknown');
    expect(await engine.expedite('0b7c0000-0000-4000-8000-00000000c0de')).toBe('unknown');
    expect(await engine.expedite(id)).toBe('over');
  });

  it.each([
    ['fails', 'cancelled'],
    ['gives up', 'cancelled'],
    ['works', 'done'],
  ])('in delivery is cancelled when that %s: %s', async (how, status) => {
    let end = nothing as () => void;
    const engine = createTestEngine({ patience: 1 }).handle('a', async () => {
      await new Promise<void>((resolve) => {
        end = resolve;
      });
      if (how === 'fails') throw new Error('down');
      return how === 'gives up' ? giveUp('no use') : undefined;
    });
    const { id } = await engine.submit('a', 1);
    await engine.advance(0);
    expect(await engine.expedite(id)).toBe('in_delivery');
    expect(await engine.cancel(id)).toBe('cancelling');
    end();
    await engine.drain();
    expect(await engine.get(id)).toMatchObject({ status });
    expect(await engine.inbox()).toEqual([]);
  });
});

describe('events', () => {
  it('tell the whole story of each task', async () => {
    const events: EngineEvent[] = [];
    const engine = createTestEngine({
      policy: { maxAttempts: 2, base: '5s', jitter: 'none' },
      on: (event) => events.push(event),
    });
    engine.handle('a', (what: string) => {
      if (what === 'fails') throw new Error('down');
    });
    const works = await engine.submit('a', 'works', { dedupeKey: 'w' });
    await engine.submit('a', 'works', { dedupeKey: 'w' });
    await engine.advance('1s');
    const fails = await engine.submit('a', 'fails');
    await engine.advance('1m');
    const lane = 'handler:a';
    const lease = expect.any(Number) as number;
    const started = { type: 'started', lane, lateMs: 0, again: false, lease };
    expect(events).toEqual([
      { type: 'accepted', id: works.id, lane },
      { type: 'duplicate', id: works.id, lane },
      { ...started, id: works.id, attempt: 1 },
      { type: 'done', id: works.id, lane, attempt: 1 },
      { type: 'accepted', id: fails.id, lane },
      { ...started, id: fails.id, attempt: 1 },
      {
        type: 'retry',
        id: fails.id,
        lane,
        attempt: 1,
        delayMs: 5000,
        decision: expect.objectContaining({ action: 'retry', reason: 'BACKOFF' }),
      },
      { ...started, id: fails.id, attempt: 2 },
      { type: 'failed', id: fails.id, lane, attempt: 2, reason: 'EXHAUSTED' },
    ]);
  });

  it('say how late a start was', async () => {
    const late: number[] = [];
    const engine = createTestEngine({
      on: (event) => {
        if (event.type === 'started') late.push(event.lateMs);
      },
    });
    await engine.submit('a', 1);
    await engine.advance('7s');
    engine.handle('a', nothing);
    await engine.drain();
    expect(late).toEqual([7000]);
  });
});

describe('the audit trail', () => {
  it('has every decision with its facts, so that it can be replayed', async () => {
    const audit = new MemoryAudit();
    const engine = createTestEngine({
      audit,
      instance: 'one',
      policy: { maxAttempts: 2, base: '5s', jitter: 'none' },
    });
    engine.handle('a', (what: string) => {
      if (what === 'fails') throw Object.assign(new Error('down'), { code: 'ECONNRESET' });
    });
    await engine.submit('a', 'works');
    await engine.drain();
    const fails = await engine.submit('a', 'fails');
    await engine.advance('1m');
    const late = await engine.submit('a', 'works', { expiresAt: engine.clock.now() });
    await engine.drain();
    await engine.stop();
    const about = { lane: 'handler:a', generation: 0, instance: 'one' };
    const policy = expect.stringMatching(/^[0-9a-f]{16}$/) as string;
    const failed = { ...about, policy, message_id: fails.id, key: fails.id, seed: 0 };
    expect(audit.events).toMatchObject([
      { event_type: 'policy_registered', redrive: { sequence: 1 } },
      {
        event_type: 'retry_attempt',
        attempt_number: 1,
        delay_seconds: 5,
        timestamp: '2025-01-01T00:00:00.000Z',
        redrive: {
          ...failed,
          sequence: 2,
          facts: { attempt: 1, failure: { code: 'ECONNRESET' } },
          decision: { action: 'retry', delay_ms: 5000 },
        },
      },
      {
        event_type: 'retry_exhausted',
        total_attempts: 2,
        timestamp: '2025-01-01T00:00:05.000Z',
        redrive: {
          ...failed,
          sequence: 3,
          facts: { attempt: 2 },
          decision: { action: 'giveUp', reason: 'EXHAUSTED' },
        },
      },
      {
        event_type: 'retry_abandoned',
        reason: 'expired',
        redrive: { ...about, message_id: late.id, sequence: 4 },
      },
    ]);
    const report = await replayAudit(audit.events);
    expect(report).toMatchObject({ checked: 2, same: 2, missing: 0 });
  });

  it('has what somebody did by hand', async () => {
    const audit = new MemoryAudit();
    const engine = createTestEngine({ audit }).handle('a', nothing);
    const { id } = await engine.submit('a', 1, { dueAt: engine.clock.now() + 60_000 });
    await engine.pause('handler:a', 'ada');
    await engine.resume('handler:a');
    await engine.expedite(id);
    await engine.cancel(id);
    await engine.stop();
    expect(audit.events).toMatchObject([
      { event_type: 'operator_action', action: 'pause', by: 'ada', lane: 'handler:a' },
      { action: 'resume', by: null, lane: 'handler:a' },
      { action: 'expedite', message_id: id, details: { result: 'expedited' } },
      { action: 'cancel', message_id: id, details: { result: 'cancelled' } },
    ]);
  });

  it('goes to the sink of the store when it is simply on, with successes if wanted', async () => {
    const clock = virtualClock();
    const store = memory({ clock });
    const audit = { successes: true };
    const engine = createEngine({ store, clock, audit, defer: queueMicrotask });
    engine.handle('a', nothing);
    await engine.start();
    await engine.submit('a', 1);
    await clock.advance(0);
    const { events } = store.audit as MemoryAudit;
    expect(events).toMatchObject([{ event_type: 'retry_succeeded' }]);
  });

  it('is off unless it is asked for', async () => {
    const clock = virtualClock();
    const store = memory({ clock });
    const engine = createEngine({ store, clock, defer: queueMicrotask }).handle('a', () => {
      throw new Error('down');
    });
    await engine.start();
    await engine.submit('a', 1);
    await clock.advance(0);
    expect((store.audit as MemoryAudit).events).toEqual([]);
  });
});

describe('the seed of a deployment', () => {
  it('is read from the store, so that all instances draw the same delays', async () => {
    const delays = async (seed: unknown) => {
      const clock = virtualClock();
      const store = memory({ clock });
      if (seed !== undefined) await store.writeState('seed', seed, 0);
      const engine = createEngine({
        store,
        clock,
        defer: queueMicrotask,
        policy: { base: '1h', jitter: 'full' },
      }).handle('a', () => {
        throw new Error('down');
      });
      await engine.start();
      const id = '0b7c0000-0000-4000-8000-00000000c0de';
      await engine.submit('a', 1, { id });
      await clock.advance(0);
      return (await engine.get(id))?.delayMs;
    };
    expect(await delays(7)).toBe(await delays(7));
    expect(await delays(7)).not.toBe(await delays(8));
    expect(await delays(undefined)).toBe(await delays(0));
    expect(await delays('odd')).toBe(await delays(0));
  });
});

describe('a broker', () => {
  it('serves its kind of destinations, beside handlers', async () => {
    const broker = createTestBroker();
    const engine = createTestEngine({ brokers: [broker] }).handle('a', nothing);
    await engine.submit({ kind: 'queue', address: 'orders' }, new Uint8Array([1, 2]));
    await engine.submit('a', 1);
    await engine.drain();
    expect(broker.published).toMatchObject([
      { address: 'orders', payload: new Uint8Array([1, 2]) },
    ]);
    expect((await engine.list({ limit: 9 })).map(({ status }) => status)).toEqual([
      'done',
      'retried',
    ]);
  });
});

describe('an error', () => {
  it('is told by its name, also one of another copy of the library', () => {
    const error = new EngineError('INVALID_ID', 'no id', { cause: new Error('why') });
    expect(error).toMatchObject({ name: 'EngineError', code: 'INVALID_ID', faults: [] });
    expect(error.cause).toEqual(new Error('why'));
    expect(isEngineError(error)).toBe(true);
    expect(isEngineError(Object.assign(new Error('x'), { name: 'EngineError', faults: [] }))).toBe(
      true,
    );
    for (const other of [undefined, null, 'x', new Error('x'), { name: 'EngineError' }]) {
      expect(isEngineError(other)).toBe(false);
    }
  });
});

it('exports what a user needs, and no more', () => {
  expect(Object.keys(everything).sort()).toEqual([
    'EngineError',
    'MAX_ENTRY_DELAY_MS',
    'MAX_ENTRY_ID_LENGTH',
    'MAX_ENTRY_PAYLOAD_BYTES',
    'actResults',
    'bodyMark',
    'createEngine',
    'differenceOf',
    'giveUp',
    'isEngineError',
    'itemMoves',
    'itemOf',
    'jobKey',
    'laneOf',
    'laneStates',
    'lines',
    'moves',
    'reasons',
    'retryIn',
    'snooze',
    'storeDelayQueue',
    'uuidOf',
  ]);
});
