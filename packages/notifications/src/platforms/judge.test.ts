import { describe, expect, it } from 'vitest';
import { type FailedDelivery, judge } from './judge.ts';
import type { Platform, Verdict } from './verdict.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const verdictOf = (delivery: FailedDelivery, platform?: Platform) =>
  judge(delivery, NOW_MS, platform).verdict;
const fcm = (code: number, errorCode: string, more: object = {}) => ({
  error: { code, status: 'X', details: [{ errorCode }], ...more },
});

describe('what the answers of push services mean', () => {
  it.each<[Verdict, Platform, number, string | undefined]>([
    ['dead_token', 'apns', 410, 'Unregistered'],
    ['dead_token', 'apns', 410, 'ExpiredToken'],
    ['dead_token', 'apns', 400, 'BadDeviceToken'],
    ['dead_token', 'apns', 400, 'DeviceTokenNotForTopic'],
    ['permanent', 'apns', 400, 'BadCollapseId'],
    ['permanent', 'apns', 400, 'MissingTopic'],
    ['permanent', 'apns', 404, 'BadPath'],
    ['permanent', 'apns', 405, 'MethodNotAllowed'],
    ['permanent', 'apns', 413, 'PayloadTooLarge'],
    ['configuration', 'apns', 403, 'BadCertificate'],
    ['configuration', 'apns', 403, 'InvalidProviderToken'],
    ['configuration', 'apns', 403, 'UnrelatedKeyIdInToken'],
    ['refresh', 'apns', 403, 'ExpiredProviderToken'],
    ['retryable', 'apns', 500, 'InternalServerError'],
    ['retryable', 'apns', 503, 'ServiceUnavailable'],
    ['retryable', 'apns', 503, 'Shutdown'],
    ['retryable', 'apns', 400, 'IdleTimeout'],
    ['rate_limited', 'apns', 429, 'TooManyRequests'],
    ['rate_limited', 'apns', 429, 'TooManyProviderTokenUpdates'],
    ['unknown', 'apns', 400, 'SomethingNew'],
    ['dead_token', 'fcm', 404, 'UNREGISTERED'],
    ['dead_token', 'fcm', 404, 'UNREGISTERED_FID'],
    ['unknown', 'fcm', 404, undefined],
    ['permanent', 'fcm', 400, 'INVALID_ARGUMENT'],
    ['configuration', 'fcm', 401, 'THIRD_PARTY_AUTH_ERROR'],
    ['configuration', 'fcm', 403, 'SENDER_ID_MISMATCH'],
    ['retryable', 'fcm', 500, 'INTERNAL'],
    ['retryable', 'fcm', 503, 'UNAVAILABLE'],
    ['rate_limited', 'fcm', 429, 'QUOTA_EXCEEDED'],
    ['unknown', 'fcm', 500, 'UNSPECIFIED_ERROR'],
    ['dead_token', 'webpush', 404, undefined],
    ['dead_token', 'webpush', 410, undefined],
    ['dead_token', 'webpush', 403, 'VapidPkHashMismatch'],
    ['dead_token', 'webpush', 400, 'VapidPkHashMismatch'],
    ['permanent', 'webpush', 400, 'BadTtl'],
    ['permanent', 'webpush', 413, undefined],
    ['configuration', 'webpush', 401, undefined],
    ['configuration', 'webpush', 403, 'BadJwtToken'],
    ['retryable', 'webpush', 502, undefined],
    ['rate_limited', 'webpush', 429, undefined],
    ['rate_limited', 'webpush', 406, undefined],
  ])('%s: %s %d %s', (verdict, platform, status, reason) => {
    const answer = platform === 'fcm' && reason ? fcm(status, reason) : { status, reason };
    expect(verdictOf({ platformResponse: { platform, ...answer } })).toBe(verdict);
  });

  it('are read in the shapes that clients write', () => {
    expect(verdictOf({ errorCode: 'Unregistered' })).toBe('dead_token');
    expect(verdictOf({ errorCode: 'messaging/registration-token-not-registered' })).toBe(
      'dead_token',
    );
    const apn = {
      device: 'x',
      status: '410',
      response: { reason: 'Unregistered', timestamp: '5' },
    };
    expect(judge({ platformResponse: apn }, NOW_MS)).toMatchObject({
      verdict: 'dead_token',
      platform: 'apns',
      deadSinceMs: 5,
      failure: { class: 'business', code: 'Unregistered', status: 410 },
    });
    expect(verdictOf({ platformResponse: '{"status":503,"reason":"Shutdown"}' })).toBe('retryable');
    expect(verdictOf({ platformResponse: { statusCode: 410, body: 'gone' } }, 'webpush')).toBe(
      'dead_token',
    );
    expect(verdictOf({ platformResponse: { status: 404 } }, 'webpush')).toBe('dead_token');
    expect(verdictOf({ platformResponse: { platform: 'web', status: 404 } })).toBe('dead_token');
    expect(verdictOf({ errorCode: 'HTTP_503' })).toBe('retryable');
  });

  it('of FCM are a dead token only where the invalid argument is the token', () => {
    const violation = { fieldViolations: [{ field: 'message.token' }] };
    const details = [{ errorCode: 'INVALID_ARGUMENT' }, violation];
    expect(
      verdictOf({
        platformResponse: { error: { code: 400, status: 'INVALID_ARGUMENT', details } },
      }),
    ).toBe('dead_token');
    const message = 'The registration token is not a valid FCM registration token';
    expect(verdictOf({ platformResponse: fcm(400, 'INVALID_ARGUMENT', { message }) })).toBe(
      'dead_token',
    );
    const other = { fieldViolations: [{ field: 'message.android.ttl' }] };
    expect(
      verdictOf({
        platformResponse: { error: { code: 400, status: 'INVALID_ARGUMENT', details: [other] } },
      }),
    ).toBe('permanent');
  });

  it('of an unknown platform mean only what all of them mean', () => {
    expect(verdictOf({ platformResponse: { status: 410 } })).toBe('dead_token');
    expect(verdictOf({ platformResponse: { status: 404 } })).toBe('unknown');
    expect(verdictOf({ platformResponse: { status: 400 } })).toBe('unknown');
    expect(verdictOf({ platformResponse: { status: 413 } })).toBe('permanent');
    expect(verdictOf({})).toBe('unknown');
  });

  it('say how long to wait: the report, the headers, or a minute of FCM', () => {
    const wait = (delivery: FailedDelivery) => judge(delivery, NOW_MS).failure.retryAfterMs;
    const headers = { 'retry-after': '120' };
    expect(wait({ platformResponse: { status: 503, headers } })).toBe(120_000);
    expect(wait({ retryAfterMs: 5000, platformResponse: { status: 503, headers } })).toBe(5000);
    expect(wait({ platformResponse: fcm(429, 'QUOTA_EXCEEDED') })).toBe(60_000);
    expect(wait({ platformResponse: { ...fcm(429, 'QUOTA_EXCEEDED'), headers } })).toBe(120_000);
    expect(wait({ platformResponse: { platform: 'apns', status: 429 } })).toBeUndefined();
  });

  it.each([
    null,
    5,
    'x',
    [],
    '{',
    { status: 'ok' },
    { error: 'no' },
    { error: { details: [null, 3] } },
  ])('are unknown where nobody can read them: %j', (platformResponse) => {
    expect(verdictOf({ platformResponse })).toBe('unknown');
  });

  it('keep texts short, since each device keeps its last failure in the record', () => {
    const { failure } = judge(
      { errorCode: 'c'.repeat(1000), errorMessage: 'm'.repeat(9000) },
      NOW_MS,
    );
    expect(failure.code).toHaveLength(100);
    expect(failure.message).toHaveLength(500);
  });
});
