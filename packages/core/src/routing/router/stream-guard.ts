import { notify } from '../../run/notify.ts';

export interface StreamOptions {
  /** Whether a chunk is content. Chunks before the first content are kept back, so that a fallback is still possible. Default: every chunk is. */
  isContent?: ((chunk: unknown) => boolean) | undefined;
  /** Whether a chunk marks the end. Where given, a stream that stops without it is an error. */
  isEnd?: ((chunk: unknown) => boolean) | undefined;
}

/** How the stream ended, after its content had begun. `cancelled`: the consumer went away. */
type StreamEnd = { kind: 'complete' } | { kind: 'cancelled' } | { kind: 'broken'; error: unknown };

/** Chunks that are kept back at most. Past this the stream counts as begun. */
const MAX_PREAMBLE = 1000;

/** One step of a stream. */
export type Chunk = IteratorResult<unknown, unknown>;

interface Source {
  next(): Promise<Chunk>;
  cancel(reason: unknown): unknown;
}

/** Wraps the pulls of a stream with the limits of its call. */
type Pull = (next: () => Promise<Chunk>) => Promise<Chunk>;

/**
 * A stream that is held back until its first content. Until then its failure is a failure of the attempt; after that it
 * belongs to the consumer, and what happens to it is told to `onEnd`.
 */
export class StreamGuard {
  onEnd: ((end: StreamEnd) => void) | undefined;
  pull: Pull = (next) => next();
  readonly #source: Source;
  readonly #isContent: (chunk: unknown) => boolean;
  readonly #isEnd: ((chunk: unknown) => boolean) | undefined;
  readonly #cut: () => Error;
  readonly #isWeb: boolean;
  readonly #held: unknown[] = [];
  #sawEnd = false;
  #done = false;

  /** Undefined for a value that is no stream. */
  static of(value: unknown, options: StreamOptions, cut: () => Error): StreamGuard | undefined {
    const source = sourceOf(value);
    return source && new StreamGuard(source, isWebStream(value), options, cut);
  }

  private constructor(source: Source, isWeb: boolean, options: StreamOptions, cut: () => Error) {
    this.#source = source;
    this.#isWeb = isWeb;
    this.#isContent = options.isContent ?? (() => true);
    this.#isEnd = options.isEnd;
    this.#cut = cut;
  }

  /** Reads up to the first content. */
  async open(): Promise<void> {
    while (this.#held.length < MAX_PREAMBLE) {
      const { done, value } = await this.#source.next();
      if (done) {
        this.#done = true;
        this.#checkEnd();
        return;
      }
      this.#held.push(value);
      this.#note(value);
      if (this.#isContent(value)) return;
    }
  }

  /** The stream for the consumer, of the kind that the provider gave. */
  release(): unknown {
    const chunks = this.#chunks();
    if (!this.#isWeb) return chunks;
    return new ReadableStream<unknown>({
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await chunks.return?.();
      },
    });
  }

  /** Nobody will read it. */
  cancel(reason: unknown): void {
    this.#done = true;
    notify('cancelling a stream', () => this.#source.cancel(reason));
  }

  /** The same for a stream that was handed over already. */
  abandon(): void {
    this.cancel(undefined);
    this.onEnd?.({ kind: 'cancelled' });
  }

  /** @internal Kept out of the published types: the library of a browser project may not have the symbol. */
  [Symbol.asyncDispose](): Promise<void> {
    this.cancel(undefined);
    return Promise.resolve();
  }

  /** No generator: the `return` of one that was never started would not be noticed. */
  #chunks(): AsyncIterableIterator<unknown, void> {
    let isOver = false;
    const finish = (end: StreamEnd) => {
      if (isOver) return;
      isOver = true;
      // A consumer that has seen the end mark need not read on.
      const isComplete = end.kind === 'cancelled' && this.#sawEnd && this.#held.length === 0;
      if (!this.#done) this.cancel(end.kind === 'broken' ? end.error : undefined);
      this.onEnd?.(isComplete ? { kind: 'complete' } : end);
    };
    const over: IteratorResult<unknown, void> = { done: true, value: undefined };
    const next = async (): Promise<IteratorResult<unknown, void>> => {
      if (isOver) return over;
      if (this.#held.length > 0) return { done: false, value: this.#held.shift() };
      try {
        const { done, value } = this.#done ? over : await this.pull(() => this.#source.next());
        if (!done) {
          this.#note(value);
          return { done: false, value };
        }
        this.#done = true;
        this.#checkEnd();
      } catch (error) {
        finish({ kind: 'broken', error });
        throw error;
      }
      finish({ kind: 'complete' });
      return over;
    };
    return {
      next,
      return: () => {
        finish({ kind: 'cancelled' });
        return Promise.resolve(over);
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  #note(chunk: unknown): void {
    if (this.#isEnd?.(chunk)) this.#sawEnd = true;
  }

  #checkEnd(): void {
    if (this.#isEnd && !this.#sawEnd) throw this.#cut();
  }
}

function isWebStream(value: unknown): value is ReadableStream<unknown> {
  return typeof (value as ReadableStream | null | undefined)?.getReader === 'function';
}

function sourceOf(value: unknown): Source | undefined {
  if (isWebStream(value)) {
    const reader = value.getReader();
    return {
      next: () => reader.read(),
      cancel: (reason) => reader.cancel(reason),
    };
  }
  const iterable = value as Partial<AsyncIterable<unknown>> | null | undefined;
  if (typeof iterable?.[Symbol.asyncIterator] !== 'function') return undefined;
  const iterator = (iterable as AsyncIterable<unknown>)[Symbol.asyncIterator]();
  return {
    next: () => Promise.resolve(iterator.next()),
    cancel: () => iterator.return?.(undefined),
  };
}
