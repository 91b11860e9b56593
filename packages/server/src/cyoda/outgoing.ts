import { Fifo } from './fifo.ts';

/**
 * What a stream has still to send, as the iterable that the transport reads. The transport asks for the next event when
 * the one before it was handed to the socket. Acknowledgements go before answers: the server takes a member for dead
 * that has not acknowledged a keep-alive, however many answers it sends.
 */
export class Outgoing<T> implements AsyncIterable<T> {
  readonly #acks = new Fifo<T>();
  readonly #answers = new Fifo<T>();
  readonly #onFlushed: () => void;
  /** The transport waits for something to send. */
  #wanted: ((result: IteratorResult<T>) => void) | undefined;
  #state: 'open' | 'ending' | 'closed' = 'open';

  /** `onFlushed` is called whenever everything was handed to the socket. */
  constructor(onFlushed: () => void) {
    this.#onFlushed = onFlushed;
  }

  /** Events that are not sent yet. */
  get size(): number {
    return this.#acks.size + this.#answers.size;
  }

  /** Everything was handed to the socket. */
  get isFlushed(): boolean {
    return this.#wanted !== undefined || this.#state === 'closed';
  }

  ack(event: T): void {
    this.#push(this.#acks, event);
  }

  answer(event: T): void {
    this.#push(this.#answers, event);
  }

  /** Ends the stream after what is there; nothing more is taken. */
  end(): void {
    if (this.#state !== 'open') return;
    this.#state = 'ending';
    this.#wanted?.({ done: true, value: undefined });
    this.#wanted = undefined;
  }

  /** The stream is gone: what was not sent is let go. */
  close(): void {
    this.#state = 'closed';
    this.#acks.clear();
    this.#answers.clear();
    this.#wanted?.({ done: true, value: undefined });
    this.#wanted = undefined;
  }

  [Symbol.asyncIterator](): AsyncIterator<T> {
    const closed = () => {
      this.close();
      return Promise.resolve({ done: true, value: undefined } as const);
    };
    return { next: () => this.#next(), return: closed, throw: closed };
  }

  #push(queue: Fifo<T>, event: T): void {
    if (this.#state !== 'open') return;
    const wanted = this.#wanted;
    if (wanted) {
      this.#wanted = undefined;
      wanted({ done: false, value: event });
    } else {
      queue.push(event);
    }
  }

  #next(): Promise<IteratorResult<T>> {
    const event = this.#acks.shift() ?? this.#answers.shift();
    if (event !== undefined) return Promise.resolve({ done: false, value: event });
    if (this.#state !== 'open') return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => {
      this.#wanted = resolve;
      this.#onFlushed();
    });
  }
}
