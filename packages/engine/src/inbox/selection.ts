/** What operators ask of the inbox, checked at the edge. */
import type { Failure } from 'redrive';
import { didYouMean, nearest } from 'redrive/internal';
import { EngineError, type EngineErrorCode } from '../errors.ts';
import {
  type ActResult,
  actResults,
  type Edit,
  type ItemFilter,
  type ItemState,
} from '../ports/inbox.ts';
import { bytesOf } from '../intake/payload.ts';
import { knownId, destinationOf } from '../intake/submission.ts';
import { type Destination, type Reason, reasons } from '../model/task.ts';

/** Which open items a bulk job takes: a filter, or all of them. An empty filter is refused: it is a slip more often than a wish. */
export type Selection = (Omit<ItemFilter, 'state'> & { all?: never }) | { all: true };

/** How a bulk replay goes about it. */
export interface ReplayOptions {
  /** Who wants it: kept with the items and in the audit trail. */
  by?: string;
  /** So many a second; as fast as they are worked off unless given. */
  perSecond?: number;
  /** Sizes of the first steps, each of which must work before the next begins; `true` is [1, 10, 100]. */
  canary?: boolean | readonly number[];
  /** How long after a broker took over the last of a step nothing may have come back (30 s). */
  observeMs?: number;
  /** Stops when more than so many have come back: 0 with a canary, never without. */
  maxFailures?: number;
  /** Where they go instead: a handler's name, a URL, or a destination. */
  to?: string | Destination;
}

/** What an operator changes in a message. */
export interface Changes {
  /** Bytes as they are, anything else as JSON. */
  payload?: unknown;
  headers?: Readonly<Record<string, string>>;
  to?: string | Destination;
}

const MAX_IDS = 10_000;
const MAX_TEXT = 500;
const MAX_NOTE = 10_000;
const MAX_STEPS = 20;
const MAX_HEADER_BYTES = 32 * 1024;
const states: readonly ItemState[] = ['open', 'replayed', 'resolved', 'discarded', 'erased'];
const classes: readonly Failure['class'][] = ['transient', 'business', 'technical', 'unknown'];
export const filterNames =
  'ids state reason lane fingerprint messageId orderingKey class text fromMs toMs'.split(' ');

/** The filter of a selection, which must say something. */
export function checkedSelection(selection: unknown): ItemFilter {
  const { all, ...filter } = Object(selection) as { all?: unknown } & ItemFilter;
  const checked = checkedFilter(filter);
  const isEmpty = Object.keys(checked).length === 0;
  if (all === true && isEmpty) return {};
  if (all !== undefined) {
    throw refused('INVALID_FILTER', 'all', 'It is `all: true` and nothing else, or a filter.');
  }
  if (isEmpty) {
    throw refused(
      'EMPTY_FILTER',
      '',
      'An empty filter would take the whole inbox. Say `{ all: true }` if that is meant.',
    );
  }
  if (filter.state !== undefined && filter.state !== 'open') {
    throw refused('INVALID_FILTER', 'state', 'Only open items can be acted on.');
  }
  return checked;
}

/** The same filter without what is undefined. */
export function checkedFilter(filter: object): ItemFilter {
  checkNames(filter, filterNames, 'A filter');
  const given = Object.entries(filter).filter(([, value]) => value !== undefined);
  for (const [name, value] of given) {
    if (!isGood(name, value)) throw refused('INVALID_FILTER', name, wanted(name));
  }
  const checked = Object.fromEntries(given) as ItemFilter;
  return checked.messageId === undefined
    ? checked
    : { ...checked, messageId: knownId(checked.messageId) };
}

export function checkedResult(result: unknown): ActResult {
  if (actResults.includes(result as ActResult)) return result as ActResult;
  throw refused('INVALID_FILTER', 'result', `One of ${actResults.join(', ')} is needed.`);
}

function isGood(name: string, value: unknown): boolean {
  switch (name) {
    case 'ids':
      return isIds(value);
    case 'state':
      return states.includes(value as ItemState);
    case 'reason':
      return reasons.includes(value as Reason);
    case 'class':
      return classes.includes(value as Failure['class']);
    case 'fromMs':
    case 'toMs':
      return typeof value === 'number' && Number.isFinite(value);
    case 'messageId':
      return true;
    default:
      return isText(value, MAX_TEXT);
  }
}

function wanted(name: string): string {
  switch (name) {
    case 'ids':
      return `A list of 1 to ${MAX_IDS} ids is needed.`;
    case 'state':
      return `One of ${states.join(', ')} is needed.`;
    case 'reason':
      return `One of ${reasons.join(', ')} is needed.`;
    case 'class':
      return `One of ${classes.join(', ')} is needed.`;
    case 'fromMs':
    case 'toMs':
      return 'Milliseconds since the epoch are needed.';
    default:
      return `A text of 1 to ${MAX_TEXT} characters is needed, without NUL characters.`;
  }
}

