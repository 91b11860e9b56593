import { sha256Bytes } from '../../system.ts';
import { IdempotencyError } from '../idempotency-error.ts';

/** Reads a body to its end. Undefined: it is longer, and the rest was not read. */
export async function readAtMost(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  const reader = body?.getReader();
  for (;;) {
    const piece = await reader?.read();
    if (!piece || piece.done) break;
    length += piece.value.length;
    if (length > maxBytes) {
      // Not awaited: of two readers of one body, a cancel waits for the other one.
      reader?.cancel().catch(() => undefined);
      return undefined;
    }
    pieces.push(piece.value);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

/** The digest of a request's body, which stays unread for the handler. Undefined: it is over the limit. */
export async function digestOf(request: Request, maxBytes: number): Promise<string | undefined> {
  if (Number(request.headers.get('content-length')) > maxBytes) return undefined;
  if (request.bodyUsed) throw bodyUnavailable('It was read before.');
  const bytes = await readAtMost(request.clone().body, maxBytes);
  return bytes && sha256Bytes(bytes);
}

export function bodyUnavailable(why: string): IdempotencyError {
  return new IdempotencyError(
    'IDEMPOTENCY_BODY_UNAVAILABLE',
    `The body of a request with an Idempotency-Key cannot be compared. ${why} The handler was not called.`,
  );
}
