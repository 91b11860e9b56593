import type { ErrorRow } from './verdict.ts';

/** Without a Retry-After, FCM asks for a minute. */
const QUOTA_MS = 60_000;

/** Firebase Cloud Messaging v1: the `errorCode` of the answer, or the code of the admin SDK. */
export const fcmErrors: readonly ErrorRow[] = [
  {
    reason: [
      'UNREGISTERED',
      'UNREGISTERED_FID',
      'messaging/registration-token-not-registered',
      'messaging/invalid-registration-token',
    ],
    verdict: 'dead_token',
  },
  // Where it names the token it is a dead token: see `namesToken`.
  { reason: ['INVALID_ARGUMENT', 'messaging/invalid-argument'], verdict: 'permanent' },
  {
    reason: [
      'THIRD_PARTY_AUTH_ERROR',
      'SENDER_ID_MISMATCH',
      'messaging/third-party-auth-error',
      'messaging/mismatched-credential',
    ],
    verdict: 'configuration',
  },
  {
    reason: [
      'QUOTA_EXCEEDED',
      'RESOURCE_EXHAUSTED',
      'messaging/message-rate-exceeded',
      'messaging/device-message-rate-exceeded',
    ],
    verdict: 'rate_limited',
    retryAfterMs: QUOTA_MS,
  },
  {
    reason: ['INTERNAL', 'UNAVAILABLE', 'messaging/internal-error', 'messaging/server-unavailable'],
    verdict: 'retryable',
  },
  { reason: ['UNSPECIFIED_ERROR'], verdict: 'unknown' },
  // A bare 404 may be a wrong URL: only UNREGISTERED says that the token is dead.
  { status: [400, 413], verdict: 'permanent' },
  { status: [401, 403], verdict: 'configuration' },
  { status: [429], verdict: 'rate_limited', retryAfterMs: QUOTA_MS },
  { status: [500, 502, 503, 504], verdict: 'retryable' },
];

/** INVALID_ARGUMENT is mostly a fault of the message. Taken for a dead token it has deactivated good devices elsewhere. */
export function namesToken(details: unknown, message: string | undefined): boolean {
  if (message !== undefined && /registration token|message\.token/i.test(message)) return true;
  if (!Array.isArray(details)) return false;
  return details.some((detail: unknown) => {
    const { fieldViolations } = Object(detail) as { fieldViolations?: unknown };
    if (!Array.isArray(fieldViolations)) return false;
    return fieldViolations.some(
      (violation: unknown) => (Object(violation) as { field?: unknown }).field === 'message.token',
    );
  });
}
