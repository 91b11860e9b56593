/** The headers that Redrive writes itself: carried on, they would be taken for facts of the message that goes out. */

/** Written on what Redrive publishes. */
export function isOurs(name: string): boolean {
  return ours.has(name) || name.startsWith('x-redrive-');
}

const ours = new Set([
  'x-retry-count',
  'x-retry-scheduler',
  'x-message-id',
  'x-original-error',
  'x-original-queue',
  'x-original-exchange',
  'x-original-routing-key',
  'x-max-retries-exceeded',
  'x-review-reason',
]);
