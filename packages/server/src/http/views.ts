/** Records of the engine as the wire has them. */
import type {
  AttemptRecord,
  Destination,
  Group,
  InboxItem,
  JobReport,
  LaneReport,
  Member,
  Task,
} from '@redrive/engine';
import type { Failure, Simulation } from 'redrive';
import { LAST_DATE_MS } from 'redrive/internal';
import type { Static } from 'typebox';
import { showDifference, showPayload } from './reading/payload.ts';
import type * as bulk from './schemas/bulk.ts';
import type * as common from './schemas/common.ts';
import type * as retries from './schemas/retries.ts';
import type * as review from './schemas/review.ts';
import type * as service from './schemas/service.ts';

type Attempts = readonly (AttemptRecord & { generation: number; atMs: number })[];

/** As far as a Date goes: a row may say anything. */
function timeText(ms: number): string {
  return new Date(Math.min(Math.max(ms, -LAST_DATE_MS), LAST_DATE_MS)).toISOString();
}

export function taskView(task: Task): Static<typeof retries.Task> {
  const { messageId, destination, lane, status, attempt, maxAttempts, generation, failure } = task;
  const { expiresAtMs, finishedAtMs, orderingKey, policy, job } = task;
  // What was sent on carries the count of the execution that it is for.
  const isSent = status === 'retried' || status === 'done';
  return {
    message_id: messageId,
    ...placeView(destination),
    lane,
    status,
    in_delivery: task.lease !== undefined,
    blocked: task.blocked,
    cancelling: task.cancelling,
    retry_count: isSent ? attempt : Math.max(0, attempt - 1),
    max_retries: maxAttempts - 1,
    generation,
    due_at: timeText(task.dueAtMs),
    created_at: timeText(task.createdAtMs),
    ...(expiresAtMs === undefined ? {} : { expires_at: timeText(expiresAtMs) }),
    ...(finishedAtMs === undefined ? {} : { finished_at: timeText(finishedAtMs) }),
    ...(orderingKey === undefined ? {} : { ordering_key: orderingKey }),
    ...(policy === undefined ? {} : { policy }),
    ...(job === undefined ? {} : { job }),
    ...(failure === undefined ? {} : { error: failureView(failure) }),
  };
}

export function taskDetail(task: Task, attempts: Attempts): Static<typeof retries.TaskDetail> {
  const { headers, contentType, method, secret } = task.context ?? {};
  return {
    ...taskView(task),
    ...showPayload(task.payload),
    ...(headers === undefined ? {} : { headers }),
    ...(contentType === undefined ? {} : { content_type: contentType }),
    ...(method === undefined ? {} : { method }),
    ...(secret === undefined ? {} : { secret }),
    attempts: attempts.map(attemptView),
  };
}

export function itemView(item: InboxItem): Static<typeof review.Item> {
  const { orderingKey, closedAtMs, closedBy, job } = item;
  return {
    id: item.id,
    message_id: item.messageId,
    reason: item.reason,
    state: item.state,
    error: failureView(item.failure),
    fingerprint: item.fingerprint,
    ...placeView(item.destination),
    lane: item.lane,
    retry_count: Math.max(0, item.attempt - 1),
    max_retries: Math.max(0, item.maxAttempts - 1),
    generation: item.generation,
    ...(orderingKey === undefined ? {} : { ordering_key: orderingKey }),
    occurrences: item.occurrences,
    first_seen_at: timeText(item.firstSeenMs),
    last_seen_at: timeText(item.lastSeenMs),
    ...(closedAtMs === undefined ? {} : { closed_at: timeText(closedAtMs) }),
    ...(closedBy === undefined ? {} : { closed_by: closedBy }),
    ...(job === undefined ? {} : { job }),
    edited: item.edit !== undefined,
  };
}

export function itemDetail(item: InboxItem, attempts: Attempts): Static<typeof review.ItemDetail> {
  const { headers, contentType } = item.context ?? {};
  const { edit } = item;
  return {
    ...itemView(item),
    ...showPayload(item.payload),
    ...(headers === undefined ? {} : { headers }),
    ...(contentType === undefined ? {} : { content_type: contentType }),
    attempts: attempts.map(attemptView),
    ...(edit ? { edit: editView(edit), difference: showDifference(item) } : {}),
  };
}

