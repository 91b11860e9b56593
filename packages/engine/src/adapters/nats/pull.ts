import type { Msg, NatsConnection } from '@nats-io/transport-node';
import type { Clock } from 'redrive';
import { createInbox, nanos } from './library.ts';

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
/** A server that is killed forgets its requests: nothing comes until its silence is noticed. */
const HEARTBEAT_MS = 2000;
/** The server says at least every heartbeat that it still knows of the request. */
const SILENCE_MS = 2.5 * HEARTBEAT_MS;
const STILL_UNSENT = 'Nats-Pending-Messages';

/** One request for messages, as long as the server serves it. */
export class Pull {
  readonly #clock: Clock;
  readonly #events: PullEvents;
  readonly #subscription;
  readonly #inbox = createInbox();
  #timer: unknown;
  #hasEnded = false;
  /** The server has ended the request, and messages of it are on their way. */
  #said: PullEnd | undefined;
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
    await this.#leave();
  }

  #received(message: Msg): void {
    if (message.subject !== this.#inbox) {
      this.hasBrought = true;
      this.messagesLeft -= 1;
      this.bytesLeft = Math.max(0, this.bytesLeft - sizeOf(message));
      this.#events.message(message);
      if (this.messagesLeft === 0) this.#end(this.#said ?? { type: 'over' });
      else this.#watch();
      return;
    }
    const { code = 0, description = '' } = message.headers ?? {};
    if (code === 100) return this.#watch();
    this.#ended(endBy(code, description), unsentIn(message));
  }

  /**
   * A status overtakes messages: a consumer with replicas sends a message when a majority knows of its delivery, and a
   * status at once. Whoever leaves then loses the messages, and the server repeats that with each request.
   */
  #ended(end: PullEnd, unsent: number | undefined): void {
    if (unsent === undefined || unsent >= this.messagesLeft) return this.#end(end);
    this.messagesLeft -= unsent;
    this.#said = end;
    this.#watch();
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
    // What this process was too slow to read is here already, and would come again much later.
    void this.#leave();
    this.#events.ended(this, end);
  }

  async #leave(): Promise<void> {
    if (this.messagesLeft === 0) return this.#subscription.unsubscribe();
    // It rejects where the connection is closed.
    await this.#subscription.drain().catch(() => undefined);
  }
}

function endBy(code: number, description: string): PullEnd {
  const isOver = code === 404 || code === 408 || /^batch completed/i.test(description);
  if (isOver) return { type: 'over' };
  if (/^message size exceeds maxbytes/i.test(description)) return { type: 'too-large' };
  return { type: 'failed', why: `The server ended the request: ${code} ${description}` };
}

/** How many of the messages that were asked for the server will not send; undefined: it does not say. */
function unsentIn({ headers }: Msg): number | undefined {
  const text = headers?.get(STILL_UNSENT);
  return text ? Number(text) : undefined;
}

/** As the server counts it, nearly. */
export function sizeOf(message: Msg): number {
  return message.data.length + message.subject.length + (message.reply?.length ?? 0);
}
