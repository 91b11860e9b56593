import type { Clock } from 'redrive';
import { seededRandom, virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { memory } from '../adapters/memory/index.ts';
import { createEngine } from '../engine.ts';
import type { EngineOptions } from '../engine-options.ts';
import type { EngineEvent } from '../events.ts';
import type { Log } from '../host.ts';
import { createTestBroker } from '../testing/index.ts';
import { newTask, put } from '../testing/fixtures.ts';
import type { NewTask, Task } from '../model/task.ts';

const nothing = () => undefined;
const MiB = 1024 * 1024;

function stage(options: Partial<EngineOptions> = {}) {
  const clock = virtualClock();
  const store = memory({ clock });
  const events: EngineEvent[] = [];
  const said: string[] = [];
  let seed = 0;
  const say = (_: object, message: string) => void said.push(message);
  const log: Log = { debug: nothing, info: nothing, warn: say, error: say };
  const make = (more: Partial<EngineOptions> = {}) =>
    createEngine({
      store,
      clock,
      log,
      random: seededRandom((seed += 1)),
      defer: queueMicrotask,
      on: (event) => events.push(event),
      policy: { base: '1m', jitter: 'none' },
      poll: '1d',
      ...options,
      ...more,
    });
  return { clock, store, events, said, make, engine: make() };
}

function sleep(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(resolve, ms);
  });
}

const json = (value: unknown) => Buffer.from(JSON.stringify(value));

/** A task for a handler, as another process would have stored it. */
function taskFor(address: string, payload: unknown, changes: Partial<NewTask> = {}): NewTask {
  return newTask({ destination: { kind: 'handler', address }, payload: json(payload), ...changes });
}

async function changed(store: ReturnType<typeof memory>, id: number, changes: Partial<Task>) {
  await store.change([{ id }], (task) => ({ result: undefined, task: { ...task!, ...changes } }));
}

/** Its worker took it so many times and was never seen again. */
async function putLost(store: ReturnType<typeof memory>, task: NewTask, times: number) {
  const { id } = await put(store, { ...task, claims: times });
  return id;
}

describe('a wake-up', () => {
  it('comes for what is due earlier than all that is known, without polling', async () => {
    const { clock, engine, make } = stage();
    const at: number[] = [];
    engine.handle('a', () => at.push(clock.monotonic()));
    await engine.start();
    await engine.submit('a', 1, { dueAt: clock.now() + 3_600_000 });
    await clock.advance(1000);
    await engine.submit('a', 2, { dueAt: clock.now() + 500 });
    // From elsewhere, on the same store.
    await make().submit('a', 3, { dueAt: clock.now() + 250 });
    await make().submit('a', 4);
    await clock.advance('2h');
    expect(at).toEqual([1000, 1250, 1500, 3_600_000]);
  });

  it('comes with a retry, to the ms', async () => {
    const { clock, engine } = stage({ policy: { base: '17s', cap: '1h', jitter: 'none' } });
    const at: number[] = [];
    engine.handle('a', () => {
      at.push(clock.monotonic());
      throw new Error('down');
    });
    await engine.start();
    await engine.submit('a', 1);
    await clock.advance('1h');
    expect(at).toEqual([0, 17_000, 17_000 + 34_000, 17_000 + 34_000 + 68_000]);
  });

  it('comes when something is hurried', async () => {
    const { clock, engine } = stage();
    const at: number[] = [];
    engine.handle('a', () => at.push(clock.monotonic()));
    await engine.start();
    const { id } = await engine.submit('a', 1, { dueAt: clock.now() + 3_600_000 });
    await clock.advance(1000);
    expect(await engine.expedite(id)).toBe('expedited');
    await clock.advance(0);
    expect(at).toEqual([1000]);
  });

  it('is all there is: a store where nothing is due is left alone', async () => {
    const { clock, engine, store } = stage();
    const calls: string[] = [];
    for (const method of ['claim', 'lanes', 'renew', 'settle'] as const) {
      const real = store[method] as (...args: unknown[]) => unknown;
      Object.assign(store, {
        [method]: (...args: unknown[]) => {
          calls.push(method);
          return real.apply(store, args);
        },
      });
    }
    engine.handle('a', nothing);
    await engine.start();
    await engine.submit('a', 1, { dueAt: clock.now() + 3_600_000 });
    await clock.advance('59m');
    const before = calls.length;
    expect(before).toBeLessThan(10);
    await clock.advance(59_000);
    expect(calls).toHaveLength(before);
    await clock.advance('1s');
    expect(calls.slice(before)).toContain('settle');
  });

  it('that was lost is made up for by the poll', async () => {
    const { clock, store, make } = stage();
    store.watch = () => nothing;
    const at: number[] = [];
    const engine = make({ poll: '10s' }).handle('a', () => at.push(clock.monotonic()));
    await engine.start();
    await clock.advance(1000);
    await make().submit('a', 1);
    await clock.advance('9s');
    expect(at).toEqual([10_000]);
  });

  it('is not lost when it comes while a claim is under way', async () => {
    const { clock, store, engine } = stage();
    const { claim } = store;
    store.claim = async (request) => {
      const result = await claim.call(store, request);
      await sleep(clock, 50);
      return result;
    };
    const seen: number[] = [];
    engine.handle('a', (n: number) => seen.push(n));
    await engine.start();
    await engine.submit('a', 1);
    await clock.advance(10);
    await engine.submit('a', 2);
    await clock.advance('1s');
    expect(seen).toEqual([1, 2]);
  });
});

