import { definePolicy } from 'redrive';
import { describe, expect, it } from 'vitest';
import { MemoryAudit } from '../adapters/memory/index.ts';
import type { Rejected } from '../engine.ts';
import type { EngineEvent } from '../events.ts';
import type { FailureReport } from './report.ts';
import { createTestBroker, createTestEngine, type TestEngineOptions } from '../testing/index.ts';

const id = '00000000-0000-4000-8000-000000000001';
const policy = definePolicy({
  maxAttempts: 4,
  base: '10s',
  jitter: 'none',
  retryOn: ['transient'],
});
const failed: FailureReport = {
  messageId: id,
  to: { kind: 'queue', address: 'orders' },
  payload: Buffer.from('{}'),
  failure: { class: 'transient', code: 'CONSUMER_FAILED' },
  attempt: 1,
};

function stage(options: TestEngineOptions = {}) {
  const broker = createTestBroker();
  const events: EngineEvent[] = [];
  const engine = createTestEngine({
    brokers: [broker],
    policy,
    on: (event) => events.push(event),
    ...options,
  });
  return { broker, engine, events };
}

describe('a failure that is reported', () => {
  it('is sent again after the delay of its count', async () => {
    const { broker, engine } = stage();
    expect(await engine.report([{ ...failed, attempt: 2 }])).toEqual([{ id, status: 'accepted' }]);
    await engine.advance('19999ms');
    expect(broker.published).toEqual([]);
    await engine.advance(1);
    expect(broker.published).toMatchObject([{ headers: { 'x-retry-count': 2 } }]);
  });

  it('is sent again when it was asked for, where that is in the future', async () => {
    const { broker, engine } = stage();
    await engine.report([{ ...failed, dueAtMs: engine.clock.now() + 3000 }]);
    await engine.advance(2999);
    expect(broker.published).toEqual([]);
    await engine.advance(1);
    expect(broker.published).toHaveLength(1);
  });

  it('goes to the inbox where it is not retried, and says why', async () => {
    const { engine, events } = stage();
    const other = (n: number, own: Partial<FailureReport>): FailureReport => ({
      ...failed,
      messageId: id.slice(0, -1) + String(n),
      ...own,
    });
    const reports = [
      other(1, { attempt: 4 }),
      other(2, { failure: { class: 'business' } }),
      other(3, { verdict: 'TOO_FAR' }),
      other(4, { attempt: 2, maxAttempts: 2 }),
    ];
    const answers = await engine.report(reports);
    expect(answers.map(({ status }) => status)).toEqual(Array(4).fill('failed'));
    const reasons = ['EXHAUSTED', 'PERMANENT', 'TOO_FAR', 'EXHAUSTED'];
    expect(events).toMatchObject(reasons.map((reason) => ({ type: 'failed', reason })));
    expect((await engine.inbox()).map(({ reason }) => reason)).toEqual(reasons);
  });

  it('counts once, however often it is told, and again where its count is ahead', async () => {
    const { broker, engine } = stage();
    const counted: FailureReport = { ...failed, generation: 'present' };
    await engine.report([counted]);
    expect(await engine.report([counted])).toMatchObject([{ status: 'duplicate' }]);
    await engine.advance('10s');
    expect(await engine.get(id)).toMatchObject({ status: 'retried', attempt: 1 });
    // Told late: what it speaks of was retried already.
    expect(await engine.report([counted])).toMatchObject([{ status: 'duplicate' }]);
    expect(await engine.report([{ ...counted, attempt: 2 }])).toMatchObject([
      { status: 'accepted' },
    ]);
    await engine.advance('20s');
    expect(broker.published.map(({ headers }) => headers['x-retry-count'])).toEqual([1, 2]);
  });

  it('is re-armed by a producer that counts nothing, until its attempts are used up', async () => {
    const { broker, engine } = stage();
    for (const status of ['accepted', 'accepted', 'accepted', 'failed']) {
      expect(await engine.report([failed])).toMatchObject([{ status }]);
      await engine.advance('1h');
    }
    expect(broker.published).toHaveLength(3);
    expect(await engine.inbox()).toMatchObject([{ reason: 'EXHAUSTED' }]);
  });

  it('of an id that somebody has used twice is another message where its payload is another', async () => {
    const { broker, engine } = stage();
    const otherId = '00000000-0000-5000-8000-00000000000f';
    const another: FailureReport = { ...failed, payload: Buffer.from('[]'), otherId };
    expect(await engine.report([{ ...failed, otherId }, another])).toMatchObject([
      { status: 'accepted' },
      { status: 'accepted' },
    ]);
    // Told again, each is known; the second by its other id.
    expect(await engine.report([another, { ...failed, otherId }])).toMatchObject([
      { status: 'duplicate' },
      { status: 'duplicate' },
    ]);
    await engine.advance('10s');
    const sent = broker.published.map(
      ({ payload, headers }) => `${Buffer.from(payload).toString()} ${headers['x-message-id']}`,
    );
    expect(new Set(sent)).toEqual(new Set([`[] ${otherId}`, `{} ${id}`]));
  });

  it('has its review message in the same commit', async () => {
    const { broker, engine } = stage({
      review: (task, { reason }) => ({
        destination: { kind: 'queue', address: 'manual-review.pending' },
        payload: Buffer.from(task.messageId),
        headers: { reason },
      }),
    });
    await engine.report([{ ...failed, attempt: 4 }]);
    await engine.advance(0);
    expect(broker.published).toMatchObject([
      { address: 'manual-review.pending', headers: { reason: 'EXHAUSTED' } },
    ]);
  });

  it('takes its payload as a submit does, and says what is no report', async () => {
    const { engine } = stage();
    const answers = await engine.report([
      { ...failed, payload: { n: 1 } },
      null as unknown as FailureReport,
      { ...failed, payload: 1n },
    ]);
    expect(answers).toMatchObject([
      { status: 'accepted' },
      { status: 'rejected', code: 'INVALID_TASK' },
      { status: 'rejected', code: 'INVALID_PAYLOAD' },
    ]);
    expect(new TextDecoder().decode((await engine.get(id))!.payload)).toBe('{"n":1}');
  });

  it('may bring a policy of its own, which is frozen with it', async () => {
    const { engine } = stage({
      policies: { slow: { maxAttempts: 3, base: '1h', jitter: 'none' } },
    });
    await engine.report([{ ...failed, policy: 'slow' }]);
    const task = await engine.get(id);
    expect(task).toMatchObject({ maxAttempts: 3, policy: expect.any(String) });
    expect(task!.dueAtMs - engine.clock.now()).toBe(3_600_000);
  });

  it('is accepted with a payload of exactly the limit', async () => {
    const { engine } = stage();
    const payload = new Uint8Array(1 << 20);
    expect(await engine.report([{ ...failed, payload }])).toMatchObject([{ status: 'accepted' }]);
  });

  it.each<[Partial<FailureReport>, string, string]>([
    [{ messageId: 'x' }, 'INVALID_ID', 'id'],
    [{ attempt: 0 }, 'INVALID_TASK', 'attempt'],
    [{ attempt: 1.5 }, 'INVALID_TASK', 'attempt'],
    [{ maxAttempts: 0 }, 'INVALID_TASK', 'maxAttempts'],
    [{ to: { kind: 'queue', address: '' } }, 'NO_DESTINATION', 'to'],
    [{ payload: new Uint8Array((1 << 20) + 1) }, 'PAYLOAD_TOO_LARGE', 'payload'],
    [{ policy: 'none' }, 'UNKNOWN_POLICY', 'policy'],
    [{ orderingKey: '' }, 'INVALID_TASK', 'orderingKey'],
    [{ dueAtMs: Number.NaN }, 'INVALID_TASK', 'dueAt'],
  ])('is rejected by itself where it has a fault: $1 of $2', async (own, code, path) => {
    const { engine } = stage();
    const [bad, good] = await engine.report([
      { ...failed, ...own },
      { ...failed, messageId: id.slice(0, -1) + '2' },
    ]);
    expect(bad).toMatchObject({ status: 'rejected', code, path });
    expect(good).toMatchObject({ status: 'accepted' });
  });
});

