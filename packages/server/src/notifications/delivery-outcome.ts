/** What the answer of a receiver means for a notification. Pure. */
import type { Outcome } from '@redrive/engine';
import type { DeliverOutcome } from '@redrive/notifications';
import type { Failure } from 'redrive';

export type Delivered = Exclude<DeliverOutcome, { outcome: 'stopped' }>;

/** Nothing was sent, so the attempt is not spent. */
export const AWAY_MS = 5000;

/** What the receiver says of the push service is in its body. Its own status says nothing about the token. */
export function readOutcome(outcome: Outcome): Delivered {
  if (outcome.type === 'done' || outcome.type === 'taken') return { outcome: 'delivered' };
  if (!('failure' in outcome)) return { outcome: 'not_sent', delayMs: AWAY_MS };
  const { failure } = outcome;
  const said = 'answer' in outcome ? readAnswer(outcome.answer) : undefined;
  if (said) return said;
  if (failure.notExecuted) {
    return { outcome: 'not_sent', delayMs: Math.max(AWAY_MS, failure.retryAfterMs ?? 0) };
  }
  return failedOf(failure);
}

function failedOf({ code, message, retryAfterMs }: Failure): Delivered {
  return {
    outcome: 'failed',
    errorCode: `DELIVERY_${code ?? 'FAILED'}`,
    ...(message === undefined ? {} : { errorMessage: message }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}

function readAnswer(answer: string | undefined): Delivered | undefined {
  let value: unknown;
  try {
    value = JSON.parse(answer ?? '');
  } catch {
    return undefined;
  }
  const { error_code, error_message, platform_response, retry_after_ms } = Object(value) as Record<
    string,
    unknown
  >;
  if (error_code === undefined && platform_response === undefined) return undefined;
  const isWait = typeof retry_after_ms === 'number' && retry_after_ms >= 0;
  return {
    outcome: 'failed',
    ...(typeof error_code === 'string' ? { errorCode: error_code } : {}),
    ...(typeof error_message === 'string' ? { errorMessage: error_message } : {}),
    ...(platform_response === undefined ? {} : { platformResponse: platform_response }),
    ...(isWait ? { retryAfterMs: retry_after_ms } : {}),
  };
}
