/** One stream: joined, greeted, kept alive, and every request of it answered once, on this stream or never. */
import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { Clock } from 'redrive';
import type { Evaluator } from '../criteria/evaluator.ts';
import { answerText, errorOf } from './answers.ts';
import { type Calculated, calculate, type Outcome } from './calculate.ts';
import {
  ackEvent,
  envelope,
  type Incoming,
  type Join,
  joinEvent,
  readEnvelope,
  readGreeting,
} from './events.ts';
import type { CloudEvent } from './gen/cloudevents_pb.ts';
import { Outgoing } from './outgoing.ts';
import type { OpenStream, Stream } from './stream.ts';
import { CyodaError, troubleOf } from './trouble.ts';
import { type Waiting, WaitingRoom } from './waiting.ts';

interface SessionOptions {
  readonly url: string;
  readonly open: OpenStream;
  readonly token: string | undefined;
  readonly join: Join;
  readonly evaluator: Evaluator;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'debug' | 'warn'>;
  readonly onJoined: (memberId: string, legalEntity: string) => void;
  readonly onOutcome: (outcome: Outcome, count: number) => void;
}

export type SessionEnd =
  | { readonly type: 'drained' }
  /** `servedMs`: how long after the greeting, 0 where there was none. */
  | { readonly type: 'lost'; readonly error: CyodaError; readonly servedMs: number };

/** The server sends a keep-alive every 10 s. */
const SILENCE_MS = 30_000;
/** Answers that the server has not read. Beyond that nothing is evaluated and nothing read. */
const MAX_OUTGOING = 4096;
/** One turn of the event loop: acknowledgements and other work of the process come in between. */
const TURN_REQUESTS = 256;
const TURN_MS = 5;
const DRAIN_MS = 2000;
/** For the server to end its side, once this side has ended. */
const CLOSE_MS = 500;