describe('a claim', () => {
  it('takes the earliest first, and no more than its lane can start', async () => {
    const { clock, engine } = stage();
    const seen: number[] = [];
    let most = 0;
    let running = 0;
    for (const n of [5, 3, 1, 4, 2]) {
      await engine.submit('a', n, { dueAt: clock.now() + n });
    }
    await clock.advance(10);
    engine.handle('a', { concurrency: 2 }, async (n: number) => {
      seen.push(n);
      running += 1;
      most = Math.max(most, running);
      await sleep(clock, 100);
      running -= 1;
    });
    await engine.start();
    await clock.advance(0);
    expect(engine.stats()).toMatchObject({ running: 2, held: 2 });
    await clock.advance('1s');
    expect(seen).toEqual([1, 2, 3, 4, 5]);
    expect(most).toBe(2);
  });

  it('takes some in advance from a lane with a pace, never more than a second of it', async () => {
    const { clock, engine, store } = stage();
    const sizes: number[] = [];
    const { claim } = store;
    store.claim = async (request) => {
      const result = await claim.call(store, request);
      if (result.tasks.length > 0) sizes.push(result.tasks.length);
      return result;
    };
    engine.handle('a', { concurrency: 2 }, () => sleep(clock, 100));
    await engine.submitMany(Array.from({ length: 100 }, (_, n) => ({ to: 'a', payload: n })));
    await engine.start();
    await clock.advance('10s');
    expect(await store.list({ status: 'done', limit: 999 })).toHaveLength(100);
    // Two to begin with; then what two at once start in a second, when half of that is gone.
    expect(sizes[0]).toBe(2);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(22);
    expect(sizes.length).toBeLessThan(15);
  });

  it('holds no more than 64 MiB of payloads', async () => {
    const broker = createTestBroker();
    const { clock, engine } = stage({ brokers: [broker], lane: { concurrency: 100 } });
    let isSlow = true;
    broker.answer = async () => {
      if (isSlow) await sleep(clock, 1000);
      return { outcome: 'confirmed' };
    };
    const payload = new Uint8Array(MiB);
    const to = { kind: 'queue', address: 'q' };
    await engine.submitMany(Array.from({ length: 70 }, () => ({ to, payload })));
    await engine.start();
    await clock.advance(500);
    expect(engine.stats()).toMatchObject({ held: 64 });
    isSlow = false;
    await clock.advance('10s');
    expect(broker.published).toHaveLength(70);
  });

  it('takes nothing that this instance cannot deliver', async () => {
    const { clock, engine, store } = stage();
    engine.handle('a', nothing);
    await engine.start();
    await engine.submit('b', 1);
    await engine.submit('https://example.com/', 1);
    await engine.submit({ kind: 'queue', address: 'orders' }, 1);
    await clock.advance('3d');
    for (const task of await store.list({ limit: 9 })) {
      expect(task).toMatchObject({ status: 'pending', claims: 0 });
    }
  });

  it('finds thousands of lanes that nobody told of', async () => {
    const broker = createTestBroker();
    const { clock, engine, make, store } = stage({ brokers: [broker] });
    await make().submitMany(
      Array.from({ length: 2500 }, (_, n) => ({
        to: { kind: 'queue', address: `queue-${n}` },
        payload: n,
      })),
    );
    await engine.start();
    await clock.advance('1m');
    expect(broker.published).toHaveLength(2500);
    expect(await store.list({ status: 'pending', limit: 9 })).toEqual([]);
  });

  it('is not held up by thousands of paused lanes whose time comes first', async () => {
    const { clock, engine, store } = stage({ brokers: [createTestBroker()] });
    const at: number[] = [];
    engine.handle('free', () => at.push(clock.monotonic()));
    const paused = { paused: { atMs: 0 }, breaker: { state: 'closed' } };
    const queues = Array.from({ length: 5000 }, (_, n) => `queue-${n}`);
    for (const queue of queues) await store.writeState(`lane:queue:${queue}`, paused, 0);
    await engine.start();
    const dueAt = clock.now() + 1000;
    await engine.submitMany(
      queues.map((address) => ({ to: { kind: 'queue', address }, payload: 1, dueAt })),
    );
    await engine.submit('free', 1, { dueAt: dueAt + 1 });
    await clock.advance('1m');
    expect(at).toHaveLength(1);
    // One turn looks at some of the lanes only, and the next turn comes a moment later.
    expect(at[0]).toBeLessThan(1010);
  });

  it('does not starve a lane with a backlog beside thousands with a task each', async () => {
    const { clock, engine, store } = stage({ brokers: [createTestBroker()] });
    const to = (address: string) => ({ to: { kind: 'queue', address }, payload: 1 }) as const;
    let lanes = 0;
    const submitToOthers = () =>
      engine.submitMany(Array.from({ length: 1200 }, () => to(`queue-${(lanes += 1)}`)));
    const { claim } = store;
    const claimed: number[] = [];
    store.claim = async (request) => {
      const answer = await claim.call(store, request);
      if (request.from.kind === 'due' && claimed.length < 10) {
        claimed.push(answer.tasks.filter(({ lane }) => lane === 'queue:deep').length);
        await submitToOthers();
      }
      return answer;
    };
    await engine.submitMany(Array.from({ length: 3000 }, () => to('deep')));
    await submitToOthers();
    await engine.start();
    await clock.advance('1s');
    expect(claimed.reduce((sum, count) => sum + count)).toBeGreaterThan(400);
  });

  it('does not let a lane that is full hold up another', async () => {
    const { clock, engine } = stage();
    const at: number[] = [];
    engine.handle('full', { concurrency: 1, timeout: '1h' }, () => new Promise(nothing));
    engine.handle('free', () => at.push(clock.monotonic()));
    await engine.submitMany(Array.from({ length: 3000 }, (_, n) => ({ to: 'full', payload: n })));
    await engine.start();
    await clock.advance(1000);
    await engine.submit('free', 1);
    await clock.advance(0);
    expect(at).toEqual([1000]);
    expect(engine.stats()).toMatchObject({ running: 1, held: 1 });
  });

  it('does not forget what is due soon while another lane is full', async () => {
    const { clock, engine } = stage();
    const at: number[] = [];
    engine.handle('full', { concurrency: 1, timeout: '1h' }, () => new Promise(nothing));
    engine.handle('free', () => at.push(clock.monotonic()));
    await engine.start();
    await engine.submitMany([1, 2, 3].map((payload) => ({ to: 'full', payload })));
    await engine.submit('free', 1, { dueAt: clock.now() + 5000 });
    await clock.advance('1m');
    expect(at).toEqual([5000]);
  });

  it('that finds nothing although something is due is not asked for again at once', async () => {
    const { clock, engine, store } = stage();
    engine.handle('a', nothing);
    const { claim } = store;
    let claims = 0;
    // All that is due is locked by somebody for a second.
    store.claim = async (request) => {
      if (request.from.kind !== 'due' || clock.monotonic() >= 1000) {
        return claim.call(store, request);
      }
      claims += 1;
      if (claims > 1000) throw new Error('asked without end');
      return { tasks: [], nowMs: clock.now(), nextInMs: [0] };
    };
    await engine.start();
    await engine.submit('a', 1);
    await clock.advance('2s');
    expect(claims).toBeGreaterThan(10);
    expect(claims).toBeLessThanOrEqual(51);
    expect(await store.list({ status: 'done', limit: 9 })).toHaveLength(1);
  });

  it('that fails is tried again, less and less often', async () => {
    const { clock, engine, store, said } = stage();
    const { claim } = store;
    const at: number[] = [];
    let isAway = true;
    store.claim = (request) => {
      if (request.from.kind !== 'due') return claim.call(store, request);
      at.push(clock.monotonic());
      return isAway ? Promise.reject(new Error('away')) : claim.call(store, request);
    };
    engine.handle('a', nothing);
    await engine.start();
    await engine.submit('a', 1);
    await clock.advance('1m');
    expect(said[0]).toBe('claiming failed, trying again');
    const pauses = at.slice(1).map((ms, i) => ms - at[i]!);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(25 * 2 ** 8);
    expect(at.length).toBeGreaterThan(8);
    expect(at.length).toBeLessThan(40);
    isAway = false;
    await clock.advance('10s');
    expect(await store.list({ status: 'done', limit: 9 })).toHaveLength(1);
  });

  it('for what others lost is made once more where a look came while it was under way', async () => {
    const { clock, engine, store } = stage({ poll: '10s' });
    const seen: [number, number][] = [];
    engine.handle('a', (n: number) => seen.push([n, clock.monotonic()]));
    const { claim } = store;
    let isSlow = true;
    store.claim = async (request) => {
      const result = await claim.call(store, request);
      if (request.from.kind === 'lost' && isSlow) {
        isSlow = false;
        await sleep(clock, 15_000);
      }
      return result;
    };
    await engine.submit('a', 1);
    await engine.start();
    await clock.advance('5s');
    expect(isSlow).toBe(false);
    await putLost(store, taskFor('a', 2), 1);
    await clock.advance('1m');
    expect(seen).toEqual([
      [1, 15_000],
      [2, 15_000],
    ]);
  });

  it('whose answer was lost is given back: no lease is counted as lost', async () => {
    const { clock, engine, store, events } = stage();
    const { claim } = store;
    let losses = 0;
    store.claim = async (request) => {
      const result = await claim.call(store, request);
      if (result.tasks.length === 0 || ++losses > 3) return result;
      throw new Error('the answer was lost');
    };
    engine.handle('a', nothing);
    await engine.start();
    await engine.submit('a', 1);
    await clock.advance('5s');
    expect(losses).toBe(4);
    expect(await store.get({ id: 1 })).toMatchObject({ status: 'done' });
    expect(events.map(({ type }) => type)).toEqual(['accepted', 'started', 'done']);
    expect(events[1]).toMatchObject({ again: false });
  });

  it('whose answer was lost is given back although its lane was paused meanwhile', async () => {
    const { clock, engine, make, store } = stage();
    const { claim, abandon } = store;
    const abandoned: number[] = [];
    let isLost = false;
    store.claim = async (request) => {
      const result = await claim.call(store, request);
      if (isLost || result.tasks.length === 0) return result;
      isLost = true;
      await engine.pause('handler:a');
      throw new Error('the answer was lost');
    };
    store.abandon = async (lease) => {
      abandoned.push(lease);
      // The store is still away the first time.
      if (abandoned.length === 1) throw new Error('away');
      await abandon.call(store, lease);
    };
    engine.handle('a', nothing);
    await engine.start();
    const { id } = await make().submit('a', 1);
    await clock.advance('5s');
    expect(abandoned).toHaveLength(2);
    expect(new Set(abandoned).size).toBe(1);
    const [task] = await store.list({ status: 'pending', limit: 9 });
    expect(task).toMatchObject({ messageId: id, claims: 0 });
    expect(task).not.toHaveProperty('lease');
  });

  it('whose answer was lost is given back by a stop: others need not wait for the end of its lease', async () => {
    const { clock, engine, store } = stage();
    const { claim } = store;
    store.claim = async (request) => {
      const result = await claim.call(store, request);
      if (result.tasks.length === 0) return result;
      throw new Error('the answer was lost');
    };
    engine.handle('a', nothing);
    await engine.submit('a', 1);
    await engine.start();
    await clock.advance(1);
    expect((await store.get({ id: 1 }))?.lease).toBeDefined();
    await engine.stop();
    const task = await store.get({ id: 1 });
    expect(task).toMatchObject({ status: 'pending', claims: 0, visibleAtMs: task!.dueAtMs });
    expect(task).not.toHaveProperty('lease');
  });

  it('is given back too where the policy of a task could not be read', async () => {
    const { clock, store, make } = stage();
    const policy = { maxAttempts: 2, base: '3s', jitter: 'none' } as const;
    const { id } = await make().submit('a', 1, { policy });
    const { readState } = store;
    let failures = 2;
    store.readState = (prefix) => {
      if (prefix.startsWith('policy:') && failures-- > 0) return Promise.reject(new Error('away'));
      return readState.call(store, prefix);
    };
    const at: number[] = [];
    const engine = make().handle('a', { policy: { base: '1h' } }, () => {
      at.push(clock.monotonic());
      throw new Error('down');
    });
    await engine.start();
    await clock.advance('1m');
    expect(at).toHaveLength(2);
    expect(at[1]! - at[0]!).toBe(3000);
    expect(await engine.get(id)).toMatchObject({ status: 'failed', attempt: 2 });
  });
});