describe('a report with several faults', () => {
  it('names all of them, and what may be meant', async () => {
    const { engine } = stage();
    const bad = {
      ...failed,
      messageId: 'x',
      to: { kind: 'queue', address: '' },
      attempt: 0,
      policy: { base: 'soon' },
      dueAt: 7,
      expiresAtMs: Number.NaN,
      onConflict: 'ignore',
    } as never;
    const [rejected] = (await engine.report([bad])) as [Rejected];
    expect(rejected).toMatchObject({ status: 'rejected', code: 'INVALID_TASK', path: 'dueAt' });
    expect(rejected.message).toBe("There is no option 'dueAt'. Did you mean 'dueAtMs'?");
    expect(rejected.faults.map(({ path }) => path)).toEqual([
      'dueAt',
      'to',
      'id',
      'policy.base',
      'attempt',
      'onConflict',
      'expiresAt',
    ]);
    expect(await engine.report([null as never])).toMatchObject([{ status: 'rejected', path: '' }]);
  });

  it('is refused under the id of another message where that is wanted', async () => {
    const { engine } = stage();
    const report = (payload: number, attempt: number, onConflict?: 'reject') =>
      engine.report([{ ...failed, payload, attempt, ...(onConflict ? { onConflict } : {}) }]);
    expect(await report(1, 1)).toMatchObject([{ status: 'accepted' }]);
    const code = 'IDEMPOTENCY_MISMATCH';
    expect(await report(2, 2, 'reject')).toMatchObject([{ status: 'rejected', code }]);
    expect(await report(1, 1, 'reject')).toMatchObject([{ status: 'duplicate' }]);
    expect(await report(2, 1)).toMatchObject([{ status: 'duplicate' }]);
    expect(await engine.get(failed.messageId)).toMatchObject({ attempt: 1 });
  });
});