export class Session {
  readonly #options: SessionOptions;
  readonly #waiting = new WaitingRoom();
  readonly #outgoing = new Outgoing<CloudEvent>(() => this.#flushed());
  readonly #timers = new Set<unknown>();
  readonly #told = new Set<string>();
  #stream: Stream | undefined;
  #heardMs = 0;
  #greetedMs: number | undefined;
  #isTurnDue = false;
  #isDraining = false;
  #isOver = false;
  /** Why this side cut the stream. */
  #reason: CyodaError | undefined;
  /** The reader waits until there is room. */
  #reader: (() => void) | undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** Resolves when the stream is over; it never rejects. */
  async run(): Promise<SessionEnd> {
    const { open, token, join, clock, url } = this.#options;
    let thrown: unknown;
    try {
      this.#heardMs = clock.monotonic();
      this.#watch(SILENCE_MS);
      this.#outgoing.answer(joinEvent(randomUUID(), join));
      this.#stream = open(this.#outgoing, token);
      for await (const event of this.#stream.events) {
        this.#heardMs = clock.monotonic();
        this.#take(readEnvelope(event));
        if (this.#isFull) await this.#room();
        if (this.#isOver) break;
      }
    } catch (error) {
      thrown = error;
    }
    const isJoined = this.#greetedMs !== undefined;
    const servedMs = this.#greetedMs === undefined ? 0 : clock.monotonic() - this.#greetedMs;
    this.#end();
    if (this.#isDraining) return { type: 'drained' };
    return { type: 'lost', error: this.#reason ?? troubleOf(thrown, { url, isJoined }), servedMs };
  }

  /** Answers what has come, hands it to the socket, then closes: closing first would fail all that the server waits for. */
  drain(): void {
    if (this.#isDraining) return;
    this.#isDraining = true;
    if (this.#greetedMs === undefined) this.#cut();
    else {
      this.#after(DRAIN_MS, () => this.#cut());
      this.#endWhenIdle();
    }
  }

  get #isFull(): boolean {
    return this.#waiting.isFull || this.#outgoing.size >= MAX_OUTGOING;
  }

  #take(event: Incoming): void {
    switch (event.kind) {
      case 'keepAlive':
        this.#outgoing.ack(ackEvent(randomUUID(), event.envelopeId));
        return;
      case 'request': {
        const { type, envelopeId, body } = event;
        this.#waiting.add({ type, envelopeId, body, arrivedMs: this.#heardMs });
        this.#schedule();
        return;
      }
      case 'greet':
        this.#greet(event.body);
        return;
      case 'ack':
        // An answer to it would be answered again, for ever.
        return;
      case 'unknown': {
        // Copied, since a slice keeps all of the text that it was cut from.
        const type = Buffer.from(event.type.slice(0, 100)).toString();
        this.#tell(type, { type }, 'the Cyoda server sent an event of an unknown type: ignored');
      }
    }
  }

  #greet(body: string): void {
    if (this.#greetedMs !== undefined) return;
    const greeting = readGreeting(body, this.#options.join.legalEntity);
    if (!greeting.ok) {
      this.#reason = new CyodaError(greeting.code, greeting.message);
      this.#cut();
      return;
    }
    this.#greetedMs = this.#options.clock.monotonic();
    this.#options.onJoined(greeting.memberId, greeting.legalEntity);
    this.#schedule();
  }

  /** Requests that come before the greeting wait for it: until then it is not known whose they are. */
  #schedule(): void {
    if (this.#isTurnDue || this.#greetedMs === undefined || this.#waiting.size === 0) return;
    this.#isTurnDue = true;
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    this.#isTurnDue = false;
    if (this.#isOver) return;
    const { clock } = this.#options;
    const untilMs = clock.monotonic() + TURN_MS;
    const canAnswer = () => this.#outgoing.size < MAX_OUTGOING;
    for (let n = 0; n < TURN_REQUESTS && canAnswer() && clock.monotonic() < untilMs; n++) {
      const request = this.#waiting.small();
      if (!request) break;
      this.#answer(request);
    }
    const large = canAnswer() ? this.#waiting.large() : undefined;
    if (large) this.#answer(large);
    // Otherwise #flushed schedules the next turn, when answers were sent.
    if (canAnswer()) this.#schedule();
    this.#wakeReader();
    this.#endWhenIdle();
  }

  #answer(request: Waiting): void {
    const { evaluator, onOutcome } = this.#options;
    const calculated = calculate(request, evaluator);
    const { answer, refusal, outcome } = calculated;
    const id = randomUUID();
    if (answer) {
      this.#outgoing.answer(envelope(id, answer.type, answerText(id, answer)));
    } else {
      this.#outgoing.ack(ackEvent(id, request.envelopeId, errorOf(calculated.refusal)));
    }
    onOutcome(outcome, 1);
    if (refusal) this.#tellRefusal(refusal);
  }

  #tellRefusal({ code, message, to }: NonNullable<Calculated['refusal']>): void {
    const fields = { code, request_id: to?.requestId, entity_id: to?.entityId };
    this.#tell(code, fields, `a request of the Cyoda server was refused: ${message}`);
  }

  /** A warning once per stream and subject, then debug lines: a wrong workflow sends thousands of such requests. */
  #tell(subject: string, fields: object, message: string): void {
    const { log } = this.#options;
    if (this.#told.has(subject) || this.#told.size >= MAX_TOLD) log.debug(fields, message);
    else log.warn(fields, message);
    if (this.#told.size < MAX_TOLD) this.#told.add(subject);
  }

  #room(): Promise<void> {
    return new Promise((resolve) => {
      this.#reader = resolve;
    });
  }

  #wakeReader(): void {
    if (!this.#reader || (this.#isFull && !this.#isOver)) return;
    this.#reader();
    this.#reader = undefined;
  }

  #flushed(): void {
    this.#schedule();
    this.#wakeReader();
    this.#endWhenIdle();
  }

  /** A turn later, since a request may have come that was not read yet. */
  #endWhenIdle(): void {
    if (!this.#isDraining || !this.#isIdle) return;
    setImmediate(() => {
      if (!this.#isIdle || this.#isOver) return;
      this.#outgoing.end();
      this.#after(CLOSE_MS, () => this.#cut());
    });
  }

  get #isIdle(): boolean {
    return this.#waiting.size === 0 && this.#outgoing.isFlushed;
  }

  /** Sets one timer again for the rest, instead of a timer per event: events are many, silence is rare. */
  #watch(forMs: number): void {
    this.#after(forMs, () => {
      const silentMs = this.#options.clock.monotonic() - this.#heardMs;
      if (silentMs < SILENCE_MS) {
        this.#watch(SILENCE_MS - silentMs);
        return;
      }
      // A reader that waits for room hears nothing, however much the server sends.
      const what = this.#reader
        ? `read no answer for ${SILENCE_MS / 1000} s, and ${this.#outgoing.size} wait for it`
        : `sent nothing for ${SILENCE_MS / 1000} s, not even a keep-alive`;
      const message = `The Cyoda server at ${this.#options.url} ${what}. The stream is cut and joined again.`;
      this.#reason = new CyodaError('CYODA_SILENT', message);
      this.#cut();
    });
  }

  #after(ms: number, then: () => void): void {
    const { clock } = this.#options;
    const timer = clock.setTimer(() => {
      this.#timers.delete(timer);
      then();
    }, ms);
    this.#timers.add(timer);
  }

  #cut(): void {
    this.#stream?.cut();
    this.#end();
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { clock, onOutcome } = this.#options;
    for (const timer of this.#timers) clock.clearTimer(timer);
    if (this.#waiting.size > 0) onOutcome('dropped', this.#waiting.size);
    this.#waiting.clear();
    this.#outgoing.close();
    this.#stream?.cut();
    this.#wakeReader();
  }
}

const MAX_TOLD = 100;
