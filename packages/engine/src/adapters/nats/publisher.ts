import type { Msg, NatsConnection } from '@nats-io/transport-node';
import type { Clock } from 'redrive';
import { impossible, textOf, unpublished } from '../../broker/answers.ts';
import type { Publication, Published, PublishOptions } from '../../ports/broker.ts';
import { prepare, type Ready } from './prepare.ts';
import { noStream, type Streams } from './streams.ts';
import { createInbox } from './library.ts';

/** Messages and bytes on their way: a stream refuses more when too many wait for it. */
const MAX_MESSAGES = 4096;
const MAX_BYTES = 32 * 1024 * 1024;
const NO_RESPONDERS = 503;
/** It was sent, and no answer will come. */
const UNNUMBERED = 0;
const STREAM_MESSAGE_TOO_LARGE = 10054;

interface Sending {
  readonly message: Publication;
  readonly ready: Ready;
  readonly answer: (published: Published) => void;
  /** In which `#sent` has it. */
  number?: number;
  isAnswered?: true;
}

interface Connected {
  readonly connection: NatsConnection;
  /** Absent without JetStream. */
  readonly streams: Streams | undefined;
  readonly inbox: string;
}

/** Publishes each message with an address for its answer, and answers by what comes there. */
export class Publisher {
  readonly #clock: Clock;
  readonly #jetStreamAway: (why: string) => void;
  readonly #sent = new Map<number, Sending>();
  readonly #waiting: Sending[] = [];
  /** One question for each subject that nobody answers for. */
  readonly #questions = new Map<string, Promise<Published>>();
  #connected: Connected | undefined;
  #away = away('The broker is not open.');
  #isPaused = false;
  #last = 0;
  #bytes = 0;

  constructor(clock: Clock, jetStreamAway: (why: string) => void) {
    this.#clock = clock;
    this.#jetStreamAway = jetStreamAway;
  }

  attach(connection: NatsConnection, streams: Streams | undefined): void {
    this.#isPaused = false;
    if (this.#connected?.connection === connection) return;
    const inbox = createInbox();
    this.#connected = { connection, streams, inbox };
    connection.subscribe(`${inbox}.*`, {
      callback: (error, reply) => {
        if (!error) this.#answered(reply);
      },
    });
  }

  /** Nothing more is sent for now. What is on its way may still be answered. */
  pause(why: string): void {
    this.#isPaused = true;
    this.#away = unpublished('away', 'JETSTREAM_AWAY', why);
    for (const sending of this.#waiting.splice(0)) this.#answer(sending, this.#away);
  }

  detach(why: string): void {
    this.#connected = undefined;
    this.#away = away(why);
    for (const sending of this.#waiting.splice(0)) this.#answer(sending, this.#away);
    const lost = unpublished('lost', 'CONNECTION_LOST', why);
    for (const sending of this.#sent.values()) this.#answer(sending, lost);
  }

  /** The user may not publish there. The server says so apart from any message. */
  forbidden(subject: string): void {
    const sentence = `The user of the connection may not publish to ${subject}. Give it the permission.`;
    const refused = unpublished('refused', 'NOT_PERMITTED', sentence);
    for (const sending of this.#sent.values()) {
      if (sending.message.address === subject) this.#answer(sending, refused);
    }
  }

  publish(messages: readonly Publication[], { timeoutMs }: PublishOptions): Promise<Published>[] {
    const connected = this.#isPaused ? undefined : this.#connected;
    if (!connected) return messages.map(() => Promise.resolve(this.#away));
    const maxPayload = connected.connection.info?.max_payload ?? Infinity;
    const sendings: Sending[] = [];
    const batch: { left: number; timer?: unknown } = { left: 0 };
    const answers = messages.map((message): Promise<Published> => {
      const ready = prepare(message, maxPayload);
      if (ready.outcome === 'impossible') return Promise.resolve(ready);
      batch.left += 1;
      return new Promise((resolve) => {
        const answer = (published: Published) => {
          batch.left -= 1;
          if (batch.left === 0) this.#clock.clearTimer(batch.timer);
          resolve(published);
        };
        sendings.push({ message, ready, answer });
      });
    });
    if (sendings.length === 0) return answers;
    batch.timer = this.#clock.setTimer(() => this.#timeOut(sendings), timeoutMs);
    if (connected.streams) this.#send(sendings);
    else void this.#sendUnconfirmed(connected.connection, sendings);
    return answers;
  }

  #send(sendings: readonly Sending[]): void {
    this.#waiting.push(...sendings);
    this.#sendWaiting();
  }

  #sendWaiting(): void {
    while (this.#connected && this.#sent.size < MAX_MESSAGES && this.#bytes < MAX_BYTES) {
      const sending = this.#waiting.shift();
      if (!sending) return;
      if (!sending.isAnswered) this.#sendOne(sending, this.#connected);
    }
  }

  #sendOne(sending: Sending, { connection, inbox }: Connected): void {
    const { message, ready } = sending;
    this.#last += 1;
    sending.number = this.#last;
    this.#sent.set(this.#last, sending);
    this.#bytes += ready.bytes;
    const { headers } = ready;
    const reply = `${inbox}.${this.#last}`;
    try {
      connection.publish(message.address, message.payload, {
        reply,
        ...(headers ? { headers } : {}),
      });
    } catch (error) {
      this.#answer(sending, unsent(connection, error));
    }
  }

  /** Without JetStream: the server has it, and nobody says what became of it. */
  async #sendUnconfirmed(connection: NatsConnection, sendings: readonly Sending[]): Promise<void> {
    for (const sending of sendings) {
      const { message, ready } = sending;
      sending.number = UNNUMBERED;
      try {
        const { headers } = ready;
        connection.publish(message.address, message.payload, headers ? { headers } : {});
      } catch (error) {
        this.#answer(sending, unsent(connection, error));
      }
    }
    const published = await connection.flush().then(
      () => confirmed,
      (error: unknown) => unpublished('lost', 'CONNECTION_LOST', textOf(error)),
    );
    for (const sending of sendings) this.#answer(sending, published);
  }

  #answered(reply: Msg): void {
    const number = Number(reply.subject.slice(reply.subject.lastIndexOf('.') + 1));
    const sending = this.#sent.get(number);
    if (!sending) return;
    if (reply.headers?.code === NO_RESPONDERS) return void this.#explain(sending);
    const published = publishedIn(reply);
    // Others may listen to the subject and answer too: the word of the stream is still to come.
    if (published) this.#answer(sending, published);
  }

  /** Nobody took it: there is no stream, or its leader is away. */
  async #explain(sending: Sending): Promise<void> {
    const { address } = sending.message;
    let question = this.#questions.get(address);
    if (!question) {
      question = this.#ask(address).finally(() => this.#questions.delete(address));
      this.#questions.set(address, question);
    }
    this.#answer(sending, await question);
  }

