import type { ErrorRow } from './verdict.ts';

/** Web Push: the status, and the `reason` of Apple's server. */
export const webPushErrors: readonly ErrorRow[] = [
  // The subscription belongs to another key of the application server: no later push can work either.
  { reason: ['VapidPkHashMismatch'], verdict: 'dead_token' },
  {
    reason: ['BadTtl', 'BadUrgency', 'BadWebPushTopic', 'BadWebPushRequest'],
    verdict: 'permanent',
  },
  { reason: ['BadJwtToken', 'BadVapidPublicKey'], verdict: 'configuration' },
  { status: [404, 410], verdict: 'dead_token' },
  { status: [400, 413], verdict: 'permanent' },
  { status: [401, 403], verdict: 'configuration' },
  // 406 is how Windows' server throttles.
  { status: [429, 406], verdict: 'rate_limited' },
  { status: [500, 502, 503, 504], verdict: 'retryable' },
];
