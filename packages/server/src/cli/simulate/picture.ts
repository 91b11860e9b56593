/** The comparison as an SVG: one row of load per jitter, on one scale, with its numbers beside it. */
import type { DefinedPolicy, Simulation } from 'redrive';
import { count, duration } from '../terminal/terminal.ts';
import {
  type Column,
  columnsOf,
  columnWidth,
  heightAfter,
  heightOf,
  outcomes,
  roundUp,
  tickStep,
  timeLabel,
} from './columns.ts';
import type { Comparison, Jitter } from './compare.ts';
import { outcomeWords, percent, policyInWords, worldInWords } from './words.ts';

const WIDTH = 960;
const MARGIN = 28;
const CHART_LEFT = 196;
const CHART_WIDTH = 470;
const CHART_TOP = 152;
const ROW = 78;
const ROW_GAP = 14;
const MAX_COLUMNS = 160;
const NUMBERS = [
  { title: 'through', x: 730, of: (one: Simulation) => percent(one.succeeded, one.world.clients) },
  { title: 'peak', x: 796, of: (one: Simulation) => `${count(one.peakAfterOutage)}/s` },
  { title: 'recovery', x: 866, of: (one: Simulation) => orDash(one.recoveryMs) },
  { title: 'p99', x: 932, of: (one: Simulation) => orDash(one.completionMs?.p99) },
];

const AXIS = 'time since the first call; load in attempts per second';
const NOTE =
  'through: clients that got their answer, p99: how long it took them; after the outage, peak: the most attempts in a second, recovery: until the last answer';

/** A card of its own, so that it can be read on any page, in the reader's light or dark. */
const STYLE = `
  text { font: 12px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; fill: #1f2933 }
  .title { font-size: 19px; font-weight: 650 }
  .name { font-size: 14px; font-weight: 650 }
  .soft { fill: #66727f }
  .small { font-size: 11px }
  .number { font-size: 13px; font-variant-numeric: tabular-nums }
  .bad { fill: #c2410c; font-weight: 650 }
  .cut { paint-order: stroke; stroke: #e3e8ee; stroke-width: 4px; stroke-linejoin: round }
  .end { text-anchor: end }
  .middle { text-anchor: middle }
  .card { fill: #fdfdfc; stroke: #dfe3e8 }
  .row { fill: #f3f5f7 }
  .outage { fill: #dde3ea; fill-opacity: .75 }
  .axis { stroke: #9aa5b1 }
  .capacity { stroke: #1f2933; stroke-dasharray: 4 3; fill: none }
  .served { fill: #0d9488 }
  .timedOut { fill: #7c3aed }
  .overloaded { fill: #f0883e }
  .down { fill: #9aa5b1 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e9ed }
    .soft { fill: #9aa5b1 }
    .bad { fill: #fb923c }
    .card { fill: #12171d; stroke: #2b333d }
    .row { fill: #1a2129 }
    .outage { fill: #2b3541 }
    .cut { stroke: #27303b }
    .axis { stroke: #66727f }
    .capacity { stroke: #e6e9ed }
    .served { fill: #2dd4bf }
    .timedOut { fill: #a78bfa }
    .down { fill: #7d8896 }
  }`;