/** The options of a bulk replay, with their defaults. */
export function checkedReplay(options: ReplayOptions): {
  canary: readonly number[];
  observeMs: number;
  by?: string;
  perSecond?: number;
  maxFailures?: number;
  to?: Destination;
} {
  checkNames(options, 'by perSecond canary observeMs maxFailures to'.split(' '), 'A replay');
  const { by, perSecond, canary = false, observeMs = 30_000, maxFailures, to } = options;
  const steps = canary === true ? [1, 10, 100] : canary || [];
  if (
    !Array.isArray(steps) ||
    steps.length > MAX_STEPS ||
    !steps.every((size) => isCount(size, 1, 1_000_000))
  ) {
    throw refused('INVALID_FILTER', 'canary', `Up to ${MAX_STEPS} steps of 1 or more are needed.`);
  }
  if (perSecond !== undefined && !isNumber(perSecond, 0, 1_000_000)) {
    throw refused('INVALID_FILTER', 'perSecond', 'A number above 0, up to 1 000 000, is needed.');
  }
  if (!isCount(observeMs, 0, 86_400_000)) {
    throw refused('INVALID_FILTER', 'observeMs', 'Whole ms up to a day are needed.');
  }
  if (maxFailures !== undefined && !isCount(maxFailures, 0, 1_000_000)) {
    throw refused('INVALID_FILTER', 'maxFailures', 'A whole number from 0 on is needed.');
  }
  const most = maxFailures ?? (steps.length > 0 ? 0 : undefined);
  return {
    canary: steps,
    observeMs,
    ...byOf(by),
    ...(perSecond === undefined ? {} : { perSecond }),
    ...(most === undefined ? {} : { maxFailures: most }),
    ...(to === undefined ? {} : { to: destinationOf(to) }),
  };
}

/** An edit, its payload as bytes within the limit. */
export function checkedChanges(
  changes: Changes,
  maxPayloadBytes: number,
  by: string | undefined,
): Edit {
  checkNames(changes, ['payload', 'headers', 'to'], 'An edit');
  const { payload, headers, to } = changes;
  if (headers !== undefined && !isHeaders(headers)) {
    const message = `An object of texts, at most ${MAX_HEADER_BYTES} bytes in all, is needed.`;
    throw refused('INVALID_FILTER', 'headers', message);
  }
  if (payload === undefined && headers === undefined && to === undefined) {
    throw refused('INVALID_FILTER', '', 'An edit changes payload, headers or to.');
  }
  return {
    ...(payload === undefined ? {} : { payload: bytesOf(payload, maxPayloadBytes) }),
    ...(headers === undefined ? {} : { headers: { ...headers } }),
    ...(to === undefined ? {} : { destination: destinationOf(to) }),
    ...byOf(by),
  };
}

export function checkedNote(notes: { note?: string; owner?: string }): {
  note?: string;
  owner?: string;
} {
  checkNames(notes, ['note', 'owner'], 'A note');
  for (const [name, value] of Object.entries(notes)) {
    const isFine = value === undefined || value === '' || isText(value, MAX_NOTE);
    if ((name === 'note' || name === 'owner') && isFine) continue;
    throw refused(
      'INVALID_FILTER',
      name,
      `note and owner are texts of up to ${MAX_NOTE} characters.`,
    );
  }
  return notes;
}

/** A slip in a name must not be ignored in silence. */
export function checkNames(given: object, known: readonly string[], what: string): void {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw refused('INVALID_FILTER', '', `${what} is an object: ${known.join(', ')}.`);
  }
  const code = 'INVALID_FILTER';
  const faults = Object.keys(given)
    .filter((name) => !known.includes(name))
    .map((path) => {
      const message = `${what} has no '${path}'.${didYouMean(nearest(path, known))}`;
      return { path, code, message } as const;
    });
  if (faults.length === 0) return;
  throw new EngineError(code, faults.map(({ message }) => message).join(' '), { faults });
}

/** Options that only say who does it. */
export function checkedBy(options: { by?: string }): { by?: string } {
  checkNames(options, ['by'], 'This action');
  return byOf(options.by);
}

/** Who does it, as a part of something else. */
export function byOf(by: string | undefined): { by?: string } {
  if (by === undefined) return {};
  if (!isText(by, MAX_TEXT)) throw refused('INVALID_FILTER', 'by', wanted('by'));
  return { by };
}

/** The number of an item, a job or a task. */
export function checkedNumber(id: unknown, path = 'id'): number {
  if (isCount(id, 1, Number.MAX_SAFE_INTEGER)) return id;
  throw refused('INVALID_FILTER', path, `${path} has to be a whole number from 1 on.`);
}

/** Where a page begins; 0 is allowed where everything comes after it. */
export function checkedPlace(place: unknown, path: string): number {
  if (isCount(place, 0, Number.MAX_SAFE_INTEGER)) return place;
  throw refused(
    'INVALID_FILTER',
    path,
    `${path} has to be a whole number, as the last page gave it.`,
  );
}

export function checkedText(text: unknown, path: string): string {
  if (isText(text, MAX_TEXT)) return text;
  throw refused('INVALID_FILTER', path, wanted(path));
}

function isIds(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.length <= MAX_IDS &&
    value.every((id) => isCount(id, 1, Number.MAX_SAFE_INTEGER))
  );
}

function isNumber(value: unknown, above: number, most: number): value is number {
  return typeof value === 'number' && value > above && value <= most;
}

function isCount(value: unknown, least: number, most: number): value is number {
  return Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
}

function isText(value: unknown, most: number): value is string {
  return (
    typeof value === 'string' &&
    value !== '' &&
    value.length <= most &&
    !value.includes('\0') &&
    value.isWellFormed()
  );
}

function isHeaders(headers: unknown): boolean {
  return (
    typeof headers === 'object' &&
    headers !== null &&
    !Array.isArray(headers) &&
    [Object.prototype, null].includes(Object.getPrototypeOf(headers) as object | null) &&
    Object.values(headers).every(
      (value) => typeof value === 'string' && isText(`.${value}`, MAX_HEADER_BYTES),
    ) &&
    Buffer.byteLength(JSON.stringify(headers)) <= MAX_HEADER_BYTES
  );
}

function refused(code: EngineErrorCode, path: string, message: string): EngineError {
  return new EngineError(code, message, { faults: [{ path, code, message }] });
}
