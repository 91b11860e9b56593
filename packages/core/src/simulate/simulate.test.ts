import { describe, expect, it } from 'vitest';
import { ConfigError, type RetryError } from '../errors.ts';
import type { Policy } from '../policy/policy-fields.ts';
import { unitRandom } from '../policy/random.ts';
import { retry } from '../retry.ts';
import { type Simulation, simulate } from './simulate.ts';
import type { World } from './simulate-world.ts';
import { virtualClock } from '../virtual-clock.ts';

/** One client, one moment: what happens to it can be worked out by hand. */
const alone: World = { clients: 1, spread: 0, latency: 10, outage: 0 };
const plain: Policy = { jitter: 'none', base: 100, maxAttempts: 4 };

describe('simulate, one client', () => {
  it('is served at once by a service that is up', () => {
    expect(simulate(plain, alone)).toMatchObject({
      succeeded: 1,
      gaveUp: {},
      unfinished: 0,
      attempts: 1,
      wasted: 0,
      outcomes: { served: 1, down: 0, overloaded: 0, timedOut: 0 },
      recoveryMs: 0,
      overloadedMs: 0,
      completionMs: { p50: 10, p90: 10, p99: 10, max: 10 },
      endedMs: 10,
      endedBy: 'done',
    });
  });

  it('comes back by the delays of its policy until the service is up again', () => {
    // Attempts at 0, 110, 320 and, the service being back at 400, 730.
    const result = simulate(plain, { ...alone, outage: 400, bucket: 100 });
    expect(result.attempts).toBe(4);
    expect(sentAt(result)).toEqual([0, 100, 300, 700]);
    expect(result.completionMs?.max).toBe(740);
    expect(result.recoveryMs).toBe(340);
    expect(result.wasted).toBe(3);
  });

  it('gives up when no attempts are left, and then there is no recovery', () => {
    expect(simulate(plain, { ...alone, outage: '10s' })).toMatchObject({
      succeeded: 0,
      gaveUp: { EXHAUSTED: 1 },
      attempts: 4,
      wasted: 4,
      recoveryMs: null,
      completionMs: null,
      peakAfterOutage: 0,
      endedMs: 740,
    });
  });

  it('gives up by the deadline of its policy rather than start what cannot fit', () => {
    const result = simulate({ ...plain, deadline: 500 }, { ...alone, outage: '10s' });
    expect(result).toMatchObject({ gaveUp: { DEADLINE: 1 }, attempts: 3 });
  });

  it('does not wait past the deadline for an answer', () => {
    const result = simulate({ deadline: 20 }, { ...alone, latency: 50 });
    expect(result).toMatchObject({
      gaveUp: { DEADLINE: 1 },
      outcomes: { served: 0, timedOut: 1 },
      endedMs: 20,
    });
  });

  it('does not wait for an answer past the timeout of the attempt', () => {
    const policy: Policy = { ...plain, attemptTimeout: 20, maxAttempts: 2 };
    const result = simulate(policy, { ...alone, latency: 50 });
    expect(result).toMatchObject({
      gaveUp: { EXHAUSTED: 1 },
      outcomes: { served: 0, timedOut: 2 },
      endedMs: 140,
    });
  });

  it('does not come back when the policy does not retry such a failure', () => {
    const result = simulate({ neverOn: ['ECONNREFUSED'] }, { ...alone, outage: 100 });
    expect(result).toMatchObject({ gaveUp: { PERMANENT: 1 }, attempts: 1 });
  });

  it('is unfinished when the horizon comes first', () => {
    const result = simulate(
      { ...plain, maxAttempts: 100 },
      { ...alone, outage: '1h', horizon: 1000 },
    );
    expect(result).toMatchObject({ unfinished: 1, gaveUp: {}, endedBy: 'horizon' });
    expect(result.load.at(-1)!.atMs).toBeLessThanOrEqual(1000);
  });
});

describe('simulate, next to the real retry', () => {
  it.each<Policy>([
    { maxAttempts: 6, base: 130 },
    { maxAttempts: 6, base: 130, jitter: 'equal', cap: 400 },
    { maxAttempts: 6, base: 130, jitter: 'decorrelated', cap: 2000 },
    { maxAttempts: 6, strategy: 'linear', base: 90, jitter: 'around', jitterRatio: 0.5 },
    { schedule: [50, 700, 20], jitter: 'none', maxAttempts: 6 },
    { maxAttempts: 6, base: 300, deadline: 900 },
    { maxAttempts: 6, base: 130, attemptTimeout: 35 },
    { maxAttempts: 6, base: 130, deadline: 30 },
    { maxAttempts: 6, base: 130, overrides: { ECONNREFUSED: { schedule: [10, 20, 30, 900] } } },
  ])('starts the same attempts at the same times: %o', async (policy) => {
    const world = { clients: 1, spread: 0, outage: 1000, latency: 40, seed: 7, bucket: 1 } as const;
    const clock = virtualClock();
    const starts: number[] = [];
    let ended = '';
    retry(
      async () => {
        const at = clock.monotonic();
        starts.push(at);
        await new Promise<void>((resolve) => {
          clock.setTimer(resolve, world.latency);
        });
        if (at < world.outage) throw Object.assign(new Error('down'), { code: 'ECONNREFUSED' });
      },
      policy,
      { clock, random: () => unitRandom(world.seed, '0', starts.length) },
    ).then(
      () => (ended = 'served'),
      (error: unknown) => (ended = (error as RetryError).code),
    );
    await clock.run();

    const result = simulate(policy, world);
    expect(sentAt(result)).toEqual(starts);
    expect(Object.keys(result.gaveUp)[0] ?? 'served').toBe(ended);
  });
});

