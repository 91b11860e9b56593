/**
 * Waiting, and nothing else: an entry goes in with a delay, and is handed over when its delay is over.
 *
 * An entry is a wake-up. What is to be done is decided by a record elsewhere, so that a duplicate does no harm.
 *
 * - Never early, by the queue's own clock: the delay counts from when the queue has taken the entry.
 * - At least once: an entry is handed over until a handler has answered for it, and that answer is durable.
 * - Never lost, as far as the server keeps its own promise: `schedule` resolves only after its entries are durable.
 * - Order is not promised.
 *
 * Trouble that passes is an EngineError whose code begins with `STORE_`. Repeating the call is safe then.
 */
export interface DelayQueue {
  readonly capabilities: DelayQueueCapabilities;

  /** Connects, and makes or checks what the queue needs on the server. Safe to call again. */
  open(): Promise<void>;

  /** Resolves when all entries are durable. Rejects where some may not be: then any of them may be there already. */
  schedule(entries: readonly DelayedEntry[]): Promise<void>;

  /**
   * Hands over what is due, in batches, under a lease that the queue renews. Several processes may consume the same
   * queue: they share its entries.
   */
  consume(handler: DelayHandler, limits: DelayLimits): Promise<DelayConsumer>;

  /** Removes entries that wait. For each: whether it was there. Needs `cancels`. */
  cancel(ids: readonly string[]): Promise<boolean[]>;

  /** How many entries wait or are in hand. Needs `counts`. */
  depth(): Promise<number>;

  /** Stops consuming as `DelayConsumer.stop` does, and disconnects. Safe to call again. */
  close(): Promise<void>;
}

export interface DelayQueueCapabilities {
  /** The same id again changes nothing while it waits or is in hand. Without it the entry is handed over twice. */
  deduplicates: boolean;
  cancels: boolean;
  counts: boolean;
  /** Entries outlive the process. */
  durable: boolean;
}

export interface DelayedEntry {
  /** 1 to 255 characters of valid Unicode, without NUL. */
  id: string;
  /** Whole ms from 0 to `MAX_DELAY_MS`. */
  delayMs: number;
  /** At most `MAX_PAYLOAD_BYTES`. */
  payload: Uint8Array;
  /** Entries of one key may share a partition or a slot. Their order is not promised. The id, unless given. */
  key?: string;
}

/** A year and a day. */
export const MAX_DELAY_MS = 366 * 24 * 3_600_000;
export const MAX_PAYLOAD_BYTES = 64 * 1024;
export const MAX_ID_LENGTH = 255;

export interface DueEntry {
  id: string;
  payload: Uint8Array;
  key: string;
  /** Ms since it was due, by the queue's clock. Never negative. */
  lateMs: number;
  /** How often it was handed over before without an answer, as far as the queue knows. */
  redeliveries: number;
}

/**
 * Answers for each entry of the batch, in its order. The signal aborts when the lease is lost, when `timeoutMs` is over,
 * and when the consumer is stopped for good: answers change nothing then. A handler that rejects has answered for none: all come again.
 */
export type DelayHandler = (
  batch: readonly DueEntry[],
  signal: AbortSignal,
) => Promise<readonly DelayAnswer[]>;

/** `done`: forget it. `again`: hand it over once more after so many ms, counted from the answer. */
export type DelayAnswer = { type: 'done' } | { type: 'again'; delayMs: number };

export interface DelayLimits {
  /** Entries in one batch (100). */
  maxBatch?: number;
  /** Batches under way at once in this process (4). */
  concurrency?: number;
  /**
   * How long a handler may take for a batch (600 000). Then its signal aborts, and its entries are handed over once more.
   */
  timeoutMs?: number;
  /** How long `stop` waits for handlers under way before it aborts them and gives their entries back (30 000). */
  stopTimeoutMs?: number;
}

export interface DelayConsumer {
  /** Why nothing can be taken from the server at present, where the queue knows. */
  readonly trouble?: string | undefined;
  /**
   * Takes nothing more, waits for the handlers under way as long as `stopTimeoutMs`, then gives the rest back: another
   * consumer gets it at once. Safe to call again.
   */
  stop(): Promise<void>;
}
