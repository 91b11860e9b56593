import { type Style, terminalOf } from '../../cli/terminal/terminal.ts';
import type { LogOutput } from './log.ts';

/** Takes the log's JSON lines and writes them for people. Colours only where somebody looks. */
export function prettyLines(
  to: LogOutput,
  env: Readonly<Record<string, string | undefined>>,
): { write(line: string): void } {
  const { paint } = terminalOf(to, env);
  return {
    write(line) {
      const record = parse(line);
      to.write(record ? `${prettyRecord(record, paint)}\n` : line);
    },
  };
}

type Paint = (style: Style, text: string) => string;
type LogRecord = Record<string, unknown>;

/** Shown by their place, or the same in every line. */
const known = new Set(['time', 'level', 'msg', 'service', 'instance', 'err']);
const MAX_STACK_LINES = 8;

const levelStyles: Record<string, Style> = {
  trace: 'dim',
  debug: 'dim',
  info: 'green',
  warn: 'yellow',
  error: 'red',
  fatal: 'red',
};

function prettyRecord(record: LogRecord, paint: Paint): string {
  const level = textOf(record['level']);
  const time = textOf(record['time']).slice(11, 23);
  const error = record['err'] as LogRecord | undefined;
  const fields = Object.entries(record)
    .filter(([name]) => !known.has(name))
    .map(([name, value]) => `${paint('dim', `${printable(name)}=`)}${shown(value)}`);
  const first = [
    paint('dim', time),
    paint(levelStyles[level] ?? 'bold', level.toUpperCase().padEnd(5)),
    printable(textOf(record['msg'])) + whyOf(error),
    ...fields,
  ].join(' ');
  return [first, ...stackOf(error, level).map((one) => paint('dim', one))].join('\n');
}

function whyOf(error: LogRecord | undefined): string {
  if (!error) return '';
  const code = error['code'] === undefined ? '' : ` (${printable(textOf(error['code']))})`;
  return `: ${printable(textOf(error['message'] ?? error))}${code}`;
}

/** Of what has a code the stack says nothing more. */
function stackOf(error: LogRecord | undefined, level: string): string[] {
  if (!error || error['code'] !== undefined || (level !== 'error' && level !== 'fatal')) return [];
  const lines = textOf(error['stack'] ?? '').split('\n');
  return lines
    .filter((line) => line.trimStart().startsWith('at '))
    .slice(0, MAX_STACK_LINES)
    .map((line) => `    ${printable(line.trim())}`);
}

function shown(value: unknown): string {
  const text = textOf(value);
  return /^[\w./:@<>*-]+$/.test(text) ? text : printable(JSON.stringify(text));
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

/** What comes from outside must not move the cursor or change colours. */
function printable(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u001F\u007F-\u009F]/g, ' ');
}

function parse(line: string): LogRecord | undefined {
  try {
    return JSON.parse(line) as LogRecord;
  } catch {
    return undefined;
  }
}
