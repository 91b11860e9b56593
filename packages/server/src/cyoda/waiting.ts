import type { RequestType } from './events.ts';
import { Fifo } from './fifo.ts';

/** A request that was not looked at yet: no more than its text is kept. */
export interface Waiting {
  readonly type: RequestType;
  readonly envelopeId: string;
  readonly body: string;
  /** By the monotonic clock: the time limit of an evaluation counts from here. */
  readonly arrivedMs: number;
}

const MAX_WAITING = 4096;
/** In UTF-16 units, all together. One request is always taken, whatever its size. */
const MAX_LENGTH = 64 * 1024 * 1024;
/** Parsing more than this takes milliseconds. */
const LARGE = 256 * 1024;

/**
 * Requests that wait to be evaluated, bounded in number and in size. Large ones wait apart: each is taken after a round
 * of the others, so that ten megabytes hold up nobody for longer than it takes to parse them once.
 */
export class WaitingRoom {
  readonly #small = new Fifo<Waiting>();
  readonly #large = new Fifo<Waiting>();
  #length = 0;

  get size(): number {
    return this.#small.size + this.#large.size;
  }

  get isFull(): boolean {
    return this.size >= MAX_WAITING || this.#length >= MAX_LENGTH;
  }

  add(request: Waiting): void {
    this.#length += request.body.length;
    (request.body.length > LARGE ? this.#large : this.#small).push(request);
  }

  small(): Waiting | undefined {
    return this.#taken(this.#small.shift());
  }

  large(): Waiting | undefined {
    return this.#taken(this.#large.shift());
  }

  clear(): void {
    this.#small.clear();
    this.#large.clear();
    this.#length = 0;
  }

  #taken(request: Waiting | undefined): Waiting | undefined {
    if (request) this.#length -= request.body.length;
    return request;
  }
}
