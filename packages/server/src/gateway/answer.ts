import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { answerHeaders } from './forwarded-headers.ts';
import { EventPreamble } from './event-preamble.ts';
import { ProviderFailure } from './provider-failure.ts';

/** Bytes that are held back while a fallback is still possible. */
export class Preamble {
  readonly bytes: Buffer;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }
}

/** What an answer consists of: itself, for its status and headers, then its body. */
export type AnswerPart = Answer | Preamble | Buffer;

/** An answer that was here at once, as most are. Nothing of it can fail any more, so it is no stream. */
export interface WholeAnswer {
  readonly status: number;
  readonly passed: string[];
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
}

/** Until then the router holds an answer back. */
export function isContent(part: unknown): boolean {
  return part instanceof Answer ? !part.isEventStream : Buffer.isBuffer(part);
}

/** Of an answer that nobody wants: so much of its body is read, so that its connection can be used again. */
const DRAIN_BYTES = 64 * 1024;
const DRAIN_MS = 1000;

/** Past this the provider has to wait until somebody asks for more. */
const MAX_QUEUED = 64 * 1024;
const EMPTY = Buffer.alloc(0);

/** An answer of a provider, read as fast as somebody asks for its parts. */
export class Answer implements AsyncIterableIterator<AnswerPart, undefined> {
  readonly status: number;
  /** Those that are passed on, as a flat list. */
  readonly passed: string[];
  readonly isEventStream: boolean;
  readonly #response: IncomingMessage;
  readonly #idleMs: number;
  /** What was read while the preamble was looked at. */
  readonly #seen: Buffer[] = [];
  #preamble: EventPreamble | undefined;
  readonly #queued: Buffer[] = [];
  #queuedBytes = 0;
  #isHeadGiven = false;
  #held: Buffer | undefined;
  #wake: (() => void) | undefined;
  #onEnd: (() => void) | undefined;
  #error: Error | undefined;
  #isEnded = false;

  /** Undefined: status and headers are not those of HTTP. */
  static of(response: IncomingMessage, idleMs: number): Answer | undefined {
    const { statusCode: status = 0, rawHeaders } = response;
    // Another coding would be taken off the headers and stay on the body.
    const coding = response.headers['transfer-encoding']?.toLowerCase() ?? 'identity';
    const isReadable = coding === 'chunked' || coding === 'identity';
    const isHttp = isReadable && status >= 200 && status <= 599;
    const passed = isHttp ? answerHeaders(rawHeaders, status) : undefined;
    return passed && new Answer(response, status, passed, idleMs);
  }

