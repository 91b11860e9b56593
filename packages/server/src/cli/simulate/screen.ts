/** What `redrive simulate` prints. */
import type { Simulation } from 'redrive';
import {
  count,
  duration,
  table,
  type Terminal,
  visibleLength,
  wrap,
} from '../terminal/terminal.ts';
import { advise } from './advice.ts';
import {
  chartColumns,
  chartTop,
  drawChart,
  drawOutage,
  drawSparkline,
  glyphs,
  OFF_SCALE,
} from './chart.ts';
import { type Column, columnsOf, columnWidth, heightAfter, heightOf, outcomes } from './columns.ts';
import type { Comparison } from './compare.ts';
import { outcomeWords, percent, policyInWords, waitsInWords, worldInWords } from './words.ts';

const reasonWords: Readonly<Record<string, string>> = {
  EXHAUSTED: 'out of attempts',
  DEADLINE: 'out of time',
  PERMANENT: 'because the policy does not retry that',
  RETRY_AFTER_TOO_LONG: 'asked to wait for too long',
};

export function drawScreen(name: string, comparison: Comparison, terminal: Terminal): string[] {
  const { policy, own } = comparison;
  const { paint, width } = terminal;
  const intro = [
    ['Policy', `${name}: ${policyInWords(policy)}`],
    ['Waits', waitsInWords(policy)],
    ['World', worldInWords(own.world)],
  ].flatMap(([title, text]) =>
    wrap(`${paint('bold', title!.padEnd(7))} ${text}`, width, ' '.repeat(8)),
  );
  return [
    ...intro,
    '',
    ...drawLoad(own, terminal),
    '',
    ...drawSummary(own, terminal),
    '',
    ...drawComparison(comparison, terminal),
    '',
    ...advise(comparison).flatMap((text) => wrap(`${paint('cyan', '→')} ${text}`, width, '  ')),
  ];
}

function drawLoad(own: Simulation, terminal: Terminal): string[] {
  const columnMs = columnWidth(own.endedMs, chartColumns(terminal));
  const columns = columnsOf(own, columnMs, Math.floor(own.endedMs / columnMs) + 1);
  const { capacity, outageStart, outage } = own.world;
  const facts = { columns, columnMs, capacity, outageStart, outageEnd: outageStart + outage };
  const legend = outcomes
    .filter((outcome) => own.outcomes[outcome] > 0)
    .map((outcome) => {
      const { style, glyph } = glyphs[outcome];
      return `${terminal.paint(style, glyph)} ${outcomeWords[outcome]}`;
    });
  legend.push(`${terminal.paint('dim', '┄')} capacity`);
  const highest = Math.max(...columns.map(heightOf));
  if (highest > chartTop(facts))
    legend.push(`${terminal.paint('dim', OFF_SCALE)} up to ${count(highest)}`);
  return [...drawChart(facts, terminal), '', ...wrapLegend(legend, terminal.width)];
}