describe('a start', () => {
  it('happens only while its time limit fits in the lease, counted from before the claim', async () => {
    const { clock, engine, store } = stage({ lease: '30s', heartbeat: '10s' });
    const { claim } = store;
    let delayMs = 15_001;
    store.claim = async (request) => {
      const result = await claim.call(store, request);
      if (result.tasks.length > 0) await sleep(clock, delayMs);
      return result;
    };
    const at: number[] = [];
    engine.handle('a', { timeout: '15s' }, () => at.push(clock.monotonic()));
    await engine.start();
    await engine.submit('a', 1);
    await clock.advance(15_001);
    expect(at).toEqual([]);
    delayMs = 15_000;
    await clock.advance(15_001);
    expect(at).toEqual([]);
    await clock.advance(15_000);
    expect(at).toHaveLength(1);
    expect(await store.get({ id: 1 })).toMatchObject({ status: 'done', claims: 0 });
  });

  it('does not happen for what waits here and was claimed elsewhere meanwhile', async () => {
    const { clock, engine, store } = stage({ lease: '30s', heartbeat: '10s' });
    const seen: number[] = [];
    engine.handle('a', { concurrency: 1, timeout: '25s' }, async (n: number) => {
      seen.push(n);
      if (n > 1) await sleep(clock, 21_000);
    });
    await engine.submitMany([1, 2, 3].map((payload) => ({ to: 'a', payload })));
    await engine.start();
    await clock.advance('1s');
    expect(seen).toEqual([1, 2]);
    const waiting = (await store.get({ id: 3 }))!;
    expect(waiting.lease).toBeDefined();
    await store.settle([{ id: 3, lease: waiting.lease!, to: 'cancelled' }]);
    await clock.advance('1m');
    expect(seen).toEqual([1, 2]);
    expect(await store.get({ id: 3 })).toMatchObject({ status: 'cancelled' });
    expect(engine.stats()).toMatchObject({ held: 0 });
  });

  it('waits for the new due time where a failure arrives of what waits here', async () => {
    const { clock, engine, store } = stage({ lease: '30s', heartbeat: '10s' });
    const seen: string[] = [];
    engine.handle('a', { concurrency: 1, timeout: '25s' }, async (n: number) => {
      seen.push(`${n} at ${clock.monotonic()}`);
      if (n === 2) await sleep(clock, 21_000);
    });
    await engine.submitMany([1, 2, 3].map((payload) => ({ to: 'a', payload })));
    await engine.start();
    await clock.advance('1s');
    expect((await store.get({ id: 3 }))?.lease).toBeDefined();
    const dueAtMs = clock.now() + 60_000;
    await changed(store, 3, { arrived: true, attempt: 1, claims: 0, dueAtMs });
    await clock.advance('2m');
    expect(seen).toEqual(['1 at 0', '2 at 0', '3 at 61000']);
  });
});

