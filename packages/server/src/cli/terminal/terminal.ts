/** Drawing in a terminal: colours only where they are wanted, and words for numbers. */
import { stripVTControlCharacters } from 'node:util';

export interface Terminal {
  /** Columns to draw in. */
  readonly width: number;
  /** A person is looking, so that lines may be redrawn. */
  readonly live: boolean;
  readonly paint: (style: Style, text: string) => string;
}

export type Style = keyof typeof styles;

const styles = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, magenta: 35, cyan: 36 };

const MIN_WIDTH = 40;
const MAX_WIDTH = 100;
const USUAL_WIDTH = 80;

/** Colours on a terminal, unless NO_COLOR is set; FORCE_COLOR gives them to a pipe too. */
export function terminalOf(
  stream: { isTTY?: boolean; columns?: number },
  env: Readonly<Record<string, string | undefined>>,
): Terminal {
  const columns = stream.columns ?? USUAL_WIDTH;
  const screen = stream.isTTY === true && env['TERM'] !== 'dumb';
  const forced = env['FORCE_COLOR'] !== undefined && env['FORCE_COLOR'] !== '0';
  const colours = !env['NO_COLOR'] && (screen || forced);
  return {
    width: Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, columns)),
    // A line that the terminal breaks in two cannot be drawn again.
    live: screen && columns >= MIN_WIDTH,
    paint: (style, text) => (colours && text ? `\u001B[${styles[style]}m${text}\u001B[0m` : text),
  };
}

const eighths = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
const levels = '▁▂▃▄▅▆▇█';

/** A bar that fills `share` (0 to 1) of a width, to an eighth of a column. */
export function bar(share: number, width: number): string {
  const filled = Math.round(Math.min(1, Math.max(0, share)) * width * 8);
  return '█'.repeat(Math.floor(filled / 8)) + eighths[filled % 8];
}

/** One character for one value: blank for nothing, else at least the lowest block. */
export function level(value: number, max: number): string {
  if (value <= 0) return ' ';
  return levels[Math.min(7, Math.max(0, Math.ceil((value / max) * 8) - 1))]!;
}

/** A table whose columns are as wide as they need to be; all but the first `left` of them are right-aligned. */
export function table(rows: readonly (readonly string[])[], left: number, gap = '  '): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, i) => (widths[i] = Math.max(widths[i] ?? 0, visibleLength(cell))));
  }
  return rows.map((row) =>
    row
      .map((cell, i) => pad(cell, widths[i]!, i < left))
      .join(gap)
      .trimEnd(),
  );
}

/** Breaks a sentence into lines that fit, all but the first indented. A number keeps its unit. */
export function wrap(text: string, width: number, indent = ''): string[] {
  const lines: string[] = [];
  let line: string | undefined;
  for (const word of text.split(/ (?!(?:ms|s|min|h|d|%)\b)/)) {
    const longer: string = line === undefined ? word : `${line} ${word}`;
    if (line !== undefined && visibleLength(longer) > width) {
      lines.push(line);
      line = indent + word;
    } else line = longer;
  }
  return [...lines, line!];
}

/** Columns that a text takes. */
export function visibleLength(text: string): number {
  let columns = 0;
  for (const character of stripVTControlCharacters(text)) columns += widthOf(character);
  return columns;
}

/** The text without colours, in so many columns: the last of them says that there is more. */
export function cut(text: string, width: number): string {
  if (visibleLength(text) <= width) return text;
  let columns = 0;
  let kept = '';
  for (const character of text) {
    columns += widthOf(character);
    if (columns > width - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

/** `613 ms`, `1.4 s`, `2 min`. */
export function duration(ms: number): string {
  // What would be rounded up to 60 s is a minute: half a step of the smaller unit is left to it.
  const units = [
    ['d', 86_400_000, 180_000],
    ['h', 3_600_000, 3000],
    ['min', 60_000, 50],
    ['s', 1000, 0.5],
  ] as const;
  for (const [unit, unitMs, halfStepMs] of units) {
    if (ms >= unitMs - halfStepMs) return `${Math.round((ms / unitMs) * 10) / 10} ${unit}`;
  }
  return `${Math.round(ms)} ms`;
}

/** `12,400`. */
export function count(number: number): string {
  return number.toLocaleString('en-US');
}

/** As terminals have it: East Asian letters and most emoji take two columns, marks on other letters none. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
const MARK = /[\p{Mn}\p{Me}\u200c\u200d]/u;

function widthOf(character: string): number {
  if (character < '\u0300') return 1;
  return MARK.test(character) ? 0 : WIDE.test(character) ? 2 : 1;
}

function pad(cell: string, width: number, left: boolean): string {
  const blank = ' '.repeat(width - visibleLength(cell));
  return left ? cell + blank : blank + cell;
}
