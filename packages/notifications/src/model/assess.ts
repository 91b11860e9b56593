/** What follows from a failed delivery: one decision, with its explanation. Pure. */
import { decide, type Decided, explain, type Failure, type GiveUp } from 'redrive';
import { type FailedDelivery, judge, type Judged } from '../platforms/judge.ts';
import type { Platform } from '../platforms/verdict.ts';
import type { FailureReason, NotificationRecord } from './notification.ts';
import { afterQuietHours, quietHoursOf } from './quiet-hours.ts';
import { deliveryOf } from './record.ts';
import {
  getPriorityBackoff,
  type Lane,
  laneOfPriority,
  type PriorityPolicies,
} from './retry-config.ts';
import { isFinal } from './states.ts';

/** An attempt that failed, as somebody reports it. */
export interface FailureReport extends FailedDelivery {
  notificationId: string;
  deviceId: string;
  attemptNumber: number;
  attemptedAtMs?: number;
}

/** What is known of a device. `active` absent: nobody could say, which is not inactive. */
export interface DeviceFacts {
  active?: boolean;
  platform?: Platform;
  lastSeenMs?: number;
  registeredAtMs?: number;
}

export interface AssessFacts {
  nowMs: number;
  policies: PriorityPolicies;
  /** Of the jitter: one per deployment. */
  seed: number;
  device?: DeviceFacts;
  /** Since when its token is known to be dead. */
  inactiveSinceMs?: number;
}

export type SkipReason = 'device_inactive' | 'dead_token';

export type Assessment =
  | { decision: 'duplicate'; explanation: string }
  | ({ decision: 'skipped'; reason: SkipReason } & Assessed)
  | ({ decision: 'expired' } & Assessed)
  | ({ decision: 'failed'; reason: FailureReason; deadSinceMs?: number } & Assessed)
  | ({ decision: 'scheduled'; lane: Lane; delayMs: number; dueAtMs: number } & Assessed);

interface Assessed {
  explanation: string;
  failure: Failure;
  platform?: Platform;
  /** What core decided, where it was asked: an audit trail makes it again from this. */
  decided?: Decided;
}

/**
 * `device` absent from the facts: assessed as if the device were active. Whoever gets `scheduled` then asks for the
 * device and assesses again.
 */
export function assess(
  record: NotificationRecord,
  report: FailureReport,
  facts: AssessFacts,
): Assessment {
  const delivery = deliveryOf(record, report.deviceId);
  const { attemptNumber } = report;
  if (delivery && (isFinal(delivery.state) || attemptNumber < delivery.attempt)) {
    return { decision: 'duplicate', explanation: knownAlready(attemptNumber, delivery) };
  }
  const judged = judge(report, facts.nowMs, facts.device?.platform);
  const { platform } = judged;
  const failure = failureOf(judged, facts);
  const assessed = { failure, ...(platform === undefined ? {} : { platform }) };
  const reason = hopeless(judged, delivery?.failure, facts);
  if (reason === 'DEAD_TOKEN') {
    const deadSinceMs = judged.deadSinceMs ?? facts.nowMs;
    const explanation = `The push service says that the token of the device is dead${codeIn(failure)}.`;
    return { decision: 'failed', reason, deadSinceMs, explanation, ...assessed };
  }
  if (reason)
    return { decision: 'failed', reason, explanation: sentences[reason](failure), ...assessed };
  return retryOf(record, report, facts, assessed, delivery?.countsFrom ?? 0);
}