  private constructor(response: IncomingMessage, status: number, passed: string[], idleMs: number) {
    this.#response = response;
    this.#idleMs = idleMs;
    this.status = status;
    this.passed = passed;
    this.isEventStream = isReadableEventStream(response);
    if (this.isEventStream) this.#preamble = new EventPreamble();
    response.on('data', (bytes: Buffer) => {
      this.#queued.push(bytes);
      this.#queuedBytes += bytes.length;
      if (this.#queuedBytes > MAX_QUEUED) response.pause();
      this.#wake?.();
    });
    response.on('end', () => {
      // Where nothing but the connection ends a body, Node takes a reset for the end of it too.
      if (this.#error) return;
      this.#isEnded = true;
      this.#onEnd?.();
      this.#wake?.();
    });
    // `close` too: what is destroyed without an error has no end.
    response.on('error', (error) => this.#fail(error));
    response.on('close', () => this.#fail(undefined));
  }

  /** The connection failed. What has come in whole before that is not affected. */
  broken(error: Error): void {
    if (!this.#response.complete) this.#fail(error);
  }

  /** The answer itself where all of it is here after this turn of the event loop, else as a stream. */
  settled(): Promise<Answer | WholeAnswer> {
    if (this.isEventStream) return Promise.resolve(this);
    return new Promise((resolve, reject) => {
      const turn = setImmediate(() => {
        this.#onEnd = undefined;
        // Nothing of it has gone out: another provider may do better.
        if (this.#error) reject(this.#error);
        else resolve(this);
      });
      this.#onEnd = () => {
        clearImmediate(turn);
        const { status, passed, headers } = this;
        resolve({ status, passed, headers, bytes: this.#take() ?? EMPTY });
      };
    });
  }

  /** Whether the next part can be had without waiting. */
  get isMoreHere(): boolean {
    return this.#queued.length > 0 || this.#isEnded;
  }

  /** For what they say about waiting. */
  get headers(): IncomingHttpHeaders {
    return this.#response.headers;
  }

  async next(): Promise<IteratorResult<AnswerPart, undefined>> {
    if (!this.#isHeadGiven) {
      this.#isHeadGiven = true;
      return { done: false, value: this };
    }
    if (this.#held) {
      const value = this.#held;
      this.#held = undefined;
      return { done: false, value };
    }
    for (;;) {
      const bytes = this.#take();
      if (bytes) return { done: false, value: this.#judged(bytes) };
      if (this.#isEnded) return { done: true, value: undefined };
      if (this.#error) throw this.#error;
      await this.#change();
    }
  }

  /** The whole of it from its beginning, for an answer that was a failure and is passed on after all. */
  again(): this {
    this.#isHeadGiven = false;
    this.#preamble = undefined;
    if (this.#seen.length > 0) this.#held = Buffer.concat(this.#seen);
    return this;
  }

  return(): Promise<IteratorResult<AnswerPart, undefined>> {
    if (!this.#isEnded) this.#response.destroy();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Nobody wants it: another attempt follows. */
  [Symbol.dispose](): void {
    const response = this.#response;
    let bytes = 0;
    const limit = setTimeout(() => response.destroy(), DRAIN_MS).unref();
    response.once('close', () => clearTimeout(limit));
    response.removeAllListeners('data');
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > DRAIN_BYTES) response.destroy();
    });
    response.resume();
  }

  /** What has come in since the last time. */
  #take(): Buffer | undefined {
    const [first, ...more] = this.#queued;
    if (!first) return undefined;
    this.#queued.length = 0;
    this.#queuedBytes = 0;
    if (this.#response.isPaused()) this.#response.resume();
    return more.length === 0 ? first : Buffer.concat([first, ...more]);
  }

  #judged(bytes: Buffer): Preamble | Buffer {
    if (!this.#preamble) return bytes;
    this.#seen.push(bytes);
    const verdict = this.#preamble.add(bytes);
    if (verdict.kind === 'harmless') return new Preamble(bytes);
    this.#preamble = undefined;
    if (verdict.kind === 'content') {
      this.#seen.length = 0;
      return bytes;
    }
    throw new ProviderFailure('EVENT_STREAM_ERROR', 'The stream began with an error.', {
      status: String(verdict.status),
      answer: this,
    });
  }

  /** Until there is something to read, or nothing will come any more. */
  #change(): Promise<void> {
    return new Promise((resolve) => {
      const limit = setTimeout(() => {
        const message = `The provider was silent for ${this.#idleMs} ms in the middle of its answer.`;
        this.#error = new ProviderFailure('IDLE_TIMEOUT', message, { status: 'timeout' });
        this.#response.destroy();
        this.#wake?.();
      }, this.#idleMs);
      this.#wake = () => {
        this.#wake = undefined;
        clearTimeout(limit);
        resolve();
      };
    });
  }

  #fail(cause: unknown): void {
    if (this.#isEnded || this.#error) return;
    this.#error = new ProviderFailure('STREAM_CUT', 'The answer was cut off.', { cause });
    this.#wake?.();
  }
}

/** Of a compressed one nothing can be told without unpacking it. */
function isReadableEventStream({ headers }: IncomingMessage): boolean {
  const encoding = headers['content-encoding'];
  const isPlain = encoding === undefined || encoding === '' || encoding === 'identity';
  return isPlain && /^text\/event-stream\b/i.test(headers['content-type'] ?? '');
}