export function drawPicture(
  comparison: Comparison,
  title = 'The same policy with each jitter',
  bucketMs = 1,
): string {
  const { policy, own, simulations } = comparison;
  const all = [...simulations.values()];
  const endedMs = Math.max(...all.map((one) => one.endedMs));
  const columnMs = Math.max(bucketMs, columnWidth(endedMs, MAX_COLUMNS));
  const length = Math.ceil((1.02 * endedMs) / columnMs) + 1;
  const { outageStart, outage, capacity } = own.world;
  const outageEnd = outageStart + outage;
  const loads = all.map((one) => columnsOf(one, columnMs, length));
  const after = Math.max(...loads.map((load) => heightAfter(load, columnMs, outageEnd)));
  const topPerSecond = roundUp(Math.max((after * 1000) / columnMs, 1.5 * capacity));
  const top = (topPerSecond * columnMs) / 1000;
  const scale = { columnMs, length, top, capacity, outageStart, outageEnd };
  const bottom = CHART_TOP + all.length * (ROW + ROW_GAP) - ROW_GAP;
  const height = bottom + 84;
  const rows = [...simulations].map(([jitter, one], i) =>
    drawRow(jitter, one, loads[i]!, CHART_TOP + i * (ROW + ROW_GAP), policy, scale),
  );
  const text = `${policyInWords(policy, false)}. ${worldInWords(own.world)}.`;
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title desc">`,
    `<title id="title">${escape(title)}</title>`,
    `<desc id="desc">${escape(`${text} ${describe(comparison)}`)}</desc>`,
    `<style>${STYLE}\n</style>`,
    `<rect class="card" x=".5" y=".5" width="${WIDTH - 1}" height="${height - 1}" rx="10"/>`,
    `<text class="title" x="${MARGIN}" y="42">${escape(title)}</text>`,
    `<text class="soft" x="${MARGIN}" y="66">${escape(`${policyInWords(policy, false)}.`)}</text>`,
    `<text class="soft" x="${MARGIN}" y="84">${escape(`${worldInWords(own.world)}.`)}</text>`,
    ...drawLegend(all),
    ...drawHeads(scale),
    ...rows.flat(),
    ...drawTimeAxis(scale, bottom),
    '</svg>',
  ];
  return `${lines.join('\n')}\n`;
}

interface Scale {
  columnMs: number;
  length: number;
  /** The load at the top of a row, per column. */
  top: number;
  capacity: number;
  outageStart: number;
  outageEnd: number;
}

function drawRow(
  jitter: Jitter,
  simulation: Simulation,
  load: readonly Column[],
  y: number,
  policy: DefinedPolicy,
  scale: Scale,
): string[] {
  const floor = y + ROW;
  const from = x(scale, scale.outageStart);
  const to = x(scale, Math.min(scale.outageEnd, scale.length * scale.columnMs));
  const capacityY = round(floor - (ROW * scale.capacity * scale.columnMs) / 1000 / scale.top);
  const lines = [
    `<text class="name" x="${MARGIN}" y="${y + 34}">${jitter}</text>`,
    `<text class="soft small" x="${MARGIN}" y="${y + 51}">${escape(formula(jitter, policy))}</text>`,
    `<rect class="row" x="${CHART_LEFT}" y="${y}" width="${CHART_WIDTH}" height="${ROW}"/>`,
    `<rect class="outage" x="${from}" y="${y}" width="${round(to - from)}" height="${ROW}"/>`,
    ...drawBars(load, floor, scale),
    `<path class="capacity" d="M${CHART_LEFT} ${capacityY}h${CHART_WIDTH}"/>`,
    `<path class="axis" d="M${CHART_LEFT} ${floor}h${CHART_WIDTH}"/>`,
    `<text class="soft small end" x="${CHART_LEFT - 6}" y="${y + 9}">${perSecond(scale.top, scale)}</text>`,
    `<text class="soft small end" x="${CHART_LEFT - 6}" y="${floor}">0</text>`,
    ...offScale(load, y, scale),
  ];
  for (const { title, x: right, of } of NUMBERS) {
    const lost = title === 'through' && simulation.succeeded < 0.99 * simulation.world.clients;
    lines.push(
      `<text class="number end${lost ? ' bad' : ''}" x="${right}" y="${y + 43}">${of(simulation)}</text>`,
    );
  }
  return lines;
}

/** One path per outcome: few elements, and bars that lie exactly on each other. */
function drawBars(load: readonly Column[], floor: number, scale: Scale): string[] {
  const paths = new Map<string, string>();
  load.forEach((column, i) => {
    const left = round(CHART_LEFT + (i * CHART_WIDTH) / scale.length);
    const width = round(CHART_LEFT + ((i + 1) * CHART_WIDTH) / scale.length - left);
    let sum = 0;
    for (const outcome of outcomes) {
      const low = Math.min(1, sum / scale.top);
      sum += column[outcome];
      const high = Math.min(1, sum / scale.top);
      if (high <= low) continue;
      const d = `M${left} ${round(floor - high * ROW)}h${width}V${round(floor - low * ROW)}h${-width}z`;
      paths.set(outcome, (paths.get(outcome) ?? '') + d);
    }
  });
  return [...paths].map(([outcome, d]) => `<path class="${outcome}" d="${d}"/>`);
}

