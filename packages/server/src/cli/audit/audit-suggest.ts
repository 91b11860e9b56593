/** A suggested policy beside the present one, both in the simulator. */
import { type CategoryStats, type Simulation, simulateSuggestion, suggestPolicy } from 'redrive';
import { simulationView } from '../../http/views.ts';
import { facts, type Output } from '../terminal/output.ts';
import { safeJson, shown } from '../terminal/safe-text.ts';
import { sparkline } from './audit-stats.ts';
import { percent, policyInWords } from '../simulate/words.ts';
import { count, duration, table } from '../terminal/terminal.ts';

const SPARKS = 32;

export function suggestionOf(stats: CategoryStats) {
  const suggestion = suggestPolicy(stats);
  const { verdict } = suggestion;
  return {
    ...suggestion,
    ...(verdict === 'unknown' ? {} : { simulated: simulateSuggestion(suggestion, stats) }),
  };
}

type Suggested = ReturnType<typeof suggestionOf>;

const words = {
  change: ['yellow', 'a change is suggested'],
  keep: ['green', 'keep it as it is'],
  unknown: ['dim', 'too little is known'],
} as const;

export function suggestionLines(found: Suggested, output: Output): string[] {
  const { category, verdict, present, suggested, changes, reasons, simulated } = found;
  const { paint } = output;
  const [style, sentence] = words[verdict];
  const change = Object.fromEntries(changes.map(({ field, to }) => [field, to]));
  return [
    `${paint('bold', shown(category))}: ${paint(style, sentence)}`,
    ...facts(
      [
        [found.isMeasured ? 'measured' : 'present', policyInWords(present)],
        ['suggested', suggested && policyInWords(suggested)],
        ['change', suggested && safeJson(change)],
        ['why', reasons.map(shown)],
      ],
      output,
    ).map((line) => `  ${line}`),
    ...(suggested && simulated?.suggested
      ? ['', ...comparison(simulated.present, simulated.suggested, output)]
      : []),
  ];
}

function comparison(present: Simulation, suggested: Simulation, { paint }: Output): string[] {
  const rows = (
    [
      ['present', present],
      ['suggested', suggested],
    ] as const
  ).map(([name, one]) => [
    name,
    sparkline(loadOf(one, Math.max(present.endedMs, suggested.endedMs)), SPARKS).padEnd(SPARKS),
    percent(one.succeeded, one.world.clients),
    count(one.attempts),
    count(one.wasted),
    `${count(one.peakAfterOutage)}/s`,
    one.completionMs ? duration(one.completionMs.p99) : '-',
  ]);
  const titles = ['', 'attempts over time', 'through', 'attempts', 'wasted', 'peak', 'p99'];
  const world = `${count(present.world.clients)} clients, an outage of ${duration(present.world.outage)}`;
  return [
    `  In the simulator: ${world}`,
    ...table([titles.map((title) => paint('dim', title)), ...rows], 2).map((line) => `  ${line}`),
  ];
}

/** Both on one axis of time. */
function loadOf({ load, bucketMs }: Simulation, endedMs: number): number[] {
  const columns = Array.from({ length: SPARKS }, () => 0);
  for (const [i, { attempts }] of load.entries()) {
    const column = Math.floor((i * bucketMs * SPARKS) / (endedMs + 1));
    columns[Math.min(column, SPARKS - 1)]! += attempts;
  }
  return columns;
}

/** For programs. */
export function suggestionData(found: Suggested): object {
  const { category, verdict, isMeasured, present, suggested, changes, reasons, simulated } = found;
  const view = (one: Simulation | undefined) => {
    if (!one) return null;
    const { load: _, ...numbers } = simulationView(one);
    return numbers;
  };
  return {
    category,
    verdict,
    is_measured: isMeasured,
    present,
    suggested: suggested ?? null,
    changes,
    reasons,
    simulated: simulated
      ? {
          outage_ms: simulated.present.world.outage,
          present: view(simulated.present),
          suggested: view(simulated.suggested),
        }
      : null,
  };
}
