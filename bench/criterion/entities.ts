/** The question that all cases ask. */
export const PATH = '/api/v1/criteria/isRetryDelayElapsed';

/** An entity as a workflow has it: times as text, backoff and jitter, and fields that no criterion reads. */
export function entityOf(n: number): Record<string, unknown> {
  return {
    id: `order-${String(n).padStart(7, '0')}`,
    state: 'RETRY_PENDING',
    customer: 'c-1029384756',
    lastAttemptTime: '2030-01-31T12:00:00.000Z',
    currentTime: '2030-01-31T12:03:30.000Z',
    retryDelaySeconds: 60,
    attemptCount: 2,
    exponentialBackoff: true,
    backoffMultiplier: 2,
    maxDelaySeconds: 3600,
    jitterEnabled: true,
  };
}

export function singleBody(): string {
  return JSON.stringify({ entity: entityOf(7), entity_id: 'order-0000007' });
}

export function batchBody(size: number): string {
  return JSON.stringify({ entities: Array.from({ length: size }, (_, n) => entityOf(n)) });
}