/** Says how high the columns are that the scale cuts off. */
function offScale(load: readonly Column[], y: number, scale: Scale): string[] {
  const highest = Math.max(...load.map(heightOf));
  if (highest <= scale.top) return [];
  const last = load.findLastIndex((column) => heightOf(column) > scale.top);
  const left = round(CHART_LEFT + ((last + 1) * CHART_WIDTH) / scale.length + 5);
  return [
    `<text class="soft small cut" x="${left}" y="${y + 12}">↑ ${perSecond(highest, scale)}</text>`,
  ];
}

function drawLegend(all: readonly Simulation[]): string[] {
  const shown = outcomes.filter((outcome) => all.some((one) => one.outcomes[outcome] > 0));
  let left = MARGIN;
  const lines: string[] = [];
  for (const outcome of shown) {
    lines.push(
      `<rect class="${outcome}" x="${left}" y="101" width="11" height="11" rx="2"/>`,
      `<text x="${left + 17}" y="111">${outcomeWords[outcome]}</text>`,
    );
    left += 42 + outcomeWords[outcome].length * 6.4;
  }
  left = Math.round(left);
  lines.push(
    `<path class="capacity" d="M${left} 107h20"/>`,
    `<text x="${left + 27}" y="111">capacity ${count(all[0]!.world.capacity)}/s</text>`,
  );
  return lines;
}

function drawHeads(scale: Scale): string[] {
  const y = CHART_TOP - 9;
  const middle = x(scale, (scale.outageStart + scale.outageEnd) / 2);
  const heads = NUMBERS.map(
    ({ title, x: right }) => `<text class="soft small end" x="${right}" y="${y}">${title}</text>`,
  );
  heads.push(`<text class="soft small" x="${MARGIN}" y="${y}">jitter of a delay d</text>`);
  if (scale.outageEnd > scale.outageStart) {
    heads.push(`<text class="soft small middle" x="${middle}" y="${y}">service down</text>`);
  }
  return heads;
}

function drawTimeAxis(scale: Scale, y: number): string[] {
  const spanMs = scale.length * scale.columnMs;
  const step = tickStep(spanMs, 8);
  const lines: string[] = [];
  for (let at = 0; at <= spanMs; at += step) {
    const left = x(scale, at);
    lines.push(
      `<path class="axis" d="M${left} ${y}v5"/>`,
      `<text class="soft small middle" x="${left}" y="${y + 19}">${timeLabel(at, step)}</text>`,
    );
  }
  lines.push(
    `<text class="soft small middle" x="${CHART_LEFT + CHART_WIDTH / 2}" y="${y + 37}">${AXIS}</text>`,
    `<text class="soft small" x="${MARGIN}" y="${y + 64}">${NOTE}</text>`,
  );
  return lines;
}

/** For those who cannot see it. */
function describe({ simulations }: Comparison): string {
  return [...simulations]
    .map(
      ([jitter, one]) =>
        `Jitter ${jitter}: ${NUMBERS.map(({ title, of }) => `${title} ${of(one)}`).join(', ')}.`,
    )
    .join(' ');
}

function formula(jitter: Jitter, { jitterRatio, jitterAdd }: DefinedPolicy): string {
  const times = (factor: number) => `${Math.round(factor * 100) / 100} d`;
  return {
    none: 'd',
    up: `d to ${times(1 + jitterRatio)}`,
    around: `${times(1 - jitterRatio)} to ${times(1 + jitterRatio)}`,
    add: `d to d + ${duration(jitterAdd)}`,
    full: '0 to d',
    equal: 'd/2 to d',
    decorrelated: 'base to 3 × the last',
  }[jitter];
}

function x(scale: Scale, atMs: number): number {
  return round(CHART_LEFT + (CHART_WIDTH * atMs) / (scale.length * scale.columnMs));
}

function perSecond(load: number, { columnMs }: Scale): string {
  return `${count(Math.round((load * 1000) / columnMs))}/s`;
}

function orDash(ms: number | null | undefined): string {
  return ms == null ? '–' : duration(ms);
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

function escape(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.codePointAt(0)};`);
}
