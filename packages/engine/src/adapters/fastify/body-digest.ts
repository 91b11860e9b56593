import { createHash, hash } from 'node:crypto';
import { pipeline, type Readable, Transform } from 'node:stream';
import type { FastifyRequest, RequestPayload } from 'fastify';

/** The digests of the bodies of requests, made while their parsers read them: nothing is kept in memory twice. */
export class BodyDigests {
  readonly #digests = new WeakMap<FastifyRequest, string>();

  /** Undefined: no parser has read the body to its end. */
  of(request: FastifyRequest): string | undefined {
    return this.#digests.get(request);
  }

  /** What the parser is to read in place of the payload. */
  follow(request: FastifyRequest, payload: RequestPayload): RequestPayload {
    if (!mayHaveBody(request)) {
      this.#digests.set(request, EMPTY);
      return payload;
    }
    const digest = createHash('sha256');
    const reading = new Transform({
      transform(piece: Buffer | string, _, done) {
        digest.update(piece);
        done(null, piece);
      },
      flush: (done) => {
        this.#digests.set(request, digest.digest('hex'));
        done();
      },
    });
    // Whoever reads it is told of its errors.
    pipeline(payload as Readable, reading, () => undefined);
    // The limit of a compressed body is also that of what came over the wire.
    return Object.defineProperty(reading, 'receivedEncodedLength', {
      get: () => payload.receivedEncodedLength,
    });
  }
}

const EMPTY = hash('sha256', '');

/** By the headers by which Fastify decides whether to call a parser at all. */
function mayHaveBody({ headers }: FastifyRequest): boolean {
  return (
    headers['content-type'] !== undefined ||
    headers['transfer-encoding'] !== undefined ||
    (headers['content-length'] ?? '0') !== '0'
  );
}
