/** Tasks and items for people: what several commands show of a message. */
import { absolute, type Cell, moment, type Output, relative } from './terminal/output.ts';
import { prettyJson, shown, shownLines } from './terminal/safe-text.ts';
import { cut, duration, type Style } from './terminal/terminal.ts';
import type { AttemptView, DestinationView, ErrorView } from './wire.ts';

/** `queue:orders`, `https://api.example.com/orders`. */
export function destinationText({ kind, address }: DestinationView): string {
  return shown(kind === 'http' ? address : `${kind}:${address}`);
}

const stateStyles: Readonly<Record<string, Style>> = {
  pending: 'cyan',
  retried: 'green',
  done: 'green',
  failed: 'red',
  open: 'red',
  replayed: 'green',
  running: 'cyan',
  freezing: 'cyan',
  finished: 'green',
  stopped: 'red',
  paused: 'yellow',
  probing: 'yellow',
  closed: 'green',
  NO_HANDLER: 'yellow',
};

export function stateCell(state: string): Cell {
  const text = shown(state);
  const style = stateStyles[state];
  return style === undefined ? text : { text, style };
}

/** `HTTP_503 transient: the answer was empty`. */
export function errorText(error: ErrorView | null | undefined): string {
  if (!error) return '';
  const { class: kind, code, message } = error;
  const head = [code, kind].filter((part) => part != null && part !== '').join(' ');
  const isMore = message != null && message !== '' && message !== code;
  return shown(isMore ? `${head}: ${message}` : head);
}

/** The payload as it may be shown, and what it is. */
export function payloadLines(
  message: { payload?: unknown; payload_base64?: string },
  maxLines = Infinity,
): string[] {
  const lines = linesOfPayload(message);
  if (lines.length <= maxLines) return lines;
  return [
    ...lines.slice(0, maxLines),
    `... ${lines.length - maxLines} more lines: --full shows all`,
  ];
}

/** The executions that failed, oldest first, in one line each and the answer below. */
export function attemptLines(
  attempts: readonly AttemptView[] | undefined,
  nowMs: number,
  output: Output,
): string[] {
  return (attempts ?? []).flatMap(({ at, attempt, generation, duration_ms: ms, error, answer }) => {
    const replay = generation > 0 ? ` of replay ${generation}` : '';
    const text = `attempt ${attempt}${replay} failed after ${duration(ms)}: ${errorText(error)}`;
    const line = timelineLine(at, text, 'red', nowMs, output);
    if (answer == null || answer === '') return [line];
    const room = output.tableWidth - INDENT.length;
    return [
      line,
      ...shownLines(answer)
        .slice(0, MAX_ANSWER)
        .map((one) => INDENT + output.paint('dim', cut(one, room))),
    ];
  });
}

/** One thing that happened, or will. */
export function timelineLine(
  at: string,
  text: string,
  style: Style,
  nowMs: number,
  { paint, tableWidth }: Output,
): string {
  const when = `${absolute(at)}  ${relative(at, nowMs).padEnd(12)}`;
  return `${paint('dim', when)}  ${paint(style, '●')} ${cut(text, Math.max(20, tableWidth - when.length - 4))}`;
}

/** A time that may be absent. */
export function momentOf(at: string | null | undefined, nowMs: number): string | undefined {
  return at == null ? undefined : moment(at, nowMs);
}

/** A text of somebody else that may be absent. */
export function textOf(text: string | null | undefined): string | undefined {
  return text == null || text === '' ? undefined : shown(text);
}

export function headerLines(
  headers: Readonly<Record<string, string>> | undefined,
): string[] | undefined {
  const lines = Object.entries(headers ?? {}).map(([name, value]) => shown(`${name}: ${value}`));
  return lines.length > 0 ? lines : undefined;
}

const INDENT = ' '.repeat(38);
const MAX_ANSWER = 5;
const HEX_BYTES = 256;

function linesOfPayload({
  payload,
  payload_base64: base64,
}: {
  payload?: unknown;
  payload_base64?: string;
}): string[] {
  if (base64 === undefined) return prettyJson(payload ?? null);
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.length === 0) return ['(empty)'];
  try {
    return shownLines(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    // Not a text: the first bytes, as they are.
    const hex =
      bytes
        .subarray(0, HEX_BYTES)
        .toString('hex')
        .match(/.{1,32}/g) ?? [];
    const rows = hex.map((row) => row.replace(/(..)(?=.)/g, '$1 '));
    return [`${bytes.length} bytes`, ...rows, ...(bytes.length > HEX_BYTES ? ['...'] : [])];
  }
}
