import { createInbox, type Msg, type NatsConnection, nanos } from '@nats-io/transport-node';
import type { Clock } from 'redrive';

interface PullRequest {
  /** `$JS.API.CONSUMER.MSG.NEXT.<stream>.<consumer>` */
  subject: string;
  messages: number;
  /** Undefined: of any size. */
  bytes?: number;
}

/** `over`: it brought what was asked for, or its time is up. `too-large`: the next message has more bytes than are left. */
export type PullEnd = { type: 'over' | 'too-large' } | { type: 'failed'; why: string };

interface PullEvents {
  message(message: Msg): void;
  ended(pull: Pull, end: PullEnd): void;
}

const EXPIRES_MS = 30_000;
const HEARTBEAT_MS = 5000;
/** The server says at least every heartbeat that it still knows of the request. */
const SILENCE_MS = 2.5 * HEARTBEAT_MS;

/** One request for messages, as long as the server serves it. */
export class Pull {
  readonly #clock: Clock;
  readonly #events: PullEvents;
  readonly #subscription;
  readonly #inbox = createInbox();
  #timer: unknown;
  #hasEnded = false;
  /** What it may still bring. */
  messagesLeft: number;
  bytesLeft: number;
  hasBrought = false;

  constructor(connection: NatsConnection, request: PullRequest, clock: Clock, events: PullEvents) {
    const { subject, messages, bytes } = request;
    this.#clock = clock;
    this.#events = events;
    this.messagesLeft = messages;
    this.bytesLeft = bytes ?? 0;
    this.#subscription = connection.subscribe(this.#inbox, {
      callback: (error, message) => {
        if (error) this.#end({ type: 'failed', why: error.message });
        else this.#received(message);
      },
    });
    const body = {
      batch: messages,
      ...(bytes === undefined ? {} : { max_bytes: bytes }),
      expires: nanos(EXPIRES_MS),
      idle_heartbeat: nanos(HEARTBEAT_MS),
    };
    connection.publish(subject, JSON.stringify(body), { reply: this.#inbox });
    this.#watch();
  }

  /** Takes no more, but for what is on its way. Resolves when that is here. */
  async drain(): Promise<void> {
    this.#clock.clearTimer(this.#timer);
    this.#hasEnded = true;
    // It rejects where the connection is closed.
    await this.#subscription.drain().catch(() => undefined);
  }

  #received(message: Msg): void {
    if (message.subject !== this.#inbox) {
      this.hasBrought = true;
      this.messagesLeft -= 1;
      this.bytesLeft = Math.max(0, this.bytesLeft - sizeOf(message));
      this.#events.message(message);
      if (this.messagesLeft === 0) this.#end({ type: 'over' });
      else this.#watch();
      return;
    }
    const { code = 0, description = '' } = message.headers ?? {};
    if (code === 100) return this.#watch();
    if (code === 404 || code === 408) return this.#end({ type: 'over' });
    if (/message size exceeds maxbytes/i.test(description)) return this.#end({ type: 'too-large' });
    // Also where a status came after the last message.
    this.#end({ type: 'failed', why: `The server ended the request: ${code} ${description}` });
  }

  #watch(): void {
    if (this.#hasEnded) return;
    this.#clock.clearTimer(this.#timer);
    const silent = () => this.#end({ type: 'failed', why: 'The consumer does not answer.' });
    this.#timer = this.#clock.setTimer(silent, SILENCE_MS, true);
  }

  #end(end: PullEnd): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#clock.clearTimer(this.#timer);
    this.#subscription.unsubscribe();
    this.#events.ended(this, end);
  }
}

/** As the server counts it, nearly. */
export function sizeOf(message: Msg): number {
  return message.data.length + message.subject.length + (message.reply?.length ?? 0);
}
