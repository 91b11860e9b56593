/** A simulation's load, cut into as many columns as a picture has. */
import type { Simulation } from 'redrive';

export type Column = Omit<Simulation['load'][number], 'atMs'>;

/** From the bottom of a stack to its top. */
export const outcomes = ['served', 'timedOut', 'overloaded', 'down'] as const;

/** So fine that its buckets can be put together again into any columns. */
export const FINE_BUCKET_MS = 1;

/** A round width in ms such that the time fits into so many columns. */
export function columnWidth(endedMs: number, maxColumns: number): number {
  return roundUp((endedMs + 1) / maxColumns);
}

export function columnsOf(simulation: Simulation, columnMs: number, length: number): Column[] {
  const columns = Array.from({ length }, () => ({
    attempts: 0,
    served: 0,
    down: 0,
    overloaded: 0,
    timedOut: 0,
  }));
  for (const { atMs, ...counts } of simulation.load) {
    const column = columns[Math.floor(atMs / columnMs)];
    if (!column) continue;
    for (const name of ['attempts', ...outcomes] as const) column[name] += counts[name];
  }
  return columns;
}

export function heightOf(column: Column): number {
  return outcomes.reduce((sum, outcome) => sum + column[outcome], 0);
}

/** The most that a column holds from the end of the outage on: what comes before, nobody could have served. */
export function heightAfter(columns: readonly Column[], columnMs: number, fromMs: number): number {
  return Math.max(0, ...columns.slice(Math.ceil(fromMs / columnMs)).map(heightOf));
}

/** Up to a number that reads well: 1, 1.5, 2, 2.5, 3, 4, 5, 6 or 8 times a power of ten. */
export function roundUp(value: number): number {
  if (value <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const factors = power === 1 ? [1, 2, 3, 4, 5, 6, 8, 10] : [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];
  return power * factors.find((factor) => factor * power >= value)!;
}

/** The distance in ms of the marks of a time axis: about so many of them, at round times. */
export function tickStep(spanMs: number, marks: number): number {
  const rough = spanMs / marks;
  return steps.find((step) => step >= rough) ?? roundUp(rough);
}

/** The marks of a time axis, all in the unit that fits their distance. */
export function timeLabel(atMs: number, stepMs: number): string {
  if (atMs === 0) return '0';
  const [unit, unitMs] =
    stepMs >= 86_400_000
      ? ['d', 86_400_000]
      : stepMs >= 3_600_000
        ? ['h', 3_600_000]
        : stepMs >= 60_000
          ? ['min', 60_000]
          : stepMs >= 100
            ? ['s', 1000]
            : ['ms', 1];
  return `${Math.round((atMs / unitMs) * 10) / 10} ${unit}`;
}

const steps = [
  ...[1, 10, 100].flatMap((power) => [power, 2 * power, 5 * power]),
  ...[1, 2, 5, 10, 20, 30].map((seconds) => seconds * 1000),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60_000),
  ...[1, 2, 3, 6, 12, 24, 48, 168].map((hours) => hours * 3_600_000),
];
