import type { ErrorRow } from './verdict.ts';

/** Apple Push Notification service: the `reason` of the answer's body. */
export const apnsErrors: readonly ErrorRow[] = [
  {
    reason: ['Unregistered', 'ExpiredToken', 'BadDeviceToken', 'DeviceTokenNotForTopic'],
    verdict: 'dead_token',
  },
  {
    reason: [
      'BadCollapseId',
      'BadExpirationDate',
      'BadMessageId',
      'BadPriority',
      'BadTopic',
      'DuplicateHeaders',
      'InvalidPushType',
      'MissingDeviceToken',
      'MissingTopic',
      'PayloadEmpty',
      'TopicDisallowed',
      'BadPath',
      'MethodNotAllowed',
      'PayloadTooLarge',
    ],
    verdict: 'permanent',
  },
  {
    reason: [
      'BadCertificate',
      'BadCertificateEnvironment',
      'Forbidden',
      'InvalidProviderToken',
      'MissingProviderToken',
      'UnrelatedKeyIdInToken',
      'BadEnvironmentKeyIdInToken',
    ],
    verdict: 'configuration',
  },
  { reason: ['ExpiredProviderToken'], verdict: 'refresh' },
  { reason: ['TooManyRequests', 'TooManyProviderTokenUpdates'], verdict: 'rate_limited' },
  {
    // IdleTimeout is a 400, and means that the connection was too old.
    reason: ['InternalServerError', 'ServiceUnavailable', 'Shutdown', 'IdleTimeout'],
    verdict: 'retryable',
  },
  // Without a reason that is known.
  { status: [410], verdict: 'dead_token' },
  { status: [404, 405, 413], verdict: 'permanent' },
  { status: [403], verdict: 'configuration' },
  { status: [429], verdict: 'rate_limited' },
  { status: [500, 502, 503, 504], verdict: 'retryable' },
];
