/** The body of a request: kept where it is small enough to be sent again, else handed through once. */
import type { IncomingMessage } from 'node:http';

export type RequestBody =
  | { kind: 'none' }
  | { kind: 'kept'; bytes: Buffer }
  /** `first` has come in already. `length`: undefined where the client did not say. */
  | { kind: 'stream'; first: Buffer; rest: IncomingMessage; length: number | undefined };

/** Whether the client owes the rest of its body, and nothing but the client is waited for. */
export function isStalled(body: RequestBody): boolean {
  return body.kind === 'stream' && !body.rest.complete && !body.rest.isPaused();
}

/** What all kept bodies take together. Past this, further ones are handed through. */
const MAX_TOTAL_BYTES = 256 * 1024 * 1024;

export class KeptBodies {
  readonly #maxBytes: number;
  readonly #maxTotalBytes: number;
  #total = 0;

  constructor(maxBytes: number, maxTotalBytes = MAX_TOTAL_BYTES) {
    this.#maxBytes = maxBytes;
    this.#maxTotalBytes = maxTotalBytes;
  }

  get bytes(): number {
    return this.#total;
  }

  /** Undefined: the client went away or was sent away (`signal`) before its body was whole. Kept bytes are given back by `free`. */
  async read(request: IncomingMessage, signal: AbortSignal): Promise<RequestBody | undefined> {
    const { headers } = request;
    const isChunked = headers['transfer-encoding'] !== undefined;
    const length =
      headers['content-length'] === undefined ? undefined : Number(headers['content-length']);
    if (!isChunked && length === undefined) return { kind: 'none' };
    // One that does not say how long it is counts as long as it may be.
    const reserved = length ?? this.#maxBytes;
    if (reserved > this.#maxBytes || this.#total + reserved > this.#maxTotalBytes) {
      return { kind: 'stream', first: Buffer.alloc(0), rest: request, length };
    }
    this.#total += reserved;
    const body = await this.#read(request, length, signal);
    this.#total -= reserved;
    if (body?.kind === 'kept') this.#total += body.bytes.length;
    return body;
  }

  free(body: RequestBody): void {
    if (body.kind === 'kept') this.#total -= body.bytes.length;
  }

  #read(
    request: IncomingMessage,
    length: number | undefined,
    signal: AbortSignal,
  ): Promise<RequestBody | undefined> {
    return new Promise((resolve) => {
      const chunks: Buffer[] = [];
      let size = 0;
      const end = (body: RequestBody | undefined) => {
        request.off('data', onData).off('end', onEnd).off('close', onClose);
        signal.removeEventListener('abort', onClose);
        resolve(body);
      };
      const onData = (bytes: Buffer) => {
        chunks.push(bytes);
        size += bytes.length;
        if (size <= this.#maxBytes) return;
        request.pause();
        end({ kind: 'stream', first: Buffer.concat(chunks), rest: request, length });
      };
      const onEnd = () => {
        end({ kind: 'kept', bytes: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks) });
      };
      const onClose = () => end(undefined);
      request.on('data', onData).on('end', onEnd).on('close', onClose);
      // A request that was answered before its end has no `close`.
      signal.addEventListener('abort', onClose);
      if (request.destroyed || signal.aborted) end(undefined);
    });
  }
}
