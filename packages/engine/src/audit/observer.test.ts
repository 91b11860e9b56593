import { decide, definePolicy, type Facts, type Policy, replayAudit } from 'redrive';
import { seededRandom, virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { memory, MemoryAudit } from '../adapters/memory/index.ts';
import { itemOf } from '../model/item.ts';
import type { EngineEvent } from '../events.ts';
import type { Host } from '../host.ts';
import { judge, refuse } from '../model/judge.ts';
import { Observer } from './observer.ts';
import { faultsOf } from './event-schema.test.ts';
import { durablePolicy, Policies } from '../dispatch/policies.ts';
import type { AuditEvent, AuditOptions } from '../ports/audit.ts';
import type { Outcome } from '../ports/delivery.ts';
import type { Task } from '../model/task.ts';
import { newTask } from '../testing/fixtures.ts';
import { Trail } from './trail.ts';

const NOW = Date.UTC(2025, 0, 1);
const policy = definePolicy({ maxAttempts: 3, base: 1000, cap: '1h' });
const traceId = '0af7651916cd43dd8448eb211c80319c';
const context = {
  headers: { 'X-Tenant-Id': 't-1', 'x-correlation-id': 'c-1', authorization: 'Bearer abc' },
  traceparent: `00-${traceId}-b7ad6b7169203331-01`,
};
const failure = {
  class: 'transient',
  code: 'ECONNRESET',
  names: ['SocketError', 'Error'],
  message: 'connection reset',
} as const;
const down: Outcome = { type: 'failed', failure };

function taskOf(changes: Partial<Task> = {}): Task {
  const { due: _, ...fresh } = newTask({ maxAttempts: 3, lane: 'handler:a', context });
  const times = { dueAtMs: NOW, visibleAtMs: NOW, createdAtMs: NOW };
  return { ...fresh, id: 5, lease: 77, claims: 1, ...times, ...changes };
}

function stage(audit: AuditOptions | false = {}, named: Record<string, Policy> = {}) {
  const clock = virtualClock(NOW);
  const nothing = () => undefined;
  const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
  const host: Host = { clock, random: seededRandom(1), defer: queueMicrotask, log };
  const sink = new MemoryAudit();
  const trail = new Trail(audit, host, 'one', sink);
  const policies = new Policies(memory({ clock }), log, named, {
    policyOf: () => policy,
    policyLayers: () => [],
  });
  const told: EngineEvent[] = [];
  const observer = new Observer((event) => told.push(event), trail, log, named);
  /** What a delivery of this task ended with. */
  const settle = (
    task: Task,
    outcome: Outcome,
    result: 'settled' | 'rearmed' | 'lost' = 'settled',
  ) => {
    const by = { policy: policies.of(task), seed: 9, nowMs: NOW, durationMs: 5, laneOpen: false };
    observer.settled(task, judge(task, outcome, by), result);
  };
  const events = async (): Promise<readonly AuditEvent[]> => {
    await trail.close();
    expect(sink.events.flatMap(faultsOf)).toEqual([]);
    return sink.events;
  };
  /** Without what registers policies. */
  const happened = async () =>
    (await events()).filter((one) => one.event_type !== 'policy_registered');
  return { observer, settle, events, happened, told };
}

describe('a decision', () => {
  it('to try again is retry_attempt, field by field, with what decided it', async () => {
    const { settle, happened } = stage();
    const task = taskOf({ attempt: 1, generation: 2 });
    settle(task, down);
    const [event] = await happened();
    const { redrive, ...fields } = event!;
    const facts = { attempt: 2, failure, seed: 9, key: task.messageId, previousMs: 0 };
    const decision = decide(policy, { ...facts, uncounted: 0, elapsedMs: 5 });
    const delayMs = decision.action === 'retry' ? decision.delayMs : NaN;
    expect(JSON.stringify(fields)).toBe(
      JSON.stringify({
        event_type: 'retry_attempt',
        retry_category: 'durable',
        operation: 'handler:a',
        attempt_number: 2,
        max_attempts: 3,
        delay_seconds: delayMs / 1000,
        exception_type: 'SocketError',
        exception_message: 'connection reset',
        tenant_id: 't-1',
        correlation_id: 'c-1',
        trace_id: traceId,
        timestamp: '2025-01-01T00:00:00.000Z',
      }),
    );
    expect(redrive).toEqual({
      instance: 'one',
      run: NOW,
      sequence: 2,
      message_id: task.messageId,
      lane: 'handler:a',
      generation: 2,
      policy: policy.fingerprint,
      seed: 9,
      key: task.messageId,
      facts: {
        attempt: 2,
        previous_ms: 0,
        uncounted: 0,
        elapsed_ms: 5,
        failure: { class: 'transient', code: 'ECONNRESET', names: ['SocketError', 'Error'] },
      },
      decision: {
        action: 'retry',
        reason: 'BACKOFF',
        delay_ms: delayMs,
        attempt: 2,
        next_attempt: 3,
        max_attempts: 3,
      },
    });
  });

  it('by the last attempt is retry_exhausted, field by field', async () => {
    const { settle, happened } = stage({ strict: true });
    settle(taskOf({ attempt: 2 }), down);
    expect(JSON.stringify(await happened())).toBe(
      JSON.stringify([
        {
          event_type: 'retry_exhausted',
          retry_category: 'durable',
          operation: 'handler:a',
          total_attempts: 3,
          final_exception_type: 'SocketError',
          final_exception_message: 'connection reset',
          tenant_id: 't-1',
          correlation_id: 'c-1',
          trace_id: traceId,
          timestamp: '2025-01-01T00:00:00.000Z',
        },
      ]),
    );
  });

  it('that it is of no use is retry_abandoned, and says why', async () => {
    const { settle, happened } = stage();
    settle(taskOf(), { type: 'failed', failure: { class: 'business' } });
    settle(taskOf({ expiresAtMs: NOW }), down);
    expect(await happened()).toMatchObject([
      { event_type: 'retry_abandoned', reason: 'non_retryable', attempt_number: 1 },
      { event_type: 'retry_abandoned', reason: 'deadline', attempt_number: 1 },
    ]);
  });

  it('registers its policy before it, once, so that the trail replays alone', async () => {
    const { settle, events } = stage();
    const task = taskOf();
    for (const attempt of [0, 1, 2]) settle({ ...task, attempt }, down);
    settle(taskOf({ maxAttempts: 8 }), down);
    settle(taskOf(), { type: 'failed', failure: { ...failure, retryAfterMs: Infinity } });
    const written = await events();
    expect(written.map((one) => one.event_type)).toEqual([
      'policy_registered',
      'retry_attempt',
      'retry_attempt',
      'retry_exhausted',
      'policy_registered',
      'retry_attempt',
      'retry_abandoned',
    ]);
    const report = await replayAudit(written);
    expect(report).toMatchObject({ checked: 5, same: 5, unknownPolicy: 0, missing: 0 });
  });

  it('has the name of its policy as its category, where it was named', async () => {
    const named = { patient: { maxAttempts: 3, base: '1m' } } as const;
    const { settle, happened } = stage({}, named);
    settle(taskOf({ policy: durablePolicy(named.patient).fingerprint }), down);
    settle(taskOf({ policy: 'ffffffffffffffff' }), down);
    expect((await happened()).map((one) => one['retry_category'])).toEqual(['patient', 'durable']);
  });

  it('about what came in is written with its policy and the wait that was asked for', async () => {
    const { observer, events } = stage();
    const task = newTask({ attempt: 1, maxAttempts: 3, lane: 'queue:orders' });
    const facts: Facts = { attempt: 1, failure, key: task.messageId };
    const decided = { policy, facts, decision: decide(policy, facts) };
    observer.came(task, { result: 'accepted', task, decided });
    observer.came(task, { result: 'accepted', task, decided: { ...decided, waitMs: 3_600_000 } });
    const item = itemOf('TOO_LARGE', failure, task.lane);
    observer.came(task, { result: 'failed', task: { ...task, failure }, item });
    observer.came(task, { result: 'accepted', task });
    observer.came(task, { result: 'duplicate' });
    const written = await events();
    expect(written).toMatchObject([
      { event_type: 'policy_registered' },
      { event_type: 'retry_attempt', operation: 'queue:orders' },
      { event_type: 'retry_attempt', delay_seconds: 3600 },
      { event_type: 'retry_abandoned', reason: 'too_large', exception_type: 'SocketError' },
    ]);
    expect(await replayAudit(written)).toMatchObject({ same: 2, different: 0 });
  });
});

describe('what no policy decided', () => {
  it.each<[Outcome, object]>([
    [
      { type: 'giveUp', failure: { class: 'business', message: 'no such card' } },
      { event_type: 'retry_abandoned', reason: 'gave_up', exception_message: 'no such card' },
    ],
    [
      { type: 'unroutable', failure },
      { event_type: 'retry_abandoned', reason: 'unroutable' },
    ],
    [
      { type: 'invalid', failure },
      { event_type: 'retry_abandoned', reason: 'invalid_payload' },
    ],
    [
      { type: 'retryIn', delayMs: 1500, failure },
      { event_type: 'retry_attempt', attempt_number: 1, delay_seconds: 1.5 },
    ],
    [
      { type: 'snooze', delayMs: 2500 },
      { event_type: 'retry_postponed', attempt_number: 1, delay_seconds: 2.5 },
    ],
    [
      { type: 'refused', failure },
      { event_type: 'retry_postponed', attempt_number: 1 },
    ],
  ])('is written without a decision: %j', async (outcome, expected) => {
    const { settle, events } = stage();
    settle(taskOf(), outcome);
    const [event, ...others] = await events();
    expect(event).toMatchObject(expected);
    expect(event?.redrive).not.toHaveProperty('decision');
    expect(others).toEqual([]);
  });

  it('is told of a task that may not be delivered', async () => {
    const { observer, events, told } = stage();
    const task = taskOf({ attempt: 2, failure });
    refused(observer, task, 'EXPIRED');
    refused(observer, task, 'EXHAUSTED');
    refused(observer, task, 'CANCELLED');
    // Decided, and written, when it arrived.
    refused(observer, { ...task, verdict: 'PERMANENT' }, 'PERMANENT');
    expect(await events()).toMatchObject([
      { event_type: 'retry_abandoned', reason: 'expired', attempt_number: 2 },
      { event_type: 'retry_exhausted', total_attempts: 2, final_exception_type: 'SocketError' },
    ]);
    expect(told.map(({ type }) => type)).toEqual(['failed', 'failed', 'cancelled', 'failed']);
  });

  it('is told of what could not be read', async () => {
    const { observer, events } = stage();
    observer.unreadable({
      reason: 'UNREADABLE',
      failure: { class: 'technical', code: 'UNREADABLE', message: 'no JSON' },
      fingerprint: 'f',
      messageId: 'm-1',
      source: 'retry.scheduled',
      payload: Buffer.from('hush-hush'),
    });
    const written = await events();
    expect(written).toMatchObject([
      {
        event_type: 'retry_abandoned',
        operation: 'source:retry.scheduled',
        reason: 'unreadable',
        attempt_number: 0,
        exception_message: 'no JSON',
        redrive: { message_id: 'm-1' },
      },
    ]);
    expect(JSON.stringify(written)).not.toContain('hush-hush');
  });

  it('is told where a failure came before the settle, and not where nothing changed', async () => {
    const { settle, events } = stage();
    settle(taskOf(), { type: 'taken' }, 'rearmed');
    settle(taskOf(), down, 'lost');
    expect(await events()).toMatchObject([{ event_type: 'retry_rearmed', attempt_number: 1 }]);
  });
});

describe('what worked', () => {
  it('is not written', async () => {
    const { settle, events, told } = stage();
    settle(taskOf(), { type: 'done' });
    settle(taskOf(), { type: 'taken' });
    expect(await events()).toEqual([]);
    expect(told.map(({ type }) => type)).toEqual(['done', 'taken']);
  });

  it('is written on demand', async () => {
    const { settle, events } = stage({ successes: true });
    settle(taskOf({ attempt: 1 }), { type: 'done' });
    expect(await events()).toMatchObject([
      { event_type: 'retry_succeeded', attempt_number: 2, max_attempts: 3, trace_id: traceId },
    ]);
  });
});

describe('what somebody did', () => {
  it('is written with who, to what, and how', async () => {
    const { observer, events } = stage();
    observer.acted('pause', { by: 'ada', lane: 'handler:a' });
    observer.acted('replay', { item: 7, job: 3, group: 'f1', details: { count: 100 } });
    const nothing = { by: null, item: null, job: null, lane: null, group: null, message_id: null };
    const [pause, replay] = await events();
    expect(pause).toEqual({
      ...nothing,
      event_type: 'operator_action',
      action: 'pause',
      by: 'ada',
      lane: 'handler:a',
      details: null,
      timestamp: '2025-01-01T00:00:00.000Z',
      redrive: { instance: 'one', run: NOW, sequence: 1 },
    });
    expect(replay).toMatchObject({ ...nothing, item: 7, job: 3, group: 'f1' });
    expect(replay?.['details']).toEqual({ count: 100 });
  });

  it('is written whatever the details are, without bytes and without end', async () => {
    const { observer, events } = stage();
    const circular: Record<string, unknown> = {};
    circular['self'] = circular;
    observer.acted('a', { details: { n: 1n, bytes: Buffer.from('secret'), at: new Date(NOW) } });
    observer.acted('b', { details: circular });
    observer.acted('c', { details: { text: 'x'.repeat(20_000) } });
    const [odd, endless, long] = (await events()).map(
      (one) => one['details'] as Record<string, string>,
    );
    expect(odd).toEqual({ n: '1', bytes: '6 bytes', at: '2025-01-01T00:00:00.000Z' });
    expect(endless?.['unreadable']).toContain('circular');
    expect(long?.['cut']).toHaveLength(8192);
  });
});

describe('an event', () => {
  it('never has a payload, a header of its own, or a credential in it', async () => {
    const { settle, observer, events } = stage({ successes: true });
    const task = taskOf({ payload: Buffer.from('{"card":"hush-hush"}') });
    settle(task, down);
    settle(task, { type: 'done' });
    refused(observer, task, 'WORKER_LOST');
    const text = JSON.stringify(await events());
    expect(text).not.toContain('hush-hush');
    expect(text).not.toContain('Bearer');
  });

  it.each([
    [undefined, null],
    ['', null],
    ['nonsense', null],
    ['00-00000000000000000000000000000000-b7ad6b7169203331-01', null],
    [`00-${traceId}-b7ad6b7169203331-01`, traceId],
    [`cc-${traceId}-b7ad6b7169203331-01-more`, traceId],
  ])('takes the trace from the traceparent %s', async (traceparent, expected) => {
    const { settle, happened } = stage();
    const headers = traceparent === undefined ? {} : { traceparent };
    settle(taskOf({ context: { headers } }), down);
    settle(taskOf({ context: traceparent === undefined ? {} : { traceparent } }), down);
    const unknown = { tenant_id: null, correlation_id: null };
    const traced = { trace_id: expected, ...unknown };
    expect(await happened()).toMatchObject([traced, traced]);
  });
});

it('writes nothing while the trail is off', async () => {
  const { observer, settle, events } = stage(false);
  settle(taskOf(), down);
  refused(observer, taskOf(), 'EXPIRED');
  observer.acted('pause');
  const item = itemOf('TOO_LARGE', failure, 'queue:orders');
  observer.came(newTask(), { result: 'failed', task: newTask(), item });
  expect(await events()).toEqual([]);
});

/** As the executor says it. */
function refused(observer: Observer, task: Task, reason: Parameters<Observer['refused']>[1]): void {
  observer.refused(task, reason, refuse(task, reason, {}));
}