describe('an engine that does not dispatch', () => {
  it('takes in and answers, and leaves the work to others', async () => {
    const { broker, engine } = stage({ dispatch: false });
    await engine.start();
    await engine.submit({ kind: 'queue', address: 'orders' }, 1);
    await engine.report([failed]);
    await engine.advance('1h');
    expect(broker.published).toEqual([]);
    expect(await engine.list({ status: 'pending', limit: 9 })).toHaveLength(2);
    await engine.stop();
  });
});

describe('what is known of the whole', () => {
  it('is counted exactly', async () => {
    const { engine } = stage();
    await engine.report([failed, { ...failed, messageId: id.slice(0, -1) + '2', attempt: 4 }]);
    expect(await engine.census()).toEqual({
      pending: 1,
      oldestDueInMs: 10_000,
      open: { EXHAUSTED: 1 },
    });
  });

  it('has the trail, the newest first, with who did what', async () => {
    const { engine } = stage({ audit: new MemoryAudit() });
    await engine.report([failed]);
    await engine.cancel(id, undefined, { by: 'ada' });
    await engine.advance(0);
    const { events } = await engine.auditEvents({ limit: 1 });
    expect(JSON.stringify(events)).toContain('ada');
    const off = stage().engine;
    await expect(off.auditEvents({ limit: 1 })).rejects.toMatchObject({ code: 'AUDIT_UNREADABLE' });
  });

  it('has the limits of a lane, who paused it, and when it is tried again', async () => {
    const { broker, engine } = stage({ lane: { concurrency: 7, rate: 50 } });
    const failure = { class: 'transient', code: 'BROKER_AWAY' } as const;
    broker.answer = () => ({ outcome: 'unknown', failure });
    await engine.submitMany(Array.from({ length: 11 }, (_, n) => ({ to: failed.to, payload: n })));
    await engine.advance('1s');
    const limits = { concurrency: 7, timeoutMs: 15_000, failures: 5 };
    expect(await engine.lanes()).toMatchObject([
      { state: 'open', probeInMs: expect.any(Number), limits },
    ]);
    await engine.pause('queue:orders', 'ada');
    expect(await engine.lanes()).toMatchObject([{ state: 'paused', pausedBy: 'ada', limits }]);
  });
});
