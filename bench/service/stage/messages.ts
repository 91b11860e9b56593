import { randomUUID } from 'node:crypto';

const PAYLOAD_BYTES = 300;
const DIGITS = 7;

/** What a message carries: its number where `numberOf` finds it, when it is due, and something to fill it up. */
export function payloadOf(n: number, dueAtMs = 0): Buffer {
  const start = `{"n":"${String(n).padStart(DIGITS, '0')}","due_at_ms":${dueAtMs},"text":"`;
  return Buffer.from(`${start.padEnd(PAYLOAD_BYTES - 2, 'x')}"}`);
}

/** Without reading the rest: whoever counts must not be what is measured. */
export function numberOf(payload: Buffer): number {
  return Number(payload.toString('latin1', 6, 6 + DIGITS));
}

export function dueAtOf(payload: Buffer): number {
  return (JSON.parse(payload.toString()) as { due_at_ms: number }).due_at_ms;
}

/** As a consumer sends it to the retry queue after it has failed. */
export function retryMessage(queue: string, n: number, dueAtMs?: number): Buffer {
  return Buffer.from(
    JSON.stringify({
      message_id: randomUUID(),
      original_payload: payloadOf(n, dueAtMs).toString('base64'),
      original_queue: queue,
      error_reason: 'connect ETIMEDOUT',
      retry_count: 0,
      max_retries: 3,
      next_retry_at_ms: dueAtMs,
      classification: 'TRANSIENT',
    }),
  );
}