/** Entries side by side, as many as fit into a line, and none of them broken. */
function wrapLegend(entries: readonly string[], width: number): string[] {
  const lines: string[] = [];
  for (const entry of entries) {
    const longer = lines.length === 0 ? entry : `${lines.at(-1)}   ${entry}`;
    if (lines.length === 0 || visibleLength(longer) > width) lines.push(entry);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

function drawSummary(own: Simulation, { paint, width }: Terminal): string[] {
  const { clients, capacity } = own.world;
  const reasons = Object.entries(own.gaveUp).map(
    ([reason, n]) => `${count(n)} ${reasonWords[reason] ?? reason}`,
  );
  if (own.unfinished > 0)
    reasons.push(`${count(own.unfinished)} not done when the simulation ended`);
  const times = own.peakAfterOutage / capacity;
  const p = own.completionMs;
  const rows: [string, string][] = [
    [
      'Got through',
      `${count(own.succeeded)} of ${count(clients)} clients (${percent(own.succeeded, clients)})`,
    ],
    ['Gave up', reasons.join(', ') || 'nobody'],
    [
      'Attempts',
      `${count(own.attempts)}, of which wasted ${count(own.wasted)} (${percent(own.wasted, own.attempts)})`,
    ],
    [
      'Peak',
      `${count(own.peakAfterOutage)} attempts in a second after the outage (${Math.round(times * 10) / 10} × the capacity)`,
    ],
    ['Recovery', recoveryInWords(own)],
    [
      'Completion',
      p
        ? `p50 ${duration(p.p50)}, p90 ${duration(p.p90)}, p99 ${duration(p.p99)}, max ${duration(p.max)}`
        : 'nobody got through',
    ],
  ];
  return rows.flatMap(([title, text]) =>
    wrap(`${paint('bold', title.padEnd(11))}  ${text}`, width, ' '.repeat(13)),
  );
}

function recoveryInWords({ recoveryMs, overloadedMs }: Simulation): string {
  if (recoveryMs === null) return 'none: no client that had failed got through';
  const overloaded =
    overloadedMs > 0 ? `; overloaded for ${duration(overloadedMs)} of that` : '; never overloaded';
  return `${duration(recoveryMs)} after the outage the last client had its answer${overloaded}`;
}

function drawComparison(comparison: Comparison, terminal: Terminal): string[] {
  const { simulations, policy } = comparison;
  const { paint, width } = terminal;
  const all = [...simulations.values()];
  const rows = [...simulations].map(([jitter, simulation]) => [
    jitter === policy.jitter ? paint('bold', `▸ ${jitter}`) : `  ${jitter}`,
    percent(simulation.succeeded, simulation.world.clients),
    `${count(simulation.peakAfterOutage)}/s`,
    simulation.recoveryMs === null ? '-' : duration(simulation.recoveryMs),
    count(simulation.wasted),
    simulation.completionMs ? duration(simulation.completionMs.p99) : '-',
  ]);
  const titles = ['  jitter', 'through', 'peak', 'recovery', 'wasted', 'p99'];
  const cells = [titles.map((title) => paint('dim', title)), ...rows];
  // A narrow terminal gets the first of the numbers.
  let shown = titles.length;
  let numbers = table(cells, 1);
  while (widest(numbers) > width) {
    shown -= 1;
    numbers = table(
      cells.map((row) => row.slice(0, shown)),
      1,
    );
  }
  // What the numbers leave is for the lines of load, all on one scale.
  const room = Math.min(40, width - widest(numbers) - 2);
  const heading = paint('bold', 'The same policy with each jitter');
  if (room < 8) return [heading, ...numbers];
  const endedMs = Math.max(...all.map((simulation) => simulation.endedMs));
  const columnMs = columnWidth(endedMs, room);
  const length = Math.floor(endedMs / columnMs) + 1;
  const peaks = all.map((simulation) => peaksOf(simulation, columnMs, length));
  const { outageStart, outage } = comparison.own.world;
  const end = outageStart + outage;
  const max = Math.max(...peaks.map((one) => heightAfter(one, columnMs, end))) || Infinity;
  const from = Math.floor(outageStart / columnMs);
  const to = Math.min(length, Math.ceil(end / columnMs));
  const down = to > from ? ' '.repeat(from) + drawOutage(to - from, room - from, paint) : '';
  const heads = [down, ...peaks.map((one) => drawSparkline(one, max, terminal))];
  const padded = table(
    numbers.map((line, i) => [line, heads[i]!]),
    2,
  );
  return [...wrap(`${heading}, and its load over ${duration(endedMs)}`, width), ...padded];
}

/** The fullest second of each column: summed up, a wave in a long column would look like any other load. */
function peaksOf(simulation: Simulation, columnMs: number, length: number): Column[] {
  const parts = Math.max(1, Math.floor(columnMs / 1000));
  const fine = columnsOf(simulation, columnMs / parts, length * parts);
  return Array.from({ length }, (_, i) =>
    fine
      .slice(i * parts, (i + 1) * parts)
      .reduce((peak, column) => (heightOf(column) > heightOf(peak) ? column : peak)),
  );
}

function widest(lines: readonly string[]): number {
  return Math.max(...lines.map(visibleLength));
}
