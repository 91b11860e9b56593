/** What every delay queue checks at its edge: entries, ids, limits and the answers of handlers. */
import { inspect } from 'node:util';
import { EngineError, type TaskFault } from '../errors.ts';
import {
  type DelayAnswer,
  type DelayedEntry,
  type DelayLimits,
  MAX_DELAY_MS,
  MAX_ID_LENGTH,
  MAX_PAYLOAD_BYTES,
} from '../ports/delay-queue.ts';

/** A list with more faults than these is wrong as a whole. */
const MAX_FAULTS = 100;

/** Throws `INVALID_ENTRY` with all faults. Nothing of the list may be stored then. */
export function checkEntries(entries: readonly DelayedEntry[]): void {
  const faults: TaskFault[] = [];
  const list = listOf(entries, 'schedule takes a list of entries');
  for (let i = 0; i < list.length && faults.length < MAX_FAULTS; i++)
    checkEntry(i, faults, list[i]);
  throwFaults('entries to schedule', faults);
}

/** Throws `INVALID_ENTRY` with all faults. */
export function checkIds(ids: readonly string[]): void {
  const faults: TaskFault[] = [];
  const list = listOf(ids, 'cancel takes a list of ids');
  for (let i = 0; i < list.length && faults.length < MAX_FAULTS; i++) {
    checkName(`${i}`, 'An id', list[i], faults);
  }
  throwFaults('ids', faults);
}

export interface FullLimits {
  maxBatch: number;
  concurrency: number;
  timeoutMs: number;
  stopTimeoutMs: number;
}

const MAX_LIMIT = 10_000;
const DAY_MS = 86_400_000;
const DEFAULT_LIMITS: FullLimits = {
  maxBatch: 100,
  concurrency: 4,
  timeoutMs: 600_000,
  stopTimeoutMs: 30_000,
};
const LARGEST: FullLimits = {
  maxBatch: MAX_LIMIT,
  concurrency: MAX_LIMIT,
  timeoutMs: DAY_MS,
  stopTimeoutMs: DAY_MS,
};

/** The limits of a consumer, complete. */
export function readLimits(given: DelayLimits): FullLimits {
  const faults: TaskFault[] = [];
  const limits = { ...DEFAULT_LIMITS };
  for (const name of Object.keys(limits) as (keyof FullLimits)[]) {
    const value: unknown = given[name];
    if (value === undefined) continue;
    const least = name === 'stopTimeoutMs' ? 0 : 1;
    const most = LARGEST[name];
    if (isWhole(value, least, most)) limits[name] = value;
    else faults.push(fault(name, `is ${shown(value)}. Allowed: ${least} to ${most}, whole.`));
  }
  throwFaults('limits of a consumer', faults);
  return limits;
}

/** The answers of a handler, or a sentence that says what is wrong with them. */
export function readAnswers(answers: unknown, count: number): readonly DelayAnswer[] | string {
  if (!Array.isArray(answers)) return `It answered ${shown(answers)} instead of a list of answers.`;
  if (answers.length !== count) {
    return `It gave ${answers.length} answers for ${count} entries. Each entry needs one.`;
  }
  const wrong = answers.findIndex((one) => !isAnswer(one));
  if (wrong === -1) return answers as DelayAnswer[];
  return `Answer ${wrong} is ${shown(answers[wrong])}. Allowed: { type: 'done' }, or { type: 'again', delayMs } with 0 to ${MAX_DELAY_MS} ms, whole.`;
}

function isAnswer(value: unknown): boolean {
  const { type, delayMs } = Object(value) as { type?: unknown; delayMs?: unknown };
  return type === 'done' || (type === 'again' && isWhole(delayMs, 0, MAX_DELAY_MS));
}

function checkEntry(index: number, faults: TaskFault[], entry: unknown): void {
  const { id, delayMs, payload, key } = Object(entry) as Record<string, unknown>;
  checkName(`${index}.id`, 'An id', id, faults);
  if (key !== undefined) checkName(`${index}.key`, 'A key', key, faults);
  if (!isWhole(delayMs, 0, MAX_DELAY_MS)) {
    const text = `is ${shown(delayMs)}. Allowed: 0 to ${MAX_DELAY_MS} ms (366 days), whole.`;
    faults.push(fault(`${index}.delayMs`, text));
  }
  if (!(payload instanceof Uint8Array)) {
    faults.push(
      fault(`${index}.payload`, 'is no Uint8Array. Encode it, with TextEncoder for a text.'),
    );
  } else if (payload.byteLength > MAX_PAYLOAD_BYTES) {
    const text = `has ${payload.byteLength} bytes. Allowed: ${MAX_PAYLOAD_BYTES}. Keep the content in a record, and put its id here.`;
    faults.push(fault(`${index}.payload`, text));
  }
}

/** Ids and keys go to servers of many kinds: what one of them cannot keep is refused by all. */
function checkName(path: string, what: string, value: unknown, faults: TaskFault[]): void {
  if (typeof value !== 'string' || value.length < 1 || value.length > MAX_ID_LENGTH) {
    const is = typeof value === 'string' ? `has ${value.length} characters` : `is ${shown(value)}`;
    faults.push(fault(path, `${is}. ${what} is a text of 1 to ${MAX_ID_LENGTH} characters.`));
  } else if (value.includes('\0') || !value.isWellFormed()) {
    const text = `is ${shown(value)}, which has a NUL or half of a surrogate pair. ${what} must be valid Unicode without NUL.`;
    faults.push(fault(path, text));
  }
}

function isWhole(value: unknown, least: number, most: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most;
}

function listOf(value: unknown, sentence: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new EngineError('INVALID_ENTRY', `${sentence}, not ${shown(value)}.`);
}

function fault(path: string, message: string): TaskFault {
  return { path, code: 'INVALID_ENTRY', message };
}

function throwFaults(what: string, faults: readonly TaskFault[]): void {
  const [first, ...others] = faults;
  if (!first) return;
  const more = others.length > 0 ? ` (and ${others.length} more, in \`faults\`)` : '';
  const message = `The ${what} have faults: ${first.path} ${first.message}${more}`;
  throw new EngineError('INVALID_ENTRY', message, { faults });
}

function shown(value: unknown): string {
  return inspect(value, {
    depth: 1,
    breakLength: Infinity,
    maxStringLength: 80,
    maxArrayLength: 3,
  });
}
