/** Somebody who listens at a queue, and keeps what came. */
import { EventEmitter, once } from 'node:events';
import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib';

const LONGEST_MS = 20_000;

export interface MailboxOptions {
  /** What it does with a message beside keeping it; takes it, unless told otherwise. */
  answer?: (message: ConsumeMessage, channel: Channel) => void;
  prefetch?: number;
}

export interface Letter extends ConsumeMessage {
  headers: Record<string, unknown>;
  atMs: number;
}

export class Mailbox {
  readonly name: string;
  readonly letters: Letter[] = [];
  readonly #news = new EventEmitter({ captureRejections: false });
  #read = 0;

  private constructor(name: string) {
    this.name = name;
    // Many may wait for one queue.
    this.#news.setMaxListeners(0);
  }

  static async open(
    connection: ChannelModel,
    name: string,
    { answer = (message, channel) => channel.ack(message), prefetch = 500 }: MailboxOptions = {},
  ): Promise<Mailbox> {
    const mailbox = new Mailbox(name);
    const channel = await connection.createChannel();
    await channel.prefetch(prefetch);
    await channel.consume(name, (message) => {
      // Its queue was deleted.
      if (!message) return;
      const headers = (message.properties.headers ?? {}) as Record<string, unknown>;
      mailbox.letters.push({ ...message, headers, atMs: Date.now() });
      answer(message, channel);
      mailbox.#news.emit('letter');
    });
    return mailbox;
  }

  /** The counts that came, in their order. */
  get counts(): unknown[] {
    return this.letters.map(({ headers }) => headers['x-retry-count']);
  }

  /** The ids that Redrive gave, in their order. */
  get ids(): unknown[] {
    return this.letters.map(({ headers }) => headers['x-message-id']);
  }

  /** The next that nobody has asked for. */
  async next(): Promise<Letter> {
    const at = this.#read++;
    await this.#until(() => this.letters.length > at, `letter ${at + 1}`);
    return this.letters[at]!;
  }

  /** All, as soon as there are so many. */
  async count(count: number): Promise<readonly Letter[]> {
    await this.#until(() => this.letters.length >= count, `${count} letters`);
    return this.letters;
  }

  /** The first of this kind, whether it came already or not. */
  async first(isIt: (letter: Letter) => boolean): Promise<Letter> {
    let found: Letter | undefined;
    await this.#until(() => (found = this.letters.find(isIt)) !== undefined, 'such a letter');
    return found!;
  }

  /** The one with this id in `x-message-id`. */
  of(id: string): Promise<Letter> {
    return this.first(({ headers }) => headers['x-message-id'] === id);
  }

  async #until(isSo: () => boolean, what: string): Promise<void> {
    const signal = AbortSignal.timeout(LONGEST_MS);
    while (!isSo()) {
      await once(this.#news, 'letter', { signal }).catch(() => undefined);
      if (!signal.aborted || isSo()) continue;
      throw new Error(`${this.name} waits for ${what} and has ${this.letters.length}.`);
    }
  }
}
