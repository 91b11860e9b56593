import { Coalescer } from '../coalescer.ts';
import { EngineError, isStoreError } from '../errors.ts';
import type { Host } from '../host.ts';
import { pause, persist } from '../patience.ts';
import type { Schedule, Settled, Settlement } from '../ports/schedule.ts';

const MAX_BATCH = 1000;
const MAX_BATCH_BYTES = 8 * 1024 * 1024;
const MAX_UNDERWAY = 2;
const BUSY_MS = 50;

/** What became of one settlement of a batch. */
type Answer = Settled | { error: unknown };

/**
 * Writes down how deliveries ended, in batches, until it is written: a store that is away only delays it. The
 * fencing token makes that safe, however late it comes.
 */
export class Settler {
  readonly #schedule: Schedule;
  readonly #batches: Coalescer<Settlement, Answer>;
  readonly #host: Host;
  readonly #until: AbortSignal;
  /** Batches that the store did not take at first. */
  #troubled = 0;

  constructor(schedule: Schedule, host: Host, until: AbortSignal) {
    this.#schedule = schedule;
    this.#host = host;
    this.#until = until;
    this.#batches = new Coalescer((batch) => this.#write(batch), {
      maxItems: MAX_BATCH,
      maxBytes: MAX_BATCH_BYTES,
      bytesOf: (one) => ('outbox' in one && one.outbox ? one.outbox.payload.length : 0),
      maxUnderway: MAX_UNDERWAY,
      defer: host.defer,
    });
  }

  /** The store does not take settlements: what is claimed now might be what waits here to be settled. */
  get isTroubled(): boolean {
    return this.#troubled > 0;
  }

  /** What is not written yet. Its tasks keep their leases. */
  get unsettled(): number {
    return this.#batches.size;
  }

  /** Rejects where the store cannot take this very settlement, or the engine ends first. */
  async settle(settlement: Settlement): Promise<Exclude<Settled, 'busy'>> {
    for (;;) {
      const answer = await this.#batches.add(settlement);
      if (typeof answer !== 'string') throw answer.error;
      if (answer !== 'busy') return answer;
      if (this.#until.aborted) throw new EngineError('ENGINE_STOPPED', 'Its row stayed locked.');
      // Somebody keeps the row locked: it waits a moment, and holds up no other.
      await pause(this.#host, BUSY_MS, this.#until);
    }
  }

  async #write(batch: readonly Settlement[]): Promise<Answer[]> {
    let tries = 0;
    const attempt = async () => {
      tries += 1;
      if (tries === 2) this.#troubled += 1;
      return this.#schedule.settle(batch);
    };
    try {
      const trying = { host: this.#host, what: 'settling', until: this.#until };
      const results = await persist(attempt, { ...trying, isWorthIt: isStoreError });
      // An earlier try may have been written, and only its answer lost: then there is nothing left to settle.
      return tries > 1 ? results.map((one) => (one === 'lost' ? 'settled' : one)) : results;
    } catch (error) {
      if (this.#until.aborted || batch.length === 1) return batch.map(() => ({ error }));
      // One of them is such that the store will never take it. The others must not wait for it.
      const middle = batch.length >> 1;
      return [
        ...(await this.#write(batch.slice(0, middle))),
        ...(await this.#write(batch.slice(middle))),
      ];
    } finally {
      if (tries > 1) this.#troubled -= 1;
    }
  }
}
