import { Coalescer } from './coalescer.ts';
import type { Host } from './host.ts';
import { persist } from './patience.ts';
import type { Schedule, Settled, Settlement } from './ports/schedule.ts';

const MAX_BATCH = 1000;
const MAX_BATCH_BYTES = 8 * 1024 * 1024;
const MAX_UNDERWAY = 2;

/**
 * Writes down how deliveries ended, in batches, until it is written: a store that is away only delays it. The
 * fencing token makes that safe, however late it comes.
 */
export class Settler {
  readonly #batches: Coalescer<Settlement, Settled>;

  constructor(schedule: Schedule, host: Host, until: AbortSignal) {
    const write = (batch: readonly Settlement[]) =>
      persist(() => schedule.settle(batch), { host, what: 'settling', until });
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
      // A row that somebody keeps locked waits alone, with the next batch.
      const result = await this.#batches.add(settlement);
      if (result !== 'busy') return result;
    }
  }
}