/** Only where nothing else speaks against a retry does it matter what the device is. */
function retryOf(
  record: NotificationRecord,
  { attemptNumber, deviceId }: FailureReport,
  facts: AssessFacts,
  assessed: { failure: Failure },
  countsFrom: number,
): Assessment {
  const { nowMs, policies, seed } = facts;
  const { priority, expiresAtMs } = record.notification;
  const policy = policies[priority];
  const { failure } = assessed;
  const question = {
    attempt: Math.max(1, attemptNumber - countsFrom),
    failure,
    seed,
    key: `${record.id}:${deviceId}`,
  };
  const decision = decide(policy, question);
  const decided = { policy, facts: question, decision };
  if (decision.action === 'giveUp') {
    const explanation = explain(decision);
    const isTooLong = decision.reason === 'RETRY_AFTER_TOO_LONG';
    if (isTooLong && nowMs + (decision.retryAfterMs ?? 0) > expiresAtMs) {
      const over = `The notification ends at ${timeOf(expiresAtMs)}, before the time that the push service asked for.`;
      return { decision: 'expired', explanation: over, ...assessed, decided };
    }
    const reason = reasonOf(decision);
    return { decision: 'failed', reason, explanation, ...assessed, decided };
  }
  const skip = inactive(facts);
  if (skip) {
    const explanation =
      skip === 'dead_token'
        ? 'The token of the device is known to be dead, so the retry is skipped.'
        : 'The device is inactive, so the retry is skipped.';
    return { decision: 'skipped', reason: skip, explanation, ...assessed, decided };
  }
  const { dueAtMs, isDeferred } = dueTime(
    record,
    nowMs,
    decision.delayMs,
    question.attempt,
    policies,
  );
  const delayMs = dueAtMs - nowMs;
  if (dueAtMs > expiresAtMs || nowMs >= expiresAtMs) {
    const explanation = `The next retry would be due at ${timeOf(dueAtMs)}, after the notification's end at ${timeOf(expiresAtMs)}.`;
    return { decision: 'expired', explanation, ...assessed, decided };
  }
  const quiet = isDeferred ? ` Quiet hours defer it to ${timeOf(dueAtMs)}.` : '';
  const explanation = `${explain(decision)}${quiet}`;
  const lane = laneOfPriority[priority];
  return { decision: 'scheduled', lane, delayMs, dueAtMs, explanation, ...assessed, decided };
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

function reasonOf({ reason }: GiveUp): FailureReason {
  return reason === 'EXHAUSTED' || reason === 'RETRY_AFTER_TOO_LONG' ? reason : 'PERMANENT';
}

/** A retry that quiet hours defer keeps its jitter, so that a crowd does not come at the first minute of the morning. */
function dueTime(
  { notification }: NotificationRecord,
  nowMs: number,
  delayMs: number,
  attempt: number,
  policies: PriorityPolicies,
): { dueAtMs: number; isDeferred: boolean } {
  const { priority, scheduledAtMs = 0 } = notification;
  const dueAtMs = Math.max(nowMs + delayMs, scheduledAtMs);
  const quietHours = quietHoursOf(notification);
  const awakeMs = quietHours ? afterQuietHours(quietHours, dueAtMs) : dueAtMs;
  if (awakeMs === dueAtMs) return { dueAtMs, isDeferred: false };
  const backoffMs = getPriorityBackoff(priority, attempt, policies);
  const jitterMs = Math.min(Math.max(0, delayMs - backoffMs), 0.3 * backoffMs);
  return { dueAtMs: Math.floor(awakeMs + jitterMs), isDeferred: true };
}

/** The old token of a device that has come back since says nothing about its new one. */
function failureOf({ verdict, failure, deadSinceMs }: Judged, { device }: AssessFacts): Failure {
  const isBack = verdict === 'dead_token' && isRegisteredSince(device, deadSinceMs);
  return isBack ? { ...failure, class: 'transient' } : failure;
}

/** Why no retry can help, by what the push service said. */
function hopeless(
  { verdict, deadSinceMs, failure }: Judged,
  before: Failure | undefined,
  { device }: AssessFacts,
): FailureReason | undefined {
  switch (verdict) {
    case 'dead_token':
      return isRegisteredSince(device, deadSinceMs) ? undefined : 'DEAD_TOKEN';
    case 'permanent':
      return 'PERMANENT';
    case 'configuration':
      return 'CONFIGURATION';
    case 'refresh':
      // A fresh token was refused for the same reason: it is not its age.
      return before?.code !== undefined && before.code === failure.code
        ? 'CONFIGURATION'
        : undefined;
    case 'retryable':
    case 'rate_limited':
    case 'unknown':
      return undefined;
  }
}

/** The token died, and the device came back with another one. */
function isRegisteredSince(
  device: DeviceFacts | undefined,
  deadSinceMs: number | undefined,
): boolean {
  const seenMs = device?.registeredAtMs ?? device?.lastSeenMs;
  return deadSinceMs !== undefined && seenMs !== undefined && seenMs > deadSinceMs;
}

function inactive({ device, inactiveSinceMs }: AssessFacts): SkipReason | undefined {
  if (device?.active === false) return 'device_inactive';
  if (inactiveSinceMs === undefined) return undefined;
  return device?.active && isRegisteredSince(device, inactiveSinceMs) ? undefined : 'dead_token';
}

function knownAlready(
  attemptNumber: number,
  { attempt, state }: { attempt: number; state: string },
): string {
  if (attemptNumber <= attempt) return `The failure of attempt ${attemptNumber} is known already.`;
  return `The delivery is over (${state}), so the failure of attempt ${attemptNumber} changes nothing.`;
}

function codeIn({ code }: Failure): string {
  return code === undefined ? '' : ` (${code})`;
}

const sentences: Readonly<
  Record<Exclude<FailureReason, 'DEAD_TOKEN'>, (failure: Failure) => string>
> = {
  PERMANENT: (failure) => `The push service never delivers this message${codeIn(failure)}.`,
  CONFIGURATION: (failure) =>
    `The push service refuses the credentials of the provider${codeIn(failure)}. Correct them, then replay the item. The token is kept.`,
  EXHAUSTED: () => 'No attempts are left.',
  RETRY_AFTER_TOO_LONG: () => 'The push service asked for too long a wait.',
  WORKER_LOST: () => 'Every worker that began this attempt was lost.',
};
