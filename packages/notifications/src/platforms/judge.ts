/** A report becomes a failure, with what the push service's answer means. Pure. */
import type { Failure, FailureClass } from 'redrive';
import { apnsErrors } from './apns.ts';
import { fcmErrors, namesToken } from './fcm.ts';
import { type PlatformAnswer, readAnswer } from './response.ts';
import { type ErrorRow, type Platform, platforms, type Verdict } from './verdict.ts';
import { webPushErrors } from './webpush.ts';

export const errorTables: Readonly<Record<Platform, readonly ErrorRow[]>> = {
  apns: apnsErrors,
  fcm: fcmErrors,
  webpush: webPushErrors,
};

/** Of a platform that nobody named: only what all of them mean. */
const anyPlatform: readonly ErrorRow[] = [
  { status: [410], verdict: 'dead_token' },
  { status: [413], verdict: 'permanent' },
  { status: [429], verdict: 'rate_limited' },
  { status: [500, 502, 503, 504], verdict: 'retryable' },
];

/** The record keeps the last failure of each device. The attempts keep all of it. */
const MAX_MESSAGE_LENGTH = 500;
const MAX_CODE_LENGTH = 100;

/** What somebody reports of a failed delivery. */
export interface FailedDelivery {
  errorCode?: string;
  errorMessage?: string;
  platformResponse?: unknown;
  retryAfterMs?: number;
}

export interface Judged {
  verdict: Verdict;
  failure: Failure;
  platform?: Platform;
  /** APNs 410: the token is dead only where the device was registered before. */
  deadSinceMs?: number;
}

/** `platform`: of the device, where the answer does not say. */
export function judge(
  { errorCode: givenCode, errorMessage, platformResponse, retryAfterMs }: FailedDelivery,
  nowMs: number,
  platform?: Platform,
): Judged {
  // One that is no text says nothing. It must not keep the reports beside it from being judged.
  const errorCode = typeof givenCode === 'string' ? givenCode : undefined;
  const answer = withStatus(readAnswer(platformResponse, nowMs), errorCode);
  const known = answer.platform ?? platform;
  const row = rowOf(answer, errorCode, known);
  let verdict = row?.row.verdict ?? 'unknown';
  const message = typeof errorMessage === 'string' ? errorMessage : answer.message;
  const isAboutToken = row?.platform === 'fcm' && namesToken(answer.details, message);
  if (verdict === 'permanent' && isAboutToken) verdict = 'dead_token';
  const waitMs = retryAfterMs ?? answer.retryAfterMs ?? row?.row.retryAfterMs;
  const code = codeOf(answer, errorCode);
  const failure: Failure = {
    class: classes[verdict],
    ...(code === undefined ? {} : { code: code.slice(0, MAX_CODE_LENGTH) }),
    ...(message === undefined ? {} : { message: message.slice(0, MAX_MESSAGE_LENGTH) }),
    ...(answer.status === undefined ? {} : { status: answer.status }),
    ...(waitMs === undefined ? {} : { retryAfterMs: waitMs }),
  };
  return {
    verdict,
    failure,
    ...(row?.platform === undefined ? {} : { platform: row.platform }),
    // Not in the future: a device that registers anew would count as dead until then.
    ...(answer.timestampMs === undefined
      ? {}
      : { deadSinceMs: Math.min(answer.timestampMs, nowMs) }),
  };
}

const classes: Readonly<Record<Verdict, FailureClass>> = {
  dead_token: 'business',
  permanent: 'business',
  configuration: 'technical',
  refresh: 'transient',
  retryable: 'transient',
  rate_limited: 'transient',
  unknown: 'unknown',
};

/** A code such as `HTTP_503` says the status too. */
function withStatus(answer: PlatformAnswer, errorCode: string | undefined): PlatformAnswer {
  const status = /^(?:HTTP_)?([1-5]\d\d)$/.exec(errorCode ?? '')?.[1];
  return status === undefined ? answer : { status: Number(status), ...answer };
}

function codeOf({ reason, status }: PlatformAnswer, errorCode?: string): string | undefined {
  return errorCode ?? reason ?? (status === undefined ? undefined : `HTTP_${status}`);
}

/** By reason before status: the same status means many things. Reasons are unique among the platforms. */
function rowOf(
  { reason, status }: PlatformAnswer,
  errorCode: string | undefined,
  platform: Platform | undefined,
): { row: ErrorRow; platform?: Platform } | undefined {
  const tables = platform ? [platform] : platforms;
  for (const word of [reason, errorCode]) {
    if (word === undefined) continue;
    for (const name of tables) {
      const row = errorTables[name].find((each) => each.reason?.includes(word));
      if (row) return { row, platform: name };
    }
  }
  if (status === undefined) return undefined;
  const byStatus = (rows: readonly ErrorRow[]) =>
    rows.find((row) => !row.reason && row.status?.includes(status));
  const row = byStatus(platform ? errorTables[platform] : anyPlatform);
  return row && (platform ? { row, platform } : { row });
}