function editView({ payload, headers, destination, by }: NonNullable<InboxItem['edit']>) {
  return {
    ...(payload ? showPayload(payload) : {}),
    ...(headers === undefined ? {} : { headers }),
    ...(destination === undefined ? {} : { destination }),
    ...(by === undefined ? {} : { by }),
  };
}

export function groupView(group: Group): Static<typeof review.Group> {
  const { fingerprint, lane, reason, failure, open, firstSeenMs, lastSeenMs, note, owner } = group;
  return {
    fingerprint,
    lane,
    reason,
    error: failureView(failure),
    open,
    first_seen_at: timeText(firstSeenMs),
    last_seen_at: timeText(lastSeenMs),
    ...(note === undefined ? {} : { note }),
    ...(owner === undefined ? {} : { owner }),
  };
}

export function jobView(job: JobReport): Static<typeof bulk.Job> {
  const { canary, perSecond, createdAtMs, finishedAtMs, ...same } = job;
  return {
    ...same,
    canary: [...canary],
    ...(perSecond === undefined ? {} : { per_second: perSecond }),
    created_at: timeText(createdAtMs),
    ...(finishedAtMs === undefined ? {} : { finished_at: timeText(finishedAtMs) }),
  };
}

export function memberView({ itemId, result }: Member): Static<typeof bulk.Member> {
  return { item_id: itemId, ...(result === undefined ? {} : { result }) };
}

export function laneView(report: LaneReport): Static<typeof service.Lane> {
  const { lane, state, running, nextInMs, blocked, blockedBy } = report;
  const { pausedBy, probeInMs, limits } = report;
  return {
    lane,
    state,
    running,
    ...(nextInMs === undefined ? {} : { next_in_ms: nextInMs }),
    ...(blocked === undefined ? {} : { blocked }),
    ...(blockedBy === undefined ? {} : { blocked_by: blockedBy }),
    ...(pausedBy === undefined ? {} : { paused_by: pausedBy }),
    ...(probeInMs === undefined ? {} : { probe_in_ms: probeInMs }),
    ...(limits ? { limits: limitsView(limits) } : {}),
  };
}

function limitsView({ timeoutMs, ratePerSecond, ...same }: NonNullable<LaneReport['limits']>) {
  const rate = ratePerSecond === undefined ? {} : { rate_per_second: ratePerSecond };
  return { ...same, timeout_ms: timeoutMs, ...rate };
}

export function simulationView(result: Simulation): Static<typeof service.Simulation> {
  const { completionMs } = result;
  return {
    succeeded: result.succeeded,
    gave_up: result.gaveUp,
    unfinished: result.unfinished,
    attempts: result.attempts,
    outcomes: outcomesView(result.outcomes),
    wasted: result.wasted,
    peak_per_second: result.peakPerSecond,
    peak_after_outage: result.peakAfterOutage,
    recovery_ms: result.recoveryMs,
    overloaded_ms: result.overloadedMs,
    ...(completionMs ? { completion_ms: completionMs } : {}),
    ended_ms: result.endedMs,
    ended_by: result.endedBy,
    bucket_ms: result.bucketMs,
    load: result.load.map((bucket) => ({
      at_ms: bucket.atMs,
      attempts: bucket.attempts,
      ...outcomesView(bucket),
    })),
  };
}

function outcomesView({ served, down, overloaded, timedOut }: Simulation['outcomes']) {
  return { served, down, overloaded, timed_out: timedOut };
}

/** The destination, and the queue's name where it is one. */
export function placeView({ kind, address }: Destination) {
  const destination = { kind, address };
  return kind === 'queue' ? { destination, queue: address } : { destination };
}

function failureView(failure: Failure): Static<typeof common.Failure> {
  const { code, message, status, retryAfterMs } = failure;
  return {
    class: failure.class,
    ...(code === undefined ? {} : { code }),
    ...(message === undefined ? {} : { message }),
    ...(status === undefined ? {} : { status }),
    ...(retryAfterMs === undefined ? {} : { retry_after_ms: retryAfterMs }),
  };
}

function attemptView(record: Attempts[number]): Static<typeof common.Attempt> {
  const { attempt, generation, atMs, durationMs, failure, answer } = record;
  return {
    attempt,
    generation,
    at: timeText(atMs),
    duration_ms: durationMs,
    error: failureView(failure),
    ...(answer === undefined ? {} : { answer }),
  };
}
