/** What a report carries of a push service's answer, in the shapes that clients and servers write. Pure: it never throws. */
import { parseRetryAfter } from 'redrive';
import { LAST_DATE_MS } from 'redrive/internal';
import { type Platform, platforms } from './verdict.ts';

export interface PlatformAnswer {
  platform?: Platform;
  status?: number;
  /** APNs and Apple's Web Push: `reason`. FCM: `errorCode`. */
  reason?: string;
  message?: string;
  details?: unknown;
  retryAfterMs?: number;
  /** APNs 410: since when the token is dead. */
  timestampMs?: number;
}

export function readAnswer(response: unknown, nowMs: number): PlatformAnswer {
  const top = objectOf(response);
  const body = objectOf(top['body'] ?? top['response'] ?? top['data']);
  const error = objectOf(top['error'] ?? body['error']);
  const status = statusOf(
    top['status'] ?? top['statusCode'] ?? top['status_code'] ?? error['code'],
  );
  const platform =
    platformOf(top['platform']) ?? (error['status'] === undefined ? undefined : 'fcm');
  const reason =
    textOf(top['reason'] ?? body['reason']) ?? fcmCode(error) ?? textOf(error['status']);
  const message = textOf(error['message'] ?? top['message']);
  const timestampMs = timestampOf(top['timestamp'] ?? body['timestamp']);
  const retryAfterMs = parseRetryAfter(top['headers'], nowMs, status);
  const details = error['details'];
  return {
    ...(platform === undefined ? {} : { platform }),
    ...(status === undefined ? {} : { status }),
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
    ...(timestampMs === undefined ? {} : { timestampMs }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(details === undefined ? {} : { details }),
  };
}

/** A platform by the names that device services use. */
export function platformOf(name: unknown): Platform | undefined {
  return typeof name === 'string' ? byName.get(name.toLowerCase()) : undefined;
}

/** A map: somebody may call a platform `constructor`. */
const byName: ReadonlyMap<string, Platform> = new Map<string, Platform>([
  ...platforms.map((name) => [name, name] as const),
  ['ios', 'apns'],
  ['apple', 'apns'],
  ['android', 'fcm'],
  ['web', 'webpush'],
  ['web-push', 'webpush'],
]);

function fcmCode({ details }: Record<string, unknown>): string | undefined {
  if (!Array.isArray(details)) return undefined;
  for (const detail of details) {
    const code = textOf(objectOf(detail)['errorCode']);
    if (code !== undefined) return code;
  }
  return undefined;
}

/** A body may come as it was sent. */
function objectOf(value: unknown): Record<string, unknown> {
  if (typeof value === 'string' && value.startsWith('{') && value.length < 64 * 1024) {
    try {
      return objectOf(JSON.parse(value));
    } catch {
      return {};
    }
  }
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function statusOf(value: unknown): number | undefined {
  const status = typeof value === 'string' ? Number(value) : value;
  return Number.isInteger(status) && (status as number) >= 100 && (status as number) <= 599
    ? (status as number)
    : undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value.slice(0, 256) : undefined;
}

/** In whole ms, as it is stored. */
function timestampOf(value: unknown): number | undefined {
  const ms = typeof value === 'string' ? Number(value) : value;
  return typeof ms === 'number' && ms > 0 && ms <= LAST_DATE_MS ? Math.floor(ms) : undefined;
}
