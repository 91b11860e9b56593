/** A policy that leaves fields out means "as usual, but": at every door of the engine. */
import { definePolicy, type Policy } from 'redrive';
import { describe, expect, it } from 'vitest';
import { memory } from '../adapters/memory/index.ts';
import { createEngine } from '../engine.ts';
import type { EngineOptions } from '../engine-options.ts';
import { createTestEngine } from '../testing/index.ts';

const quick = { base: '1s', jitter: 'none' } as const satisfies Policy;

function stage(options: Partial<EngineOptions> = {}) {
  const store = memory();
  const engine = createEngine({ store, ...options });
  /** What is stored with a task: all that ever decides about it. */
  const stored = async (id: string) => {
    const task = await engine.get(id);
    const { documents } = await store.readState(`policy:${task?.policy}`);
    return documents[0]?.value as Required<Policy> | undefined;
  };
  const submitted = async (policy: Policy, to = 'a') =>
    stored((await engine.submit(to, 1, { policy })).id);
  return { engine, store, stored, submitted };
}

describe('the policy of a submit', () => {
  it('keeps base, cap and jitter of the default', async () => {
    const { submitted } = stage();
    expect(await submitted({ maxAttempts: 9 })).toMatchObject({
      maxAttempts: 9,
      base: 2000,
      cap: 60_000,
      jitter: 'add',
      jitterAdd: 1000,
      maxRetryAfter: 86_400_000,
      retryOn: ['transient', 'unknown'],
    });
  });

  it('lies over the default, the engine, all lanes, the handler and the lane, in this order', async () => {
    const { engine, submitted } = stage({
      policy: { cap: '50m', base: '50s', multiplier: 5, jitterRatio: 0.5, maxUncounted: 5 },
      lane: { policy: { base: '40s', multiplier: 4, jitterRatio: 0.4, maxUncounted: 4 } },
      lanes: { 'handler:a': { policy: { jitterRatio: 0.2, maxUncounted: 2 } } },
    });
    const ofHandler = { multiplier: 3, jitterRatio: 0.3, maxUncounted: 3 };
    engine.handle('a', { policy: ofHandler }, () => undefined);
    const layers = { jitter: 'add', cap: 3_000_000, base: 40_000 };
    expect(await submitted({ maxUncounted: 1 })).toMatchObject({
      ...layers,
      multiplier: 3,
      jitterRatio: 0.2,
      maxUncounted: 1,
    });
    const elsewhere = { ...layers, multiplier: 4, jitterRatio: 0.4, maxUncounted: 4, deadline: 1 };
    expect(await submitted({ deadline: 1 }, 'b')).toMatchObject(elsewhere);
  });

  it('is taken as it is where it is defined, or JSON in which every field stands', async () => {
    const { submitted } = stage({ policy: { deadline: '1h', cap: '5m' } });
    const whole = definePolicy({ maxAttempts: 2 });
    const wire = JSON.parse(JSON.stringify(whole)) as Policy;
    for (const policy of [whole, wire]) {
      const stored = await submitted(policy);
      expect(definePolicy(stored).fingerprint).toBe(whole.fingerprint);
    }
  });

  it('is taken as it is where it has a name', async () => {
    const { engine, stored } = stage({
      policy: { cap: '5m' },
      policies: { patient: { maxAttempts: 20 } },
    });
    const { id } = await engine.submit('a', 1, { policy: 'patient' });
    expect(await stored(id)).toMatchObject({ maxAttempts: 20, base: 200, cap: 30_000 });
  });

  it('is refused where it does not fit those below it, with where both were written', async () => {
    const { engine } = stage({ lanes: { 'handler:a': { policy: { jitter: 'decorrelated' } } } });
    const policy = { strategy: 'fixed' } as const;
    await expect(engine.submit('a', 1, { policy })).rejects.toThrow(
      'strategy from the policy of this submit, jitter from the policy of the lane handler:a',
    );
    expect(await engine.submitMany([{ to: 'a', payload: 1, policy }])).toMatchObject([
      { status: 'rejected', path: 'policy.jitter' },
    ]);
    expect(await engine.list({ limit: 1 })).toEqual([]);
    const both = { strategy: 'fixed', jitter: 'none' } as const;
    expect(await engine.submit('a', 1, { policy: both })).toMatchObject({ status: 'accepted' });
  });

  it('never merges again: another engine with other defaults decides by what is stored', async () => {
    const store = memory();
    const first = createEngine({ store, policy: quick });
    const { id } = await first.submit('a', 1, { policy: { maxAttempts: 2 } });
    const before = await first.get(id);
    const second = createEngine({ store, policy: { base: '9h' } });
    second.handle('a', { policy: { base: '8h' } }, () => {
      throw new Error('not now');
    });
    await second.start();
    await expect.poll(async () => (await second.get(id))?.attempt).toBe(1);
    const after = await second.get(id);
    expect(after?.policy).toBe(before?.policy);
    expect(after!.delayMs).toBe(1000);
    await second.stop();
  });
});

