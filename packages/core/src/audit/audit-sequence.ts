/** Numbers that are missing in one run of one instance. */
export interface AuditGap {
  instance: string;
  run: number;
  /** The first number that is missing, and the last. */
  from: number;
  to: number;
}

const MAX_STREAMS = 10_000;
const MAX_OPEN = 1000;

interface Stream {
  last: number;
  open: AuditGap[];
}

/** Follows the numbers of every instance, in whatever order they come. A trail may begin anywhere: its start was pruned. */
export class Sequences {
  readonly #streams = new Map<string, Stream>();
  readonly #maxGaps: number;
  readonly #gaps: AuditGap[] = [];
  #missing = 0;
  twins = 0;

  constructor(maxGaps: number) {
    this.#maxGaps = maxGaps;
  }

  see(instance: string, run: number, sequence: number): void {
    const key = `${run} ${instance}`;
    const stream = this.#streams.get(key);
    if (!stream) {
      this.#makeRoom();
      this.#streams.set(key, { last: sequence, open: [] });
    } else if (sequence > stream.last) {
      if (sequence > stream.last + 1) {
        stream.open.push({ instance, run, from: stream.last + 1, to: sequence - 1 });
        if (stream.open.length > MAX_OPEN) this.#close(stream.open.shift()!);
      }
      stream.last = sequence;
    } else this.#fill(stream, sequence);
  }

  /** What is missing in the end: how many, and the first gaps. */
  end(): { missing: number; gaps: AuditGap[] } {
    for (const { open } of this.#streams.values()) for (const gap of open) this.#close(gap);
    this.#streams.clear();
    return { missing: this.#missing, gaps: this.#gaps };
  }

  /** It came later than its followers, or twice. */
  #fill(stream: Stream, sequence: number): void {
    const index = stream.open.findIndex(({ from, to }) => from <= sequence && sequence <= to);
    const gap = stream.open[index];
    if (!gap) {
      this.twins += 1;
      return;
    }
    const parts = [
      { ...gap, to: sequence - 1 },
      { ...gap, from: sequence + 1 },
    ];
    stream.open.splice(index, 1, ...parts.filter(({ from, to }) => from <= to));
  }

  #makeRoom(): void {
    if (this.#streams.size < MAX_STREAMS) return;
    for (const [oldest, { open }] of this.#streams) {
      for (const gap of open) this.#close(gap);
      this.#streams.delete(oldest);
      return;
    }
  }

  #close(gap: AuditGap): void {
    this.#missing += gap.to - gap.from + 1;
    if (this.#gaps.length < this.#maxGaps) this.#gaps.push(gap);
  }
}