describe('a task that must not be delivered', () => {
  it.each<[string, Partial<Task>, string]>([
    ['has no attempt left', { attempt: 4 }, 'EXHAUSTED'],
    ['has a verdict', { verdict: 'TOO_FAR' }, 'TOO_FAR'],
    ['has expired', { expiresAtMs: 5 }, 'EXPIRED'],
  ])('because it %s goes to the inbox', async (_, changes, reason) => {
    const { clock, engine, store, events } = stage();
    const { id, messageId, lane } = await put(store, taskFor('a', 1));
    await changed(store, id, changes);
    engine.handle('a', nothing);
    await engine.start();
    await clock.advance(0);
    expect(await store.get({ id })).toMatchObject({ status: 'failed' });
    expect((await engine.inbox.items({ limit: 9 })).items).toMatchObject([{ reason, taskId: id }]);
    const attempt = changes.attempt ?? 0;
    expect(events).toEqual([{ type: 'failed', id: messageId, lane, attempt, reason }]);
  });

  it('because it was cancelled is over', async () => {
    const { clock, engine, store, events } = stage();
    const { id, messageId, lane } = await put(store, taskFor('a', 1));
    await changed(store, id, { cancelling: true });
    engine.handle('a', nothing);
    await engine.start();
    await clock.advance(0);
    expect(await store.get({ id })).toMatchObject({ status: 'cancelled' });
    expect(events).toEqual([{ type: 'cancelled', id: messageId, lane }]);
  });

  it('because a failure arrived while its worker was lost waits for its new time', async () => {
    const { clock, engine, store } = stage();
    const { id } = await put(store, taskFor('a', 1));
    const dueAtMs = clock.now() + 60_000;
    await changed(store, id, { lease: 7, arrived: true, attempt: 1, dueAtMs });
    const at: number[] = [];
    engine.handle('a', () => at.push(clock.monotonic()));
    await engine.start();
    await clock.advance(0);
    expect(await store.get({ id })).toMatchObject({ claims: 0, visibleAtMs: dueAtMs });
    await clock.advance('1h');
    expect(at).toEqual([60_000]);
  });
});

