/** Whether a service that lives long needs more and more memory. */
import type { Instance } from '../service/storm/instance.ts';

/** Until then a service fills what it keeps anyway: compiled code, connections, what it knows of its lanes. */
const WARM_UP_SHARE = 0.5;
/** So much of the time after that is compared, at its beginning and at its end. */
const WINDOW_SHARE = 0.25;
/** What the garbage collector may leave lying about. */
const SLACK_SHARE = 0.2;
const SLACK_BYTES = 48 * 2 ** 20;
/** In a shorter run everything is warm-up. */
const LEAST_MS = 4 * 60_000;

interface Sample {
  readonly atMs: number;
  readonly bytes: number;
}

export interface Verdict {
  readonly name: string;
  readonly afterWarmUp: number;
  readonly atTheEnd: number;
  readonly most: number;
  /** Undefined: the run was too short to tell. */
  readonly isFlat: boolean | undefined;
}

export class Memory {
  readonly #samples = new Map<string, Sample[]>();

  /** A service that was replaced begins anew. */
  forget(name: string): void {
    this.#samples.delete(name);
  }

  async sample(name: string, service: Instance): Promise<void> {
    try {
      const page = await service.metricsPage();
      const bytes = Number(/^process_resident_memory_bytes (\S+)$/m.exec(page)?.[1]);
      this.add(name, { atMs: performance.now(), bytes });
    } catch {
      // It was just killed.
    }
  }

  add(name: string, sample: Sample): void {
    const samples = this.#samples.get(name) ?? [];
    this.#samples.set(name, samples);
    samples.push(sample);
  }

  get latest(): string {
    return Array.from(
      this.#samples,
      ([name, samples]) => `${name} ${mib(samples.at(-1)!.bytes)}`,
    ).join(', ');
  }

  verdicts(): Verdict[] {
    return Array.from(this.#samples, ([name, samples]) => verdictOn(name, samples));
  }
}

function verdictOn(name: string, samples: readonly Sample[]): Verdict {
  const fromMs = samples[0]!.atMs;
  const lengthMs = samples.at(-1)!.atMs - fromMs;
  const warmMs = fromMs + lengthMs * WARM_UP_SHARE;
  const windowMs = lengthMs * (1 - WARM_UP_SHARE) * WINDOW_SHARE;
  const endMs = fromMs + lengthMs - windowMs;
  const between = (from: number, to: number) =>
    median(samples.filter(({ atMs }) => atMs >= from && atMs <= to).map(({ bytes }) => bytes));
  const afterWarmUp = between(warmMs, warmMs + windowMs);
  const atTheEnd = between(endMs, Infinity);
  const limit = afterWarmUp + Math.max(afterWarmUp * SLACK_SHARE, SLACK_BYTES);
  const most = Math.max(...samples.map(({ bytes }) => bytes));
  const isFlat = lengthMs < LEAST_MS ? undefined : atTheEnd <= limit;
  return { name, afterWarmUp, atTheEnd, most, isFlat };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
}

export function mib(bytes: number): string {
  return `${Math.round(bytes / 2 ** 20)} MiB`;
}