describe('simulate, a crowd', () => {
  const crowd: World = { clients: 10, spread: 0, outage: 0, capacity: 10, latency: 10 };

  it('is served one after the other, at the pace of the service', () => {
    const result = simulate(plain, { ...crowd, queue: '1s', bucket: 100 });
    expect(result.succeeded).toBe(10);
    expect(result.load.map((bucket) => bucket.served)).toEqual(Array(10).fill(1));
    expect(result.completionMs).toEqual({ p50: 410, p90: 810, p99: 910, max: 910 });
  });

  it('is refused where it would queue for too long', () => {
    const result = simulate({ maxAttempts: 1 }, { ...crowd, queue: 200 });
    expect(result).toMatchObject({
      succeeded: 3,
      gaveUp: { EXHAUSTED: 7 },
      outcomes: { served: 3, down: 0, overloaded: 7, timedOut: 0 },
    });
  });

  it('is refused as overloaded in a way that a policy which must not repeat work respects', () => {
    const result = simulate({ idempotent: false }, { ...crowd, queue: 0 });
    expect(result.gaveUp).toEqual({ PERMANENT: 9 });
  });

  it('stays away for as long as an overloaded service asks', () => {
    const world = { ...crowd, queue: 0, retryAfter: 5000, bucket: 1000 } as const;
    const result = simulate({ ...plain, maxAttempts: 2 }, world);
    expect(result.load.map((bucket) => bucket.attempts)).toEqual([10, 0, 0, 0, 0, 9]);
    expect(simulate({ ...plain, maxRetryAfter: '1s' }, world).gaveUp).toEqual({
      RETRY_AFTER_TOO_LONG: 9,
    });
  });

  it('loses its place in the queue when the service goes down', () => {
    const world: World = { ...crowd, queue: '1s', outageStart: 250, outage: 500 };
    const result = simulate({ maxAttempts: 1 }, world);
    expect(result.outcomes).toMatchObject({ served: 3, down: 7 });
    expect(result.endedMs).toBe(260);
  });

  it('has the service work in vain for those that stopped waiting', () => {
    const policy: Policy = { maxAttempts: 1, attemptTimeout: 250 };
    const result = simulate(policy, { ...crowd, queue: '1s' });
    expect(result.outcomes).toMatchObject({ served: 3, timedOut: 7 });
  });

  it('is the same crowd whatever the policy', () => {
    const world: World = { clients: 50, spread: '10s', outage: 0, capacity: 1000, bucket: 100 };
    const none = simulate({ jitter: 'none' }, world);
    expect(simulate({ jitter: 'full', base: 7 }, world).load).toEqual(none.load);
    expect(none.load.filter((bucket) => bucket.attempts > 0).length).toBeGreaterThan(30);
  });

  it('moves in waves without jitter, and spreads out with it', () => {
    const world: World = { clients: 1000, outage: '5s', capacity: 200 };
    const policy: Policy = { maxAttempts: 10, base: 500 };
    const none = simulate({ ...policy, jitter: 'none' }, world);
    const full = simulate({ ...policy, jitter: 'full' }, world);
    expect(none.peakAfterOutage).toBeGreaterThan(900);
    expect(full.peakAfterOutage).toBeLessThan(none.peakAfterOutage / 2);
    expect(full.recoveryMs).toBeLessThan(none.recoveryMs!);
    expect(full.overloadedMs).toBeLessThan(none.overloadedMs);
  });
});

describe('simulate, its limits', () => {
  it('fills in a world that is not given, and says which it was', () => {
    const { world } = simulate({});
    expect(world).toEqual({
      clients: 1000,
      spread: 100,
      outageStart: 0,
      outage: 500,
      capacity: 500,
      queue: 200,
      latency: 50,
      horizon: 3_600_000,
      limit: 2_000_000,
      seed: 1,
    });
  });

  it('rounds durations to whole ms', () => {
    const { world } = simulate({}, { clients: 1, latency: 1.4, spread: '0.0015s' });
    expect(world).toMatchObject({ latency: 1, spread: 2 });
  });

  it('lists every fault of a world at once', () => {
    const world = {
      clients: 100_001,
      outage: 'long',
      capacity: 0,
      latency: 0,
      seed: -1,
      cleints: 3,
    } as unknown as World;
    const error = caught(() => simulate({}, world));
    expect(error.code).toBe('INVALID_CONFIG');
    expect(error.faults.map((fault) => [fault.path, fault.code])).toEqual([
      ['clients', 'INVALID_VALUE'],
      ['outage', 'INVALID_DURATION'],
      ['capacity', 'INVALID_VALUE'],
      ['latency', 'INVALID_DURATION'],
      ['seed', 'INVALID_VALUE'],
      ['cleints', 'UNKNOWN_FIELD'],
    ]);
    expect(error.message).toContain("Did you mean 'clients'?");
  });

  it('refuses a policy with faults', () => {
    expect(caught(() => simulate({ maxAttempts: 0 })).code).toBe('INVALID_POLICY');
  });

  it('stops a policy that would never end', () => {
    const policy: Policy = { maxAttempts: 1_000_000_000, base: 0 };
    const result = simulate(policy, { ...alone, latency: 1, outage: '1h', limit: 5000 });
    expect(result).toMatchObject({ attempts: 5000, unfinished: 1, endedBy: 'limit' });
  });
});

function sentAt({ load }: Simulation): number[] {
  return load.filter((bucket) => bucket.attempts > 0).map((bucket) => bucket.atMs);
}

function caught(call: () => unknown): ConfigError {
  try {
    call();
  } catch (error) {
    if (error instanceof ConfigError) return error;
  }
  throw new Error('no ConfigError was thrown');
}
