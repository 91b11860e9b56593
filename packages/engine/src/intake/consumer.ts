import { classify, type Failure } from 'redrive';
import type { Host } from '../host.ts';
import type { Intake } from './intake.ts';
import { itemOf } from '../model/item.ts';
import type { SourceReport } from '../engine.ts';
import type { Accepted, Arrival } from '../model/moves.ts';
import { MAX_MESSAGE_BYTES, OversizedMessages } from './oversized.ts';
import { persist } from '../patience.ts';
import type { Broker, Consumer, Publication, Received } from '../ports/broker.ts';
import type { Inbox, RawItem } from '../ports/inbox.ts';
import type { NewOutboxMessage } from '../ports/schedule.ts';
import type { FailureReport, Reporter } from './report.ts';
import { cleanFailure } from '../model/text.ts';
import { EngineError, isStoreError } from '../errors.ts';
import { uuidOf } from '../model/uuid.ts';
import { checkNames } from 'redrive/internal';

type Unreadable = RawItem & { outbox?: NewOutboxMessage };

/** What a message turned out to be. */
export type Reading =
  | { type: 'failure'; report: FailureReport }
  | { type: 'unreadable'; item: Unreadable };

export interface SourceOptions {
  broker: Broker;
  source: string;
  /** Pure: what this message means. */
  read: (message: Received) => Reading;
  /**
   * What is published in place of a message of more than 16 MiB, which no store takes. It is acknowledged after the confirm.
   * Without this, or while it cannot be published, such a message stops the source.
   */
  oversized?: (message: Received) => Publication;
  /** Messages and bytes that are taken in and not committed yet. */
  maxMessages?: number;
  maxBytes?: number;
}

const sourceNames = ['broker', 'source', 'read', 'oversized', 'maxMessages', 'maxBytes'];

/** Refuses a source that could not be consumed from, when it is named and not when the first message comes. */
export function checkSource(options: SourceOptions): void {
  checkNames('The options of consume', options, sourceNames);
  const { broker, source, read } = options;
  const wrong = (path: string, message: string): EngineError => {
    const fault = { path, code: 'INVALID_ENGINE', message } as const;
    return new EngineError('INVALID_ENGINE', message, { faults: [fault] });
  };
  if (typeof (broker as Broker | undefined)?.consume !== 'function') {
    throw wrong('broker', 'A source needs a broker, such as rabbitmq({ url }).');
  }
  if (typeof source !== 'string' || source === '') {
    throw wrong('source', 'A source has a name: that of the queue, topic or stream to consume.');
  }
  if (typeof read !== 'function') {
    throw wrong('read', 'A source needs the function read, which says what a message means.');
  }
}

const MAX_BATCH = 500;
/** While one batch is committed, the next is read, and the one before acknowledged. */
const MAX_UNDERWAY = 2;

/** As it is stored. */
type Taken = { type: 'arrival'; arrival: Arrival } | { type: 'unreadable'; item: Unreadable };

/** Takes in what failed elsewhere: read, stored, committed, and only then acknowledged. */
export class SourceConsumer {
  readonly #options: SourceOptions;
  readonly #reporter: Reporter;
  readonly #intake: Intake;
  readonly #inbox: Inbox;
  readonly #host: Host;
  readonly #inboxed: (items: readonly RawItem[]) => void;
  readonly #ending = new AbortController();
  #waiting: Received[] = [];
  #consumer: Consumer | undefined;
  readonly #underway = new Set<Promise<void>>();
  readonly #oversized: OversizedMessages;
  #isScheduled = false;

