import type { FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../problem.ts';

/** Bodies that are coming in, all together: many that never end would fill the memory. */
const MAX_BYTES = 256 * 1024 * 1024;

/** So small that the limit of connections bounds them too, and so frequent that a listener for each would show. */
const SMALL_BYTES = 16 * 1024;

/** Counts what requests announce, from their first byte until they are answered or gone. */
export class BodyBudget {
  readonly #maxRequestBytes: number;
  #bytes = 0;

  constructor(maxRequestBytes: number) {
    this.#maxRequestBytes = maxRequestBytes;
  }

  /** What speaks against reading its body now. */
  begin(request: FastifyRequest, reply: FastifyReply): Problem | undefined {
    const bytes = this.#announced(request);
    if (bytes <= SMALL_BYTES) return undefined;
    if (this.#bytes + bytes > MAX_BYTES) {
      return new Problem('INTAKE_FULL', 'Too many large requests come in at once. Ask again soon.');
    }
    this.#bytes += bytes;
    reply.raw.once('close', () => (this.#bytes -= bytes));
    return undefined;
  }

  /** One that does not say is counted as large as it may be. */
  #announced({ headers }: FastifyRequest): number {
    if (headers['transfer-encoding'] !== undefined) return this.#maxRequestBytes;
    const length = Number(headers['content-length'] ?? 0);
    return Number.isSafeInteger(length) ? Math.min(length, this.#maxRequestBytes) : 0;
  }
}
