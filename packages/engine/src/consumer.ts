import { classify, type Failure } from 'redrive';
import type { Host } from './host.ts';
import type { Intake } from './intake.ts';
import { itemOf } from './item.ts';
import type { Accepted, Arrival } from './moves.ts';
import { persist } from './patience.ts';
import type { Broker, Consumer, Received } from './ports/broker.ts';
import type { Inbox, RawItem } from './ports/inbox.ts';
import type { NewOutboxMessage } from './ports/schedule.ts';
import { cleanFailure } from './text.ts';
import { uuidOf } from './uuid.ts';

type Unreadable = RawItem & { outbox?: NewOutboxMessage };

/** What a message turned out to be. */
export type Reading =
  | { type: 'arrival'; arrival: Arrival }
  | { type: 'unreadable'; item: Unreadable };

export interface SourceOptions {
  broker: Broker;
  source: string;
  /** Pure: what this message means. */
  read: (message: Received) => Reading;
  /** Messages and bytes that are taken in and not committed yet. */
  maxMessages?: number;
  maxBytes?: number;
}

const MAX_BATCH = 500;

/** Takes in what failed elsewhere: read, stored, committed, and only then acknowledged. */
export class SourceConsumer {
  readonly #options: SourceOptions;
  readonly #intake: Intake;
  readonly #inbox: Inbox;
  readonly #host: Host;
  readonly #inboxed: (items: readonly RawItem[]) => void;
  readonly #ending = new AbortController();
  readonly #waiting: Received[] = [];
  #consumer: Consumer | undefined;
  #work: Promise<void> | undefined;
  #isScheduled = false;

  /** `inboxed` is told when something went straight to the inbox, and what of it could not be read. */
  constructor(
    options: SourceOptions,
    intake: Intake,
    inbox: Inbox,
    host: Host,
    inboxed: (items: readonly RawItem[]) => void,
  ) {
    this.#options = options;
    this.#intake = intake;
    this.#inbox = inbox;
    this.#host = host;
    this.#inboxed = inboxed;
  }

  async start(): Promise<void> {
    if (this.#consumer) return;
    const { broker, source, maxMessages = 1000, maxBytes = 64 * 1024 * 1024 } = this.#options;
    this.#consumer = await broker.consume(source, { maxMessages, maxBytes }, (message) => {
      this.#waiting.push(message);
      this.#schedule();
    });
  }

  /** Ends it: what is not committed goes back to the broker. */
  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#work;
    await this.#consumer?.stop();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#work || this.#ending.signal.aborted) return;
    this.#isScheduled = true;
    this.#host.defer(() => {
      this.#isScheduled = false;
      if (this.#ending.signal.aborted) return;
      this.#work = this.#take(this.#waiting.splice(0, MAX_BATCH)).finally(() => {
        this.#work = undefined;
        if (this.#waiting.length > 0) this.#schedule();
      });
    });
  }

  async #take(messages: readonly Received[]): Promise<void> {
    const { source } = this.#options;
    const readings = messages.map((message) => this.#read(message));
    const arrivals = readings.flatMap((one) => (one.type === 'arrival' ? [one.arrival] : []));
    const items = readings.flatMap((one) => (one.type === 'unreadable' ? [one.item] : []));
    const { signal } = this.#ending;
    const trying = { host: this.#host, what: `taking in from ${source}`, until: signal };
    try {
      let results: readonly Accepted[] = [];
      if (arrivals.length > 0) results = await this.#store(messages, readings, items);
      if (items.length > 0) await persist(() => this.#inbox.append(items), trying);
      if (items.length > 0 || results.includes('failed')) this.#inboxed(items);
      await this.#consumer?.ack(messages);
    } catch (error) {
      // Nothing is lost: what was not acknowledged comes again, and what was stored is known then.
      this.#host.log.warn({ err: error, source }, 'not acknowledged: it will come again');
      await this.#requeue(messages);
    }
  }

  /** An arrival that no store takes goes to the inbox as it came: it must not be met for ever. */
  async #store(
    messages: readonly Received[],
    readings: readonly Reading[],
    items: Unreadable[],
  ): Promise<readonly Accepted[]> {
    const { source } = this.#options;
    const of = readings.flatMap((one, i) => (one.type === 'arrival' ? [{ i, ...one }] : []));
    const answers = await persist(() => this.#intake.storeAll(of.map(({ arrival }) => arrival)), {
      host: this.#host,
      what: `taking in from ${source}`,
      until: this.#ending.signal,
    });
    return answers.map((answer, n) => {
      if (typeof answer === 'string') return answer;
      items.push(this.#unreadable(messages[of[n]!.i]!, answer.error));
      return 'failed';
    });
  }

  /** A fault of the reader's own must not lose the message, nor the others, nor be met for ever. */
  #read(message: Received): Reading {
    const { source, read } = this.#options;
    try {
      return read(message);
    } catch (error) {
      this.#host.log.error(
        { err: error, source },
        'a message could not be read: it goes to the inbox',
      );
      return { type: 'unreadable', item: this.#unreadable(message, error) };
    }
  }

  #unreadable({ payload }: Received, error: unknown): Unreadable {
    const { source } = this.#options;
    const { message: text } = cleanFailure(classify(error));
    const failure: Failure = { class: 'technical', code: 'UNREADABLE', message: text ?? '' };
    const messageId = uuidOf(source, Buffer.from(payload).toString('latin1'));
    const item = itemOf('UNREADABLE', failure, `source:${source}`);
    return { ...item, messageId, source, payload };
  }

  async #requeue(messages: readonly Received[]): Promise<void> {
    try {
      await this.#consumer?.requeue(messages);
    } catch (error) {
      this.#host.log.warn(
        { err: error },
        'not given back either: the broker will notice by itself',
      );
    }
  }
}
