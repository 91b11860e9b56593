/** The account as a page for people. */
import type { Account, Deviation } from './account.ts';
import type { Counters } from './counters.ts';
import type { Journal } from './journal.ts';

const columns = ['sent', 'neverSent', 'taken', 'inReview', 'deliveries'] as const;

export function pageOf(
  account: Account,
  counters: Counters,
  said: ReadonlyMap<string, number>,
  { troubles }: Journal,
): string {
  const { kinds, deviations, lateMs, faults } = account;
  const byKind = Object.entries(kinds).map(([kind, sums]) => [
    kind,
    ...columns.map((column) => sums[column]),
  ]);
  const byCause = Map.groupBy(deviations, ({ type, cause }) => `${type}\t${cause}`);
  const causes = Array.from(byCause, ([key, all]) => [
    ...key.split('\t'),
    all.length,
    farthest(all),
  ]);
  const startMs = Math.min(...troubles.map(({ fromMs }) => fromMs));
  const made = troubles.map(({ what, fromMs, toMs }) => [
    what,
    `+${fromMs - startMs} ms`,
    `${toMs - fromMs} ms`,
  ]);
  const counted = [...counters]
    .filter(([, value]) => value > 0)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    table(['kind', ...columns], byKind),
    table(['deviation', 'cause', 'count', 'farthest (ms)'], causes),
    table(['the service counted', 'in all'], counted),
    table(['the service said', 'times'], [...said]),
    table(['trouble', 'at', 'for'], made),
    `late (ms): p50 ${quantile(lateMs, 0.5)}, p99 ${quantile(lateMs, 0.99)}, most ${lateMs.at(-1)}`,
    `faults: ${faults.length}`,
    ...faults.slice(0, 20),
  ].join('\n\n');
}

function farthest(all: readonly Deviation[]): number {
  return Math.round(Math.max(...all.map(({ distanceMs }) => distanceMs)));
}

function quantile(sorted: readonly number[], q: number): number | undefined {
  return sorted[Math.floor((sorted.length - 1) * q)];
}

function table(head: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const all = [head, ...rows.map((row) => row.map(String))];
  const widths = head.map((_, i) => Math.max(...all.map((row) => (row[i] ?? '').length)));
  return all
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