  /** `inboxed` is told when something went straight to the inbox, and what of it could not be read. */
  constructor(
    options: SourceOptions,
    reporter: Reporter,
    intake: Intake,
    inbox: Inbox,
    host: Host,
    inboxed: (items: readonly RawItem[]) => void,
  ) {
    this.#options = options;
    this.#reporter = reporter;
    this.#intake = intake;
    this.#inbox = inbox;
    this.#host = host;
    this.#inboxed = inboxed;
    const { broker, source, oversized: publicationOf } = options;
    this.#oversized = new OversizedMessages({
      broker,
      source,
      publicationOf,
      host,
      until: this.#ending.signal,
      acknowledge: async (message) => this.#consumer?.ack([message]),
      stuck: () => this.#consumer?.drain?.(),
    });
  }

  async start(): Promise<void> {
    if (this.#consumer) return;
    const { broker, source, maxMessages = 1000, maxBytes = 64 * 1024 * 1024 } = this.#options;
    this.#consumer = await broker.consume(source, { maxMessages, maxBytes }, (message) => {
      if (message.payload.length > MAX_MESSAGE_BYTES) {
        this.#oversized.add(message);
        // Before that nobody could acknowledge it.
        if (this.#consumer) this.#oversized.run();
        return;
      }
      // Those of a channel that is gone come again: kept, they would pile up while the store is away.
      if (this.#waiting.length >= maxMessages) {
        this.#waiting = this.#waiting.filter(({ gone }) => !gone);
      }
      this.#waiting.push(message);
      this.#schedule();
    });
    // What came before there was somebody to acknowledge it with has waited.
    this.#schedule();
    this.#oversized.run();
  }

  get report(): SourceReport {
    const { source } = this.#options;
    const { why } = this.#oversized;
    // One that cannot be told to stop goes on with what it can.
    if (why !== undefined)
      return { source, state: this.#consumer?.drain ? 'stopped' : 'consuming', why };
    if (this.#consumer?.state) return { source, ...this.#consumer.state };
    return { source, state: this.#consumer ? 'consuming' : 'waiting' };
  }

  /** Ends it: what is not committed goes back to the broker. */
  async stop(): Promise<void> {
    this.#ending.abort();
    await Promise.all([...this.#underway, this.#oversized.ended()]);
    await this.#consumer?.stop();
  }

  #schedule(): void {
    if (this.#isScheduled || !this.#consumer || this.#underway.size >= MAX_UNDERWAY) return;
    this.#isScheduled = true;
    this.#host.defer(() => {
      this.#isScheduled = false;
      if (this.#ending.signal.aborted || this.#waiting.length === 0) return;
      const batch = this.#waiting.splice(0, MAX_BATCH).filter(({ gone }) => !gone);
      const work = this.#take(batch).finally(() => {
        this.#underway.delete(work);
        this.#schedule();
      });
      this.#underway.add(work);
      this.#schedule();
    });
  }

  async #take(messages: readonly Received[]): Promise<void> {
    const { source } = this.#options;
    const readings = messages.map((message) => this.#read(message));
    const arrivals = readings.flatMap((one) => (one.type === 'arrival' ? [one.arrival] : []));
    const items = readings.flatMap((one) => (one.type === 'unreadable' ? [one.item] : []));
    try {
      let results: readonly Accepted[] = [];
      if (arrivals.length > 0) results = await this.#store(messages, readings, items);
      if (items.length > 0) await this.#append(items);
      if (items.length > 0 || results.includes('failed')) this.#inboxed(items);
      await this.#consumer?.ack(messages);
    } catch (error) {
      // Nothing is lost: what was not acknowledged comes again, and what was stored is known then.
      this.#host.log.warn({ err: error, source }, 'not acknowledged: it will come again');
      await this.#requeue(messages);
    }
  }

  /** One that no store takes must not be met for ever, nor keep the others from being acknowledged. */
  async #append(items: readonly Unreadable[]): Promise<void> {
    const { source } = this.#options;
    try {
      await persist(() => this.#inbox.append(items), {
        host: this.#host,
        what: `taking in from ${source}`,
        until: this.#ending.signal,
        isWorthIt: isStoreError,
      });
    } catch (error) {
      if (isStoreError(error) || this.#ending.signal.aborted) throw error;
      const [only, ...more] = items;
      if (more.length > 0) for (const item of items) await this.#append([item]);
      else if (!only || !hasMore(only)) throw error;
      else {
        this.#host.log.error({ err: error, source }, 'an item is kept without what came with it');
        await this.#append([bare(only)]);
      }
    }
  }

  /** An arrival that no store takes goes to the inbox as it came: it must not be met for ever. */
  async #store(
    messages: readonly Received[],
    readings: readonly Taken[],
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
  #read(message: Received): Taken {
    const { source, read } = this.#options;
    try {
      const reading = read(message);
      if (reading.type === 'unreadable') return reading;
      return { type: 'arrival', arrival: this.#reporter.arrivalOf(reading.report) };
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

function hasMore({ context, outbox }: Unreadable): boolean {
  return context !== undefined || outbox !== undefined;
}

/** Its bytes, and why. */
function bare(item: Unreadable): Unreadable {
  const { reason, failure, fingerprint, messageId, source, payload } = item;
  return { reason, failure, fingerprint, messageId, source, payload };
}
