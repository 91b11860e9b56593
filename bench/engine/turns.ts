import { loadavg } from 'node:os';
import { median } from '../harness.ts';

/** Everybody has a turn in every round, and each round begins with another one. */
export async function takeTurns<Name extends string, T>(
  names: readonly Name[],
  rounds: number,
  turn: (name: Name, round: number) => Promise<T>,
): Promise<Record<Name, T[]>> {
  const results = Object.fromEntries(names.map((name) => [name, [] as T[]])) as Record<Name, T[]>;
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < names.length; i++) {
      const name = names[(round + i) % names.length] as Name;
      results[name].push(await turn(name, round));
    }
  }
  return results;
}

export interface Figure {
  median: number;
  /** How far a round usually was from the median, as a share of it. One round alone says nothing of it. */
  spread?: number;
}

export function figureOf(values: readonly number[]): Figure {
  const middle = median(values);
  if (values.length < 2) return { median: middle };
  return { median: middle, spread: median(values.map((one) => Math.abs(one - middle))) / middle };
}

/** By name, of those that have one. */
export function spreadOf(figures: readonly (readonly [string, Figure])[]): Record<string, number> {
  return Object.fromEntries(
    figures.flatMap(([name, { spread }]) =>
      spread === undefined ? [] : [[name, spread] as const],
    ),
  );
}

/** How much else was going on, for whoever reads the figures. */
export function noiseNote(): string {
  return `load of this machine when it began: ${loadavg()[0]?.toFixed(1)}`;
}

/** The value below which so large a share of all lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
