import type { Clock } from '../clock.ts';
import { ask } from './ask.ts';
import { IdempotencyError } from './idempotency-error.ts';
import type { IdempotencyStore } from './store.ts';

interface LeaseOptions {
  store: IdempotencyStore;
  key: string;
  owner: string;
  leaseMs: number;
  storeTimeoutMs: number;
  clock: Clock;
  /** When the claim was sent, by the monotonic clock: the store's lease ends later than one counted from here. */
  sentAtMs: number;
  signal: AbortSignal | undefined;
}

/** So often within a lease it is renewed. */
const BEATS = 3;
/** After a renewal that failed. */
const HASTY_BEATS = 10;

/** Keeps a claim alive while the work runs, and aborts the work's signal when the claim is lost. */
export class Lease {
  /** Until then, by the monotonic clock, nobody else can have the key. */
  sureUntilMs: number;
  /** Why the claim is not sure any more. */
  lost: IdempotencyError | undefined;
  readonly #options: LeaseOptions;
  /** Made when it is touched: most work never looks at its signal. */
  #controller: AbortController | undefined;
  #abort: { reason: unknown } | undefined;
  #timer: unknown;
  #isOver = false;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.sureUntilMs = options.sentAtMs + options.leaseMs;
    const { signal } = options;
    if (signal?.aborted) this.#onAbort();
    else if (signal) signal.addEventListener('abort', this.#onAbort, { once: true });
    // Without a lease the claim is held by a transaction.
    if (!options.store.transactional) this.#wait(options.leaseMs / BEATS);
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#abort) this.#controller.abort(this.#abort.reason);
    }
    return this.#controller.signal;
  }

  stop(): void {
    this.#isOver = true;
    this.#options.clock.clearTimer(this.#timer);
    this.#options.signal?.removeEventListener('abort', this.#onAbort);
  }

  #wait(ms: number): void {
    const { clock } = this.#options;
    const leftMs = Math.max(0, this.sureUntilMs - clock.monotonic());
    this.#timer = clock.setTimer(() => void this.#beat(), Math.min(ms, leftMs), true);
  }

  async #beat(): Promise<void> {
    const { store, key, owner, leaseMs, storeTimeoutMs, clock } = this.#options;
    const sentAtMs = clock.monotonic();
    const leftMs = this.sureUntilMs - sentAtMs;
    // Also where this process was paused: somebody else may have the key by now, so the work stops before the store is asked.
    if (leftMs <= 0) return this.#lose('It could not be renewed in time.');
    const timeoutMs = Math.min(storeTimeoutMs, leftMs);
    let isMine: boolean | undefined;
    try {
      const renew = () => store.renew(key, owner, leaseMs);
      isMine = await ask(renew, { clock, timeoutMs, maxAttempts: 1 });
    } catch {
      // The store is asked again, as long as the lease surely holds.
      isMine = undefined;
    }
    if (this.#isOver) return;
    if (isMine === false) return this.#lose('Another caller took over, or the key was cleared.');
    if (isMine) this.sureUntilMs = sentAtMs + leaseMs;
    this.#wait(leaseMs / (isMine ? BEATS : HASTY_BEATS));
  }

  #lose(why: string): void {
    this.lost = leaseLost(why);
    this.#end(this.lost);
  }

  readonly #onAbort = () => this.#end(this.#options.signal?.reason);

  #end(reason: unknown): void {
    this.#abort = { reason };
    this.#controller?.abort(reason);
  }
}

export function leaseLost(
  why: string,
  details?: { cause?: unknown; result?: unknown },
): IdempotencyError {
  return new IdempotencyError(
    'IDEMPOTENCY_LEASE_LOST',
    `The claim on the idempotency key was lost while the work ran. ${why} The work may run twice at the same time: let it heed its signal, and hand its fencing token to what it changes.`,
    details,
  );
}