describe('a task whose worker was lost', () => {
  it('runs alone: others end first, what waits here goes back, nothing else starts', async () => {
    const { clock, engine, store, make } = stage({ poll: '1s' });
    const running = new Set<string>();
    const together: string[][] = [];
    const work = async (name: string) => {
      running.add(name);
      together.push([...running]);
      await sleep(clock, name === 'suspect' ? 5000 : 2000);
      running.delete(name);
    };
    const id = await putLost(store, taskFor('a', 'suspect'), 1);
    engine.handle('a', { concurrency: 2 }, work).handle('b', work);
    await engine.submit('a', 'one');
    await engine.submit('b', 'two');
    await engine.start();
    await clock.advance(500);
    await make().submit('b', 'three');
    await clock.advance('1m');
    const alone = together.find((names) => names.includes('suspect'));
    expect(alone).toEqual(['suspect']);
    expect(together.filter((names) => names.length > 1 && names.includes('suspect'))).toEqual([]);
    expect(together.flat()).toContain('three');
    expect(await store.get({ id })).toMatchObject({ status: 'done', claims: 0 });
    expect(await store.list({ status: 'done', limit: 9 })).toHaveLength(4);
  });

  it('lets the others go on when it has not killed anybody in a whole lease', async () => {
    const { clock, engine, store } = stage({ poll: '1s', lease: '10s' });
    await putLost(store, taskFor('a', 'suspect'), 1);
    const at: number[] = [];
    engine.handle('a', { timeout: '1h' }, () => new Promise(nothing));
    engine.handle('b', () => at.push(clock.monotonic()));
    await engine.start();
    await clock.advance('1s');
    await engine.submit('b', 1);
    await clock.advance('1m');
    expect(at).toHaveLength(1);
    expect(at[0]).toBeGreaterThanOrEqual(10_000);
    expect(at[0]).toBeLessThanOrEqual(12_000);
  });

  it('leaves others that wait as much time as it took before the next one of its kind', async () => {
    const { clock, engine, store } = stage();
    const at: number[] = [];
    for (const n of [1, 2, 3]) await putLost(store, taskFor('a', n), 2);
    engine.handle('a', async () => {
      at.push(clock.monotonic());
      await sleep(clock, 3000);
    });
    engine.handle('b', { concurrency: 1 }, () => sleep(clock, 500));
    await engine.submitMany(Array.from({ length: 60 }, (_, n) => ({ to: 'b', payload: n })));
    await engine.start();
    await clock.advance('2m');
    const gaps = at.slice(1).map((ms, i) => ms - at[i]!);
    expect(gaps).toHaveLength(2);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(6000);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(7000);
    expect(await store.list({ status: 'done', limit: 99 })).toHaveLength(63);
  });

  it('need not wait for the next where nobody else has anything to do', async () => {
    const { clock, engine, store } = stage();
    const at: number[] = [];
    for (const n of [1, 2, 3]) await putLost(store, taskFor('a', n), 2);
    engine.handle('a', async () => {
      at.push(clock.monotonic());
      await sleep(clock, 3000);
    });
    await engine.start();
    await clock.advance('1m');
    expect(at).toEqual([0, 3000, 6000]);
  });

  it('runs apart in a small group the second time, since an ordinary crash leaves many', async () => {
    const { clock, engine, store } = stage();
    const at: number[] = [];
    for (let n = 1; n <= 12; n++) await putLost(store, taskFor('a', n), 1);
    let others = 0;
    engine.handle('a', { concurrency: 20 }, async () => {
      at.push(clock.monotonic());
      await sleep(clock, 3000);
    });
    engine.handle('b', () => void (others += 1));
    await engine.submitMany([{ to: 'b', payload: 1 }]);
    await engine.start();
    await clock.advance('1s');
    expect(at).toEqual(Array.from({ length: 10 }, () => 0));
    expect(others).toBe(0);
    await clock.advance('1m');
    expect(at).toHaveLength(12);
    expect(others).toBe(1);
  });

  it('does not start before the others are given back: their leases must not be lost with it', async () => {
    const { clock, engine, store } = stage();
    for (const n of [1, 2, 3]) await putLost(store, taskFor('a', n), 2);
    const { settle } = store;
    store.settle = async (batch) => {
      await sleep(clock, 1000);
      return settle.call(store, batch);
    };
    const at: number[] = [];
    engine.handle('a', () => void at.push(clock.monotonic()));
    await engine.start();
    await clock.advance(999);
    expect(at).toEqual([]);
    await clock.advance('1m');
    expect(at).toHaveLength(3);
    expect(Math.min(...at)).toBeGreaterThanOrEqual(1000);
  });

  it('does not hold up the others for ever, when something else runs for long', async () => {
    const { clock, engine, store } = stage({ lease: '30s' });
    let others = 0;
    engine.handle('long', { timeout: '2h' }, () => sleep(clock, 3_600_000));
    engine.handle('a', () => undefined);
    engine.handle('b', () => void (others += 1));
    await engine.start();
    await engine.submit('long', 1);
    await clock.advance('1s');
    await putLost(store, taskFor('a', 1), 1);
    await clock.advance('15s');
    await engine.submit('b', 1);
    await clock.advance('1m');
    expect(others).toBe(1);
  });

  it('goes to the inbox after three', async () => {
    const { clock, engine, store, events } = stage({ poll: '1s' });
    let runs = 0;
    const twice = await putLost(store, taskFor('a', 1), 2);
    const thrice = await putLost(store, taskFor('a', 2), 3);
    engine.handle('a', () => void (runs += 1));
    await engine.start();
    await clock.advance('1m');
    expect(runs).toBe(1);
    expect(await store.get({ id: twice })).toMatchObject({ status: 'done' });
    expect(await store.get({ id: thrice })).toMatchObject({ status: 'failed', attempt: 0 });
    expect((await engine.inbox.items({ limit: 9 })).items).toMatchObject([
      {
        reason: 'WORKER_LOST',
        failure: { message: '3 workers in a row took it and never came back.' },
      },
    ]);
    expect(events.find(({ type }) => type === 'started')).toMatchObject({ again: true });
  });

  it('as often as the option says', async () => {
    const { clock, engine, store } = stage({ poll: '1s', maxLostLeases: 1 });
    engine.handle('a', nothing);
    const id = await putLost(store, taskFor('a', 1), 1);
    await engine.start();
    await clock.advance('1m');
    expect(await store.get({ id })).toMatchObject({ status: 'failed' });
  });

  it('need not be alone when it runs elsewhere: it goes to a broker with others', async () => {
    const broker = createTestBroker();
    const { clock, engine, store } = stage({ poll: '1s', brokers: [broker] });
    const sizes: number[] = [];
    const { publish } = broker;
    broker.publish = (messages, timeoutMs) => {
      sizes.push(messages.length);
      return publish.call(broker, messages, timeoutMs);
    };
    for (let n = 0; n < 5; n++) {
      await putLost(store, newTask({ destination: { kind: 'queue', address: 'q' } }), 1);
    }
    await engine.start();
    await clock.advance('5s');
    expect(sizes).toEqual([5]);
    expect(await store.list({ status: 'retried', limit: 9 })).toHaveLength(5);
  });

  it('is not started when its lane is paused while it waits for its turn', async () => {
    const { clock, engine, store } = stage({ poll: '1s' });
    const seen: string[] = [];
    const work = async (name: string) => {
      seen.push(name);
      await sleep(clock, 5000);
    };
    engine.handle('a', work).handle('b', work);
    await engine.submit('b', 'long');
    await engine.start();
    await clock.advance(0);
    const id = await putLost(store, taskFor('a', 'suspect'), 1);
    await clock.advance('2s');
    expect(engine.stats()).toMatchObject({ running: 1, held: 2 });
    await engine.pause('handler:a');
    await clock.advance('1m');
    expect(seen).toEqual(['long']);
    expect(await store.get({ id })).toMatchObject({ status: 'pending', claims: 1 });
    await engine.resume('handler:a');
    await clock.advance('1m');
    expect(seen).toEqual(['long', 'suspect']);
  });

  it('goes back unharmed when the engine stops before its turn', async () => {
    const { clock, engine, store } = stage({ poll: '1s' });
    engine.handle('b', () => sleep(clock, 5000)).handle('a', nothing);
    await engine.submit('b', 1);
    await engine.start();
    await clock.advance(0);
    const id = await putLost(store, taskFor('a', 'suspect'), 1);
    await clock.advance('2s');
    const stopped = engine.stop();
    await clock.advance('1m');
    await stopped;
    const task = await store.get({ id });
    expect(task).toMatchObject({ status: 'pending', claims: 1 });
    expect(task).not.toHaveProperty('lease');
  });
});

describe('two instances', () => {
  it('share the work: each task runs once', async () => {
    const { clock, make, store } = stage();
    const runs = new Map<number, string[]>();
    const work = (who: string) => async (n: number) => {
      runs.set(n, [...(runs.get(n) ?? []), who]);
      await sleep(clock, 50);
    };
    const one = make({ instance: 'one' }).handle('a', { concurrency: 5 }, work('one'));
    const two = make({ instance: 'two' }).handle('a', { concurrency: 5 }, work('two'));
    await one.start();
    await two.start();
    await one.submitMany(Array.from({ length: 100 }, (_, n) => ({ to: 'a' as const, payload: n })));
    await clock.advance('10s');
    expect(runs.size).toBe(100);
    const who = [...runs.values()];
    expect(who.every((names) => names.length === 1)).toBe(true);
    expect(new Set(who.flat())).toEqual(new Set(['one', 'two']));
    expect(await store.list({ status: 'done', limit: 999 })).toHaveLength(100);
  });
});
