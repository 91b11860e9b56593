import { Coalescer } from './coalescer.ts';
import { EngineError } from './errors.ts';
import type { Host } from './host.ts';
import { pause, persist } from './patience.ts';
import type { Schedule, Settled, Settlement } from './ports/schedule.ts';

const MAX_BATCH = 1000;
const MAX_BATCH_BYTES = 8 * 1024 * 1024;
const MAX_UNDERWAY = 2;
const BUSY_MS = 50;

/**
 * Writes down how deliveries ended, in batches, until it is written: a store that is away only delays it. The
 * fencing token makes that safe, however late it comes.
 */
export class Settler {
  /** The store does not take settlements: what is claimed now might be what waits here to be settled. */
  isTroubled = false;
  readonly #batches: Coalescer<Settlement, Settled>;
  readonly #host: Host;
  readonly #until: AbortSignal;

  constructor(schedule: Schedule, host: Host, until: AbortSignal) {
    this.#host = host;
    this.#until = until;
    const write = async (batch: readonly Settlement[]) => {
      let tries = 0;
      const attempt = async () => {
        tries += 1;
        this.isTroubled = tries > 1;
        return schedule.settle(batch);
      };
      const results = await persist(attempt, { host, what: 'settling', until });
      this.isTroubled = false;
      // An earlier try may have been written, and only its answer lost: then there is nothing left to settle.
      return tries > 1 ? results.map((one) => (one === 'lost' ? 'settled' : one)) : results;
    };
    this.#batches = new Coalescer(write, {
      maxItems: MAX_BATCH,
      maxBytes: MAX_BATCH_BYTES,
      bytesOf: (one) => ('outbox' in one && one.outbox ? one.outbox.payload.length : 0),
      maxUnderway: MAX_UNDERWAY,
      defer: host.defer,
    });
  }

  /** What is not written yet. Its tasks keep their leases, and nothing new is claimed while it is much. */
  get unsettled(): number {
    return this.#batches.size;
  }

  async settle(settlement: Settlement): Promise<Exclude<Settled, 'busy'>> {
    for (;;) {
      const result = await this.#batches.add(settlement);
      if (result !== 'busy') return result;
      if (this.#until.aborted) throw new EngineError('ENGINE_STOPPED', 'Its row stayed locked.');
      // Somebody keeps the row locked: it waits a moment, and holds up no other.
      await pause(this.#host, BUSY_MS, this.#until);
    }
  }
}
