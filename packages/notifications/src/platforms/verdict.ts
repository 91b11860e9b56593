/** What an answer of a push service means. */
export const verdicts = [
  /** The token is dead: never again to this device. */
  'dead_token',
  /** The message can never be delivered as it is. */
  'permanent',
  /** The provider's keys, certificates or permissions are wrong: no fault of device or message. */
  'configuration',
  /** The provider's token was too old: once more with a fresh one. */
  'refresh',
  'retryable',
  'rate_limited',
  /** Nobody can say. It is retried. */
  'unknown',
] as const;
export type Verdict = (typeof verdicts)[number];

export const platforms = ['apns', 'fcm', 'webpush'] as const;
export type Platform = (typeof platforms)[number];

/** One row: by reason, by status, or both. */
export interface ErrorRow {
  status?: readonly number[];
  reason?: readonly string[];
  verdict: Verdict;
  /** Where the answer says nothing of its own. */
  retryAfterMs?: number;
}
