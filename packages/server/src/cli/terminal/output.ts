/** What commands write: words and tables for people, JSON for programs. */
import type { Io } from '../command.ts';
import { safeJson } from './safe-text.ts';
import { cut, duration, type Style, type Terminal, terminalOf, visibleLength } from './terminal.ts';

export interface Output extends Terminal {
  /** Columns that a table may take; without end where nobody looks, so that nothing is cut off for a program. */
  readonly tableWidth: number;
  /** Lines for people; with `--json` nothing. Made safe by whoever makes them. */
  say(...lines: string[]): void;
  /** A line for programs; without `--json` nothing. */
  data(value: unknown): void;
}

export function outputOf(io: Io, json: boolean): Output {
  const terminal = terminalOf({ isTTY: io.isTty, columns: io.columns }, io.env);
  return {
    ...terminal,
    live: terminal.live && !json,
    tableWidth: io.isTty ? Math.max(MIN_WIDTH, io.columns) : Infinity,
    say(...lines) {
      if (!json) io.out(lines.map((line) => `${line}\n`).join(''));
    },
    data(value) {
      if (json) io.out(`${safeJson(value)}\n`);
    },
  };
}

export interface Column {
  title: string;
  /** Numbers stand on the right. */
  right?: true;
  /** It may be cut, down to so many columns. */
  least?: number;
  /** Rather than to cut it below this, what is optional is left out. */
  good?: number;
  /** It may be left out where there is no room, the last of these first. */
  optional?: true;
}

/** Cut first and coloured then. */
export type Cell = string | { text: string; style: Style };

const MIN_WIDTH = 40;
const GAP = 2;

/**
 * A table that fits. The widest of what may be cut is cut first, as long as it is good to read; then what is optional is
 * left out, and then all is cut as far as it may be.
 */
export function grid(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  { tableWidth, paint }: Output,
): string[] {
  let shown = [...columns.keys()].filter((i) => columns[i]!.optional !== true || hasAny(rows, i));
  let widths = fit(columns, rows, shown, tableWidth, 'good');
  while (widths === undefined) {
    const last = shown.findLast((i) => columns[i]!.optional === true);
    if (last === undefined) break;
    shown = shown.filter((i) => i !== last);
    widths = fit(columns, rows, shown, tableWidth, 'good');
  }
  while ((widths ??= fit(columns, rows, shown, tableWidth, 'least')) === undefined) {
    shown.pop();
    if (shown.length === 1) widths = fit(columns, rows, shown, Infinity, 'least');
  }
  const fitted = widths;
  const line = (cells: readonly Cell[]): string =>
    shown
      .map((i, place) => {
        const { text, style } = partsOf(cells[i] ?? '');
        const kept = cut(text, fitted[place]!);
        const blank = ' '.repeat(fitted[place]! - visibleLength(kept));
        const drawn = style === undefined ? kept : paint(style, kept);
        return columns[i]!.right === true ? blank + drawn : drawn + blank;
      })
      .join(' '.repeat(GAP))
      .trimEnd();
  const titles = columns.map(({ title }) => ({ text: title, style: 'dim' as const }));
  return [titles, ...rows].map(line);
}

/** Names and what they are, one line each, the values in one column. */
export function facts(
  pairs: readonly (readonly [string, Cell | readonly string[] | undefined])[],
  { paint }: Output,
): string[] {
  const given = pairs.filter((pair) => pair[1] !== undefined);
  const width = Math.max(0, ...given.map(([name]) => name.length));
  return given.flatMap(([name, value]) => {
    const [first, ...more] = Array.isArray(value)
      ? (value as string[])
      : [painted(value as Cell, paint)];
    return [
      `${paint('dim', name.padEnd(width))}  ${first ?? ''}`,
      ...more.map((line) => `${' '.repeat(width)}  ${line}`),
    ];
  });
}

/** `in 12 s`, `3 min ago`. */
export function relative(at: string | number, nowMs: number): string {
  const ms = (typeof at === 'number' ? at : Date.parse(at)) - nowMs;
  if (Number.isNaN(ms)) return '';
  if (Math.abs(ms) < 1000) return 'now';
  return ms > 0 ? `in ${duration(ms)}` : `${duration(-ms)} ago`;
}

/** `2026-03-01 12:30:05Z`. */
export function absolute(at: string | number): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return '';
  return time
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z$/, 'Z');
}

/** Both: what one wants to know, and what one can look up in a log. */
export function moment(at: string | number, nowMs: number): string {
  return `${relative(at, nowMs)} (${absolute(at)})`;
}

/** `1 task`, `1,200 tasks`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`;
}

function fit(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  shown: readonly number[],
  room: number,
  limit: 'good' | 'least',
): number[] | undefined {
  const widths = shown.map((i) =>
    rows.reduce(
      (width, row) => Math.max(width, visibleLength(partsOf(row[i] ?? '').text)),
      visibleLength(columns[i]!.title),
    ),
  );
  let over = widths.reduce((sum, width) => sum + width + GAP, -GAP) - room;
  while (over > 0) {
    // The widest first, down to the next one at a time: it is a handful of columns.
    let widest = -1;
    for (const [place, i] of shown.entries()) {
      const { least, [limit]: lowest = least } = columns[i]!;
      if (least === undefined || widths[place]! <= lowest!) continue;
      if (widest === -1 || widths[place]! > widths[widest]!) widest = place;
    }
    if (widest === -1) return undefined;
    widths[widest]! -= 1;
    over -= 1;
  }
  return widths;
}

function hasAny(rows: readonly (readonly Cell[])[], i: number): boolean {
  return rows.some((row) => partsOf(row[i] ?? '').text !== '');
}

function partsOf(cell: Cell): { text: string; style?: Style } {
  return typeof cell === 'string' ? { text: cell } : cell;
}

function painted(cell: Cell, paint: Terminal['paint']): string {
  return typeof cell === 'string' ? cell : paint(cell.style, cell.text);
}
