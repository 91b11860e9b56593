import { ask } from './ask.ts';
import type { Call } from './claim.ts';
import { heartbeatOf } from './heartbeat.ts';
import { IdempotencyError } from './idempotency-error.ts';

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
  /** When it is to be renewed, by the monotonic clock. Infinity: not now. */
  beatAtMs = Infinity;
  readonly #call: Call;
  /** Made when it is touched: most work never looks at its signal. */
  #controller: AbortController | undefined;
  #abort: { reason: unknown } | undefined;
  #isOver = false;

  constructor(call: Call) {
    const { store, settings, sentAtMs } = call;
    const { signal, leaseMs, clock } = settings;
    this.#call = call;
    this.sureUntilMs = sentAtMs + leaseMs;
    if (signal?.aborted) this.#onAbort();
    else if (signal) signal.addEventListener('abort', this.#onAbort, { once: true });
    // Without a lease the claim is held by a transaction.
    if (store.transactional) return;
    this.beatAtMs = sentAtMs + leaseMs / BEATS;
    heartbeatOf(clock).add(this);
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#abort) this.#controller.abort(this.#abort.reason);
    }
    return this.#controller.signal;
  }

  stop(): void {
    const { clock, signal } = this.#call.settings;
    this.#isOver = true;
    heartbeatOf(clock).delete(this);
    signal?.removeEventListener('abort', this.#onAbort);
  }

  /** Renews the lease, and says when it is to be done next. */
  async beat(): Promise<void> {
    const { store, key, owner, settings } = this.#call;
    const { leaseMs, storeTimeoutMs, clock } = settings;
    this.beatAtMs = Infinity;
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
    const nextMs = clock.monotonic() + leaseMs / (isMine ? BEATS : HASTY_BEATS);
    this.beatAtMs = Math.min(nextMs, this.sureUntilMs);
    heartbeatOf(clock).watch(this.beatAtMs);
  }

  #lose(why: string): void {
    this.lost = leaseLost(why);
    this.#end(this.lost);
  }

  readonly #onAbort = () => this.#end(this.#call.settings.signal?.reason);

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
