/** Load over time as a chart in the terminal. */
import { count, duration, level, type Style, type Terminal } from '../terminal/terminal.ts';
import {
  type Column,
  heightAfter,
  heightOf,
  outcomes,
  roundUp,
  tickStep,
  timeLabel,
} from './columns.ts';

/** Told apart by their shade where there is no colour. */
export const glyphs: Record<(typeof outcomes)[number], { glyph: string; style: Style }> = {
  served: { glyph: '█', style: 'green' },
  timedOut: { glyph: '▚', style: 'magenta' },
  overloaded: { glyph: '▓', style: 'yellow' },
  down: { glyph: '░', style: 'red' },
};

interface ChartFacts {
  columns: readonly Column[];
  columnMs: number;
  capacity: number;
  outageStart: number;
  outageEnd: number;
}

export const OFF_SCALE = '▲';

const LABEL = 7;
/** What stands under the last columns may be a little longer than they are. */
const OVERHANG = 4;

/** How many columns of load fit into a terminal. */
export function chartColumns(terminal: Terminal): number {
  return terminal.width - LABEL - 2 - OVERHANG;
}

export function drawChart(facts: ChartFacts, terminal: Terminal, height = 12): string[] {
  const { columns, columnMs } = facts;
  const { paint } = terminal;
  const capacity = (facts.capacity * columnMs) / 1000;
  const top = chartTop(facts);
  const unit = top / height;
  const capacityRow = Math.floor(capacity / unit);
  const per = columnMs === 1000 ? 'second' : duration(columnMs);
  const lines = [`${' '.repeat(LABEL)} ${paint('dim', `attempts per ${per}`)}`];
  for (let row = height - 1; row >= 0; row--) {
    const label = row === height - 1 ? count(top) : row === height / 2 - 1 ? count(top / 2) : '';
    const cells = columns.map((column) =>
      row === height - 1 && heightOf(column) > top
        ? paint('dim', OFF_SCALE)
        : drawCell(column, row, unit, row === capacityRow, paint),
    );
    lines.push(`${label.padStart(LABEL)} ${paint('dim', label ? '┤' : '│')}${cells.join('')}`);
  }
  lines.push(...drawAxis(facts, paint));
  return lines.map((line) => line.trimEnd());
}

/**
 * The scale is for what the service meets when it is back. The first moments of an outage, when everybody notices,
 * are often many times that, and would press the rest to the ground.
 */
export function chartTop({ columns, columnMs, capacity, outageEnd }: ChartFacts): number {
  const after = heightAfter(columns, columnMs, outageEnd);
  const highest = Math.max(...columns.map(heightOf));
  return roundUp(Math.max(1, Math.min(highest, Math.max(after, (2 * capacity * columnMs) / 1000))));
}

/** One line of blocks, coloured by the worst that happened in each column. */
export function drawSparkline(
  columns: readonly Column[],
  max: number,
  { paint }: Terminal,
): string {
  return columns
    .map((column) => {
      const worst = outcomes.findLast((outcome) => column[outcome] > 0) ?? 'served';
      return paint(glyphs[worst].style, level(heightOf(column), max));
    })
    .join('');
}

function drawCell(
  column: Column,
  row: number,
  unit: number,
  isCapacity: boolean,
  paint: Terminal['paint'],
): string {
  const middle = (row + 0.5) * unit;
  let sum = 0;
  for (const outcome of outcomes) {
    sum += column[outcome];
    if (sum > middle) return paint(glyphs[outcome].style, glyphs[outcome].glyph);
  }
  if (row === 0 && sum > 0) return drawSparkline([column], Infinity, { paint } as Terminal);
  return isCapacity ? paint('dim', '┄') : ' ';
}

function drawAxis(facts: ChartFacts, paint: Terminal['paint']): string[] {
  const { columns, columnMs, outageStart, outageEnd } = facts;
  const marks = Math.max(1, Math.floor(columns.length / 12));
  const step = tickStep(columns.length * columnMs, marks);
  const line = columns.map(() => '─');
  let labels = '';
  for (let at = 0; Math.round(at / columnMs) < columns.length; at += step) {
    const x = Math.round(at / columnMs);
    line[x] = '┬';
    const label = timeLabel(at, step);
    if (x + label.length <= columns.length + OVERHANG) labels = labels.padEnd(x) + label;
  }
  const indent = ' '.repeat(LABEL + 2);
  const axis = `${'0'.padStart(LABEL)} ${paint('dim', `┼${line.join('')}`)}`;
  const lines = [axis, indent + paint('dim', labels)];
  if (outageEnd > outageStart) {
    const from = Math.floor(outageStart / columnMs);
    const to = Math.min(columns.length, Math.ceil(outageEnd / columnMs));
    const room = columns.length - from;
    if (room > 0)
      lines.push(indent + ' '.repeat(from) + drawOutage(to - from, room + OVERHANG, paint));
  }
  return lines;
}

/** Marks so many columns as down, and says so where there is room. */
export function drawOutage(width: number, room: number, paint: Terminal['paint']): string {
  const label = ' down ';
  if (width < label.length + 2) {
    const mark = '▔'.repeat(width);
    return paint('red', width + label.length <= room ? mark + label.trimEnd() : mark);
  }
  const left = Math.floor((width - label.length) / 2);
  return paint(
    'red',
    `└${'─'.repeat(left - 1)}${label}${'─'.repeat(width - left - label.length - 1)}┘`,
  );
}