describe('the policy of a report', () => {
  it('is that of its lane with the fields that it writes', async () => {
    const { engine, stored } = stage({ lanes: { 'queue:orders': { policy: quick } } });
    const messageId = '00000000-0000-4000-8000-000000000001';
    const to = { kind: 'queue', address: 'orders' };
    const failure = { class: 'transient' } as const;
    const report = { messageId, to, payload: 1, failure, attempt: 1, policy: { maxAttempts: 7 } };
    expect(await engine.report([report])).toMatchObject([{ status: 'accepted' }]);
    expect(await stored(messageId)).toMatchObject({ maxAttempts: 7, base: 1000, jitter: 'none' });
    expect(await engine.get(messageId)).toMatchObject({ maxAttempts: 7, delayMs: 1000 });
  });
});

describe('the policy of an engine, of all lanes, of a lane and of a handler', () => {
  /** The waits of a task that always fails. */
  async function waits(options: Partial<EngineOptions>, policy?: Policy): Promise<number[]> {
    const engine = createTestEngine(options);
    const delays: number[] = [];
    engine.handle('a', policy ? { policy } : {}, () => {
      throw new Error('not now');
    });
    const { id } = await engine.submit('a', 1);
    for (;;) {
      await engine.drain();
      const { status, delayMs } = (await engine.get(id))!;
      if (status !== 'pending') return delays;
      delays.push(delayMs);
      await engine.advance(delayMs);
    }
  }

  it('is that of what is wider, with the fields that it writes', async () => {
    const none = { jitter: 'none' } as const;
    expect(await waits({ policy: none })).toEqual([2000, 4000, 8000]);
    expect(await waits({ policy: none, lane: { policy: { maxAttempts: 3 } } })).toEqual([
      2000, 4000,
    ]);
    const lanes = { 'handler:a': { policy: { maxAttempts: 2 } } };
    expect(await waits({ policy: none, lanes })).toEqual([2000]);
    expect(await waits({ policy: none, lanes }, { base: '7s', maxAttempts: 5 })).toEqual([7000]);
  });

  it('that does not fit what is wider is refused when it is made, and nothing is registered', () => {
    const walk = { jitter: 'decorrelated' } as const;
    const made = (options: Partial<EngineOptions>) => createEngine({ store: memory(), ...options });
    expect(() => made({ policy: walk, lane: { policy: { strategy: 'fixed' } } })).toThrow(
      'strategy from the policy of all lanes, jitter from the policy of the engine',
    );
    const lanes = { 'https://a.example': { policy: { schedule: ['1s'] as const } } };
    expect(() => made({ policy: walk, lanes })).toThrow(
      'strategy from the policy of the lane https://a.example',
    );
    const engine = made({ policy: walk });
    const run = () => undefined;
    expect(() => engine.handle('a', { policy: { strategy: 'linear' } }, run)).toThrow(
      'strategy from the policy that handler:a was registered with',
    );
    expect(() => engine.handle('a', run)).not.toThrow();
  });

  it('gives a lane the time limit of its attempts', async () => {
    const { engine } = stage({
      policy: { attemptTimeout: '7s' },
      lanes: { 'queue:slow': { policy: { attemptTimeout: '9s' } } },
    });
    engine.handle('a', { policy: { maxAttempts: 2 } }, () => undefined);
    engine.handle('b', { policy: { attemptTimeout: '8s' } }, () => undefined);
    for (const to of ['a', 'b']) await engine.submit(to, 1);
    const lanes = await engine.lanes();
    expect(lanes.map(({ limits }) => limits?.timeoutMs)).toEqual([7000, 8000]);
  });
});
