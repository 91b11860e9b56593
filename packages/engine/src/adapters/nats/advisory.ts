/** An advisory of the server: a consumer gave a message up. Pure. */
import type { MaxDeliveries } from './carry.ts';

const SUBJECT = '$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.';

/** What is advised of; undefined: it is another message. */
export function maxDeliveriesIn(subject: string, payload: Uint8Array): MaxDeliveries | undefined {
  if (!subject.startsWith(SUBJECT)) return undefined;
  const { stream, consumer, stream_seq: sequence, deliveries } = objectIn(payload);
  const isOne = isName(stream) && isName(consumer) && isCount(sequence) && sequence > 0;
  if (!isOne) return undefined;
  return { stream, consumer, sequence, deliveries: isCount(deliveries) ? deliveries : 0 };
}

function objectIn(payload: Uint8Array): Record<string, unknown> {
  try {
    return Object(JSON.parse(Buffer.from(payload).toString())) as Record<string, unknown>;
  } catch {
    // Anybody may publish to the subject of an advisory.
    return {};
  }
}

/** A name becomes part of a subject of the server. */
function isName(value: unknown): value is string {
  return typeof value === 'string' && /^[^\s.*>/\\\p{Cc}]{1,255}$/u.test(value);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