  async #ask(subject: string): Promise<Published> {
    const streams = this.#connected?.streams;
    if (!streams) return this.#away;
    const found = await streams.lookUp(subject);
    switch (found.type) {
      case 'found': {
        const sentence = `Stream ${found.stream} takes no messages for now: it has no leader.`;
        return unpublished('refused', 'STREAM_UNAVAILABLE', sentence);
      }
      case 'none': {
        if (await streams.declareFor(subject)) {
          return unpublished('refused', 'STREAM_UNAVAILABLE', `Its stream was made just now.`);
        }
        const message = `${noStream(subject)} Then replay the message.`;
        return {
          outcome: 'unroutable',
          failure: { class: 'technical', code: 'NO_STREAM', message, notExecuted: true },
        };
      }
      case 'away': {
        const why = await streams.trouble();
        // The user may not ask for streams: then one can only try again.
        if (why === undefined) return unpublished('refused', 'STREAM_UNAVAILABLE', NO_ANSWER);
        this.#jetStreamAway(why);
        return unpublished('away', 'JETSTREAM_AWAY', why);
      }
    }
  }

  #timeOut(sendings: readonly Sending[]): void {
    for (const sending of sendings) {
      const published = sending.number === undefined ? waitedTooLong : unconfirmed;
      this.#answer(sending, published);
    }
  }

  #answer(sending: Sending, published: Published): void {
    if (sending.isAnswered) return;
    sending.isAnswered = true;
    if (sending.number !== undefined && this.#sent.delete(sending.number)) {
      this.#bytes -= sending.ready.bytes;
      if (this.#waiting.length > 0) this.#sendWaiting();
    }
    sending.answer(published);
  }
}

interface Ack {
  stream?: unknown;
  error?: { err_code?: number; description?: string };
}

/** What the stream says of a message; undefined: it is not the stream that says it. */
function publishedIn(reply: Msg): Published | undefined {
  let ack: Ack;
  try {
    ack = Object(reply.json()) as Ack;
  } catch {
    return undefined;
  }
  if (ack.error === undefined) return typeof ack.stream === 'string' ? confirmed : undefined;
  const { err_code, description = 'no reason given' } = ack.error;
  if (err_code === STREAM_MESSAGE_TOO_LARGE) {
    const sentence = `The stream takes no message of this size: ${description}. Raise its max_msg_size.`;
    return impossible('MESSAGE_TOO_LARGE', sentence);
  }
  return unpublished('refused', 'BROKER_REFUSED', `The stream did not take it: ${description}.`);
}

function unsent(connection: NatsConnection, error: unknown): Published {
  if (connection.isClosed()) return away('The connection was closed before the message was sent.');
  return impossible('INVALID_MESSAGE', textOf(error));
}

function away(why: string): Published {
  return unpublished('away', 'BROKER_AWAY', why);
}

const NO_ANSWER = 'No stream took the message, and JetStream does not say which stream should.';
const confirmed: Published = Object.freeze({ outcome: 'confirmed' });
const unconfirmed = unpublished('unknown', 'CONFIRM_TIMEOUT', 'No stream confirmed it in time.');
const waitedTooLong = unpublished(
  'away',
  'BROKER_BUSY',
  'Too many messages were on their way before it: it was not sent.',
);
