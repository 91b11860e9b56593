import type { ConsumeLimits, Consumer, Publication, Received } from '../../ports/broker.ts';

/** One queue, and those who consume it. */
export class MemoryQueue {
  /** By their numbers, which are their order, whoever had them in between. */
  #waiting = new Map<number, Message>();
  #lastTag = 0;
  readonly #listeners: Listener[] = [];
  #isHandingOut = false;

  get size(): number {
    return this.#listeners.reduce((sum, { held }) => sum + held.size, this.#waiting.size);
  }

  add({ payload, headers, contentType, extra }: Publication): void {
    this.#lastTag += 1;
    this.#waiting.set(this.#lastTag, {
      tag: this.#lastTag,
      // The publisher's bytes are the publisher's.
      payload: new Uint8Array(payload),
      headers: { ...headers },
      ...(contentType === undefined ? {} : { contentType }),
      ...(extra === undefined ? {} : { extra }),
      redelivered: false,
    });
    this.#handOutSoon();
  }

  consume(limits: ConsumeLimits, receive: (message: Received) => void): Consumer {
    const listener: Listener = { limits, receive, held: new Map(), bytes: 0, isDraining: false };
    this.#listeners.push(listener);
    this.#handOutSoon();
    return {
      ack: async (messages) => {
        for (const { tag } of messages) drop(listener, tag);
        this.#handOutSoon();
      },
      requeue: async (messages) =>
        this.#takeBack(
          listener,
          messages.map(({ tag }) => tag),
        ),
      drain: () => {
        listener.isDraining = listener.held.size > 0;
      },
      stop: async () => {
        const place = this.#listeners.indexOf(listener);
        if (place >= 0) this.#listeners.splice(place, 1);
        this.#takeBack(listener, [...listener.held.keys()]);
      },
    };
  }

  /** What a consumer does not hold any more is not its own to give back. */
  #takeBack(listener: Listener, tags: readonly unknown[]): void {
    const back = tags.flatMap((tag) => drop(listener, tag) ?? []);
    if (back.length === 0) return;
    const again = back.map((message) => ({ ...message, redelivered: true }));
    const all = [...again, ...this.#waiting.values()].sort((a, b) => a.tag - b.tag);
    this.#waiting = new Map(all.map((message) => [message.tag, message]));
    this.#handOutSoon();
  }

  /** Later in this turn, never inside of a call: who publishes does not wait for who receives. */
  #handOutSoon(): void {
    if (this.#isHandingOut) return;
    this.#isHandingOut = true;
    queueMicrotask(() => {
      this.#isHandingOut = false;
      this.#handOut();
    });
  }

  #handOut(): void {
    // From the beginning each time: who receives may publish, give back or stop at once.
    for (;;) {
      const message = this.#waiting.values().next().value;
      const listener = message && this.#listeners.find((one) => hasRoom(one, message));
      if (!listener) return;
      this.#waiting.delete(message.tag);
      // In turns: who has just got one is asked last.
      this.#listeners.splice(this.#listeners.indexOf(listener), 1);
      this.#listeners.push(listener);
      listener.held.set(message.tag, message);
      listener.bytes += message.payload.length;
      listener.receive(message);
    }
  }
}

type Message = Received & { tag: number };

interface Listener {
  limits: ConsumeLimits;
  receive: (message: Received) => void;
  held: Map<unknown, Message>;
  bytes: number;
  /** Hands over nothing more until everything it has handed over is settled. */
  isDraining: boolean;
}

/** One always fits, however large it is. */
function hasRoom(listener: Listener, { payload }: Message): boolean {
  const { held, bytes, limits, isDraining } = listener;
  if (isDraining) return false;
  if (held.size === 0) return limits.maxMessages > 0;
  return held.size < limits.maxMessages && bytes + payload.length <= limits.maxBytes;
}

function drop(listener: Listener, tag: unknown): Message | undefined {
  const message = listener.held.get(tag);
  if (!message) return undefined;
  listener.held.delete(tag);
  listener.bytes -= message.payload.length;
  if (listener.held.size === 0) listener.isDraining = false;
  return message;
}
