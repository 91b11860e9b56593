import type { FastifyReply } from 'fastify';
import type { Claim } from 'redrive';
import {
  type Exchange,
  type HttpSettings,
  type KeptResponse,
  type KeyedRequest,
  releasesKey,
  serveOnce,
} from 'redrive/internal';
import { outgoing, readPayload } from './payload.ts';

type Answered = Exclude<Exchange, { kind: 'ran' }>;

/** Claims the key. Answers with a run of the handler, or with what to send in its place. */
export async function beginRun(
  settings: HttpSettings,
  keyed: KeyedRequest,
): Promise<HandlerRun | Answered> {
  const claimed = Promise.withResolvers<Claim>();
  const made = Promise.withResolvers<KeptResponse>();
  const served = serveOnce(settings, keyed, (claim) => {
    claimed.resolve(claim);
    return made.promise;
  });
  const first = await Promise.race([claimed.promise, served]);
  return 'kind' in first
    ? (first as Answered)
    : new HandlerRun(first, settings.maxResponseBytes, async (response) => {
        made.resolve(response);
        await served;
      });
}

/**
 * One run of a handler under its claim. It ends with the response that Fastify sends, or, where it sends none, with the
 * handler: a claim that nobody ends would be renewed for ever.
 */
export class HandlerRun {
  readonly claim: Claim;
  readonly #maxBytes: number;
  readonly #record: (response: KeptResponse) => Promise<void>;
  #isHandlerRunning = false;
  /** Another response was sent in place of that of the handler, which still runs. */
  #wasOvertaken = false;
  #isSending = false;

  constructor(claim: Claim, maxBytes: number, record: (response: KeptResponse) => Promise<void>) {
    this.claim = claim;
    this.#maxBytes = maxBytes;
    this.#record = record;
  }

  /** Watches the handler, which may end after its response, or without one. */
  follow(result: unknown, reply: FastifyReply): void {
    reply.raw.once('close', () => this.#closed(reply));
    if (!(result instanceof Promise)) return;
    this.#isHandlerRunning = true;
    result.then(
      (value) => this.#over(reply, value),
      () => this.#over(reply, reply),
    );
  }

  /** Records what is about to be sent, and gives the payload to send. */
  async send(reply: FastifyReply, given: unknown): Promise<unknown> {
    if (this.#isSending) return given;
    this.#isSending = true;
    const { status, headers, payload } = outgoing(reply, given);
    if (releasesKey(status)) {
      // A timeout may have answered, while the handler still runs: until it is over nobody else may run it.
      if (this.#isHandlerRunning) this.#wasOvertaken = true;
      else await this.#record({ status, headers });
      return payload;
    }
    if (/^text\/event-stream\b/i.test(String(reply.getHeader('content-type')))) {
      await this.#record({ status, headers, unkept: 'it is a stream of events' });
      return payload;
    }
    let read;
    try {
      read = await readPayload(payload, this.#maxBytes);
    } catch (error) {
      // What Fastify sends next is the response: a 500.
      this.#isSending = false;
      throw error;
    }
    const unkept = `its body is over the limit of ${this.#maxBytes} bytes`;
    await this.#record({ status, headers, ...(read.body ? { body: read.body } : { unkept }) });
    return read.rest;
  }

  #over(reply: FastifyReply, value: unknown): void {
    this.#isHandlerRunning = false;
    if (this.#wasOvertaken) {
      // A handler that sent the response itself gives nothing back, or the reply.
      const isLate = value !== undefined && value !== reply;
      const late = { status: 200, headers: [], unkept: 'the handler ended after its request' };
      this.#end(isLate ? late : { status: reply.statusCode, headers: [] });
    } else if (value === undefined && reply.raw.closed) {
      // Fastify sends nothing to a client that has gone.
      this.#leave(reply, 'its client had gone');
    }
  }

  /** After `reply.hijack()` the handler writes the response by itself. */
  #closed(reply: FastifyReply): void {
    if (reply.sent) this.#leave(reply, 'the handler wrote it by itself');
  }

  #leave(reply: FastifyReply, unkept: string): void {
    if (this.#isSending) return;
    this.#isSending = true;
    this.#end({ status: reply.raw.statusCode, headers: [], unkept });
  }

  /** Nobody waits for this. What the store could not do is in the audit trail. */
  #end(response: KeptResponse): void {
    this.#record(response).catch(() => undefined);
  }
}
