import { itemOf, type RawItem, type Reading, type Reason, type Received } from '@redrive/engine';
import { type Carry, carriedWhole } from './carried.ts';
import { type RawFacts, reviewOfRaw, type ReviewOptions } from './review-message.ts';

export interface RawOptions extends Partial<ReviewOptions> {
  /** Absent: nobody is told. */
  reviewQueue?: string;
  /** The queue that is read. */
  source: string;
  carry: Carry;
  nowMs: () => number;
}

export interface RawCause {
  messageId: string;
  reason: Reason;
  code: string;
  /** A sentence that quotes nothing of the message, so that items of one cause are one group. */
  why: string;
  /** False: nobody is told, or the telling would come back as the next message. */
  isTold?: boolean;
}

/** Straight into the inbox, as it came. */
export function rawReading(options: RawOptions) {
  const { source, carry, reviewQueue, nowMs } = options;
  const review = reviewQueue === undefined ? undefined : reviewOfRaw({ reviewQueue, nowMs });
  return (received: Received, cause: RawCause, known: RawFacts): Reading => {
    const { messageId, reason, code, why, isTold = true } = cause;
    const item: RawItem = {
      ...itemOf(reason, { class: 'technical', code, message: why }, `source:${source}`),
      messageId,
      source,
      payload: received.payload,
      context: carriedWhole(received, carry),
    };
    return {
      type: 'unreadable',
      item: isTold && review ? { ...item, outbox: review(item, known) } : item,
    };
  };
}

/** Bytes as one text, each a character of it, for a hash. */
export function latin1Of({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('latin1');
}
