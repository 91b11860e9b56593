/** The numbers of one lane, counted here and written into the metrics when somebody asks. */
interface LaneNumbers {
  /** As the label `queue`. */
  readonly queue: string;
  scheduled: number;
  succeeded: number;
  failed: number;
  exhausted: number;
}

/** So many names get numbers of their own; what comes later is `other`: labels must not grow without end. */
export const MAX_NAMES = 200;
export const OTHER = 'other';

/** Lanes by name, the first ones only. */
export class LaneTable {
  readonly #lanes = new Map<string, LaneNumbers>();
  readonly #other = numbersOf(OTHER);

  of(lane: string): LaneNumbers {
    const known = this.#lanes.get(lane);
    if (known) return known;
    if (this.#lanes.size >= MAX_NAMES) return this.#other;
    const numbers = numbersOf(queueOf(lane));
    this.#lanes.set(lane, numbers);
    return numbers;
  }

  *all(): Iterable<LaneNumbers> {
    yield* this.#lanes.values();
    yield this.#other;
  }
}

/** Names for one label, the first ones only. */
export class NameTable {
  readonly #names = new Set<string>();

  of(name: string): string {
    if (this.#names.has(name)) return name;
    if (this.#names.size >= MAX_NAMES) return OTHER;
    this.#names.add(name);
    return name;
  }
}

/** The queue's own name; of anything else its lane: an HTTP origin, or `handler:name`. */
function queueOf(lane: string): string {
  return lane.startsWith('queue:') ? lane.slice('queue:'.length) : lane;
}

/** `queue`, `http`, `handler`. */
export function kindOf(lane: string): string {
  const kind = lane.slice(0, Math.max(0, lane.indexOf(':')));
  return kind === 'https' ? 'http' : kind;
}

function numbersOf(queue: string): LaneNumbers {
  return { queue, scheduled: 0, succeeded: 0, failed: 0, exhausted: 0 };
}
