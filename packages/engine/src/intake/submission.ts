import { inspect } from 'node:util';
import type { Duration, Policy } from 'redrive';
import { durationMs } from 'redrive/internal';
import { EngineError, type EngineErrorCode } from '../errors.ts';
import { laneNameFault } from '../lanes/lane-name.ts';
import type { Destination, Due, NewTask, TaskContext } from '../model/task.ts';
import { laneOf } from '../model/task.ts';
import { remember } from '../model/remember.ts';
import { cleanData } from '../model/text.ts';
import { uuidOf } from '../model/uuid.ts';
import { unwritable } from './payload.ts';
import { type Check, checkNames } from './submission-faults.ts';

/** How a task is submitted, beside its payload. */
export interface SubmitOptions {
  /** A name from the engine's `policies`, or the fields in which it differs from the lane's. Frozen with the task. */
  policy?: string | Policy;
  /** Executions in all, instead of as many as its policy has. */
  maxAttempts?: number;
  /** Not before: a Date or ms since the epoch. In the past: now. */
  dueAt?: Date | number;
  /** Not before so much time has passed, by the clock of the store: `'1h'`. This or `dueAt`. */
  delay?: Duration;
  /** Not after: past this it goes to the inbox as EXPIRED. */
  expiresAt?: Date | number;
  /** The same key and destination again is the same task, as long as that is remembered. */
  dedupeKey?: string;
  /**
   * What becomes of another payload under a known key: it is refused (`reject`, the default), or left out like any other
   * `duplicate`. For an `id` of one's own the default is `duplicate`.
   */
  onConflict?: 'duplicate' | 'reject';
  /** A UUID of one's own. */
  id?: string;
  /** What goes with it to an HTTP destination or a broker. */
  context?: TaskContext;
  /** Tasks of one lane and one key are delivered one after the other, in the order in which they were stored. */
  orderingKey?: string;
  /** Of an ordered task that lies in the inbox: its followers wait (`block`, the default), or pass it (`release`). */
  onDead?: 'block' | 'release';
}

const optionNames = [
  'policy',
  'maxAttempts',
  'dueAt',
  'delay',
  'expiresAt',
  'dedupeKey',
  'onConflict',
  'id',
  'context',
  'orderingKey',
  'onDead',
] as const satisfies readonly (keyof SubmitOptions)[];

/** Everything that a submission may say. */
export const submissionNames: ReadonlySet<string> = new Set(['to', 'payload', ...optionNames]);

const txNames: ReadonlySet<string> = new Set(['tx']);

/** The options of many at once. */
export function txOf(options: { tx?: unknown }): unknown {
  checkNames(options, txNames, 'The options of submitMany');
  return options.tx;
}

/** One task of many. */
export interface Submission<To = string, Payload = unknown> extends SubmitOptions {
  /** A handler's name, a URL, or a destination. */
  to: To | Destination;
  payload: Payload;
}

const MAX_ADDRESS = 2048;
const MAX_NAME_BYTES = 255;
/** An origin's name may be long, but an index takes only so much. */
const MAX_LANE = 512;
const MAX_KEY = 500;
const MAX_CONTEXT_BYTES = 32 * 1024;
const MAX_AHEAD_MS = 10 * 366 * 86_400_000;

/** The destination that was meant: a URL is HTTP, any other name a handler. */
export function destinationOf(to: unknown): Destination {
  if (typeof to === 'string' && /^https?:/i.test(to)) return httpDestination(to);
  if (typeof to === 'string' && to.includes('://')) {
    throw refused('NO_DESTINATION', 'to', `'${to.slice(0, 60)}' is neither http: nor https:.`);
  }
  if (typeof to === 'string') return { kind: 'handler', address: checkedName(to) };
  const { kind, address } = Object(to) as Partial<Destination>;
  if (
    typeof kind !== 'string' ||
    typeof address !== 'string' ||
    !/^(?!https$|source$)[a-z][a-z0-9_-]{0,31}$/.test(kind)
  ) {
    throw refused(
      'NO_DESTINATION',
      'to',
      'A task needs a destination: a handler, a URL, or { kind, address }.',
    );
  }
  return kind === 'http' ? httpDestination(address) : { kind, address: checkedName(address) };
}

/** The task that a submission asks for. Its id is its own, or that of its key, or a new one. */
export function taskOf(
  destination: Destination,
  payload: Uint8Array,
  options: SubmitOptions,
  made: { id: string; maxAttempts: number; nowMs: number; token: number },
): NewTask {
  const { dedupeKey, orderingKey, context } = options;
  const expiresAtMs = timeOf(options.expiresAt, 'expiresAt', made.nowMs);
  return {
    messageId: idOf(options.id, dedupeKey, destination, made.id),
    destination,
    lane: laneOf(destination),
    payload,
    ...(context ? { context: checkedContext(context) } : {}),
    status: 'pending',
    attempt: 0,
    maxAttempts: made.maxAttempts,
    uncounted: 0,
    delayMs: 0,
    generation: 0,
    ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
    claims: 0,
    arrived: false,
    cancelling: false,
    ...(orderingKey === undefined ? {} : { orderingKey: checkedKey(orderingKey, 'orderingKey') }),
    ...(options.onDead === undefined ? {} : checkedOnDead(options.onDead)),
    // Its line says when it is its turn.
    blocked: orderingKey !== undefined,
    arrival: made.token,
    due: dueOf(options, made.nowMs),
  };
}

/** The parts of `taskOf` that may be at fault, each by itself. */
export function taskChecks(options: SubmitOptions, nowMs: number): Check[] {
  const { id, dedupeKey, orderingKey, onDead, context } = options;
  return [
    () => id !== undefined && checkedId(id),
    () => id === undefined && dedupeKey !== undefined && checkedKey(dedupeKey, 'dedupeKey'),
    () => dueOf(options, nowMs),
    () => timeOf(options.expiresAt, 'expiresAt', nowMs),
    () => context && checkedContext(context),
    () => orderingKey !== undefined && checkedKey(orderingKey, 'orderingKey'),
    () => onDead !== undefined && checkedOnDead(onDead),
    () => conflictRule(options),
  ];
}

/** What an arrival says of a known key with another payload. */
export function conflictRule({
  onConflict,
  id,
  dedupeKey,
}: Pick<SubmitOptions, 'onConflict' | 'id' | 'dedupeKey'>): { onConflict?: 'reject' } {
  if (onConflict !== undefined && onConflict !== 'duplicate' && onConflict !== 'reject') {
    const message = `${shown(onConflict)} is not known here. Write 'duplicate' or 'reject'.`;
    throw refused('INVALID_TASK', 'onConflict', message);
  }
  const usual = id === undefined && dedupeKey !== undefined ? 'reject' : 'duplicate';
  return (onConflict ?? usual) === 'reject' ? { onConflict: 'reject' } : {};
}

function dueOf({ dueAt, delay }: SubmitOptions, nowMs: number): Due {
  if (delay === undefined) {
    const atMs = timeOf(dueAt, 'dueAt', nowMs);
    return atMs === undefined ? { inMs: 0 } : { atMs };
  }
  if (dueAt !== undefined) {
    throw refused('INVALID_TASK', 'delay', 'Give either delay or dueAt, not both.');
  }
  const inMs = Math.ceil(durationMs(delay));
  if (inMs <= MAX_AHEAD_MS) return { inMs };
  const message = Number.isNaN(inMs)
    ? `${shown(delay)} is not a duration. Write ms, or '30s', '5m', '1h'.`
    : `${shown(delay)} is too long. A delay is at most ten years.`;
  throw refused('INVALID_TASK', 'delay', message);
}

const MAX_LIST = 10_000;

/** An id that is given to a new task. */
export function checkedId(id: unknown): string {
  return uuidIn(id, 'is not a UUID. Leave it out, or use dedupeKey for a key of your own.');
}

/** The id of a task that is there already. */
export function knownId(id: unknown): string {
  return uuidIn(id, 'is not the id of a task. Pass the `id` that submit gave you.');
}

function uuidIn(id: unknown, fault: string): string {
  if (typeof id === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)) {
    return id.toLowerCase();
  }
  throw refused('INVALID_ID', 'id', `${shown(id)} ${fault}`);
}

/** A value that is at fault, as its writer knows it. */
function shown(value: unknown): string {
  return typeof value === 'string' ? `'${value.slice(0, 60)}'` : inspect(value).slice(0, 60);
}

const MAX_ATTEMPTS = 1_000_000_000;

export function checkedAttempts(count: number | undefined): number | undefined {
  if (count === undefined) return undefined;
  if (Number.isInteger(count) && count >= 1 && count <= MAX_ATTEMPTS) return count;
  throw refused(
    'INVALID_TASK',
    'maxAttempts',
    `A whole number from 1 to ${MAX_ATTEMPTS} is needed.`,
  );
}

export function checkedLimit(limit: unknown): number {
  if (Number.isInteger(limit) && (limit as number) > 0) return Math.min(limit as number, MAX_LIST);
  throw refused('INVALID_TASK', 'limit', `A whole number from 1 to ${MAX_LIST} is needed.`);
}

export function checkedLane(lane: unknown): string {
  if (typeof lane === 'string' && lane.startsWith('delay-queue:')) {
    const message = `'${lane.slice(0, 60)}' is a delay queue, which cannot be paused. To pause notifications, pause notification:urgent or notification:bulk.`;
    throw refused('INVALID_TASK', 'lane', message);
  }
  const fault = laneNameFault(lane);
  if (fault !== undefined) throw refused('INVALID_TASK', 'lane', fault);
  if (isCleanText(lane as string, MAX_LANE)) return lane as string;
  const message = `The name of a lane has at most ${MAX_LANE} bytes, of well-formed text without \\0.`;
  throw refused('INVALID_TASK', 'lane', message);
}

function isCleanText(text: string, maxBytes: number): boolean {
  return Buffer.byteLength(text) <= maxBytes && !text.includes('\0') && text.isWellFormed();
}

function idOf(
  id: string | undefined,
  key: string | undefined,
  to: Destination,
  fresh: string,
): string {
  if (id !== undefined) {
    return checkedId(id);
  }
  if (key === undefined) return fresh;
  return uuidOf(`${to.kind}:${to.address}`, checkedKey(key, 'dedupeKey'));
}

function httpDestination(address: string): Destination {
  return { kind: 'http', address: checkedUrl(address) };
}

/** As it is written in the end. */
const checkedUrl = remember((address) => {
  const url = address.length > MAX_ADDRESS ? null : URL.parse(address);
  if (!url) {
    throw refused(
      'NO_DESTINATION',
      'to',
      `'${address.slice(0, 100)}' is not a URL of at most ${MAX_ADDRESS} characters.`,
    );
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw refused('NO_DESTINATION', 'to', `${url.protocol} is neither http: nor https:.`);
  }
  if (url.username || url.password) {
    throw refused(
      'NO_DESTINATION',
      'to',
      'A URL must not carry credentials: name a secret in context.secret.',
    );
  }
  // A name in other letters grows.
  if (url.href.length > MAX_ADDRESS || url.origin.length > MAX_LANE) {
    throw refused('NO_DESTINATION', 'to', `The URL has more than ${MAX_ADDRESS} characters.`);
  }
  return url.href;
});

function checkedName(name: string): string {
  if (name === '' || !isCleanText(name, MAX_NAME_BYTES)) {
    throw refused(
      'NO_DESTINATION',
      'to',
      `A name of 1 to ${MAX_NAME_BYTES} bytes is needed, not '${name.slice(0, 60)}'.`,
    );
  }
  return name;
}

export function checkedKey(key: string, path: string): string {
  if (
    typeof key !== 'string' ||
    key === '' ||
    key.length > MAX_KEY ||
    key.includes('\0') ||
    !key.isWellFormed()
  ) {
    throw refused('INVALID_TASK', path, `A text of 1 to ${MAX_KEY} characters is needed.`);
  }
  return key;
}

function checkedOnDead(onDead: unknown): { onDead?: 'release' } {
  if (onDead === 'release') return { onDead };
  if (onDead === 'block') return {};
  const message = `${shown(onDead)} is not known here. Write 'block' or 'release'.`;
  throw refused('INVALID_TASK', 'onDead', message);
}

export function checkedContext(context: TaskContext): TaskContext {
  if (typeof context !== 'object' || Array.isArray(context)) {
    throw refused('INVALID_TASK', 'context', 'A context is an object: headers, method, secret.');
  }
  let json: string;
  let clean: unknown;
  try {
    json = JSON.stringify(context);
    clean = json.length > MAX_CONTEXT_BYTES ? undefined : cleanData(JSON.parse(json));
  } catch (error) {
    throw refused(
      'INVALID_TASK',
      'context',
      `The context cannot be written as JSON: ${unwritable(error)}`,
    );
  }
  if (Buffer.byteLength(json) > MAX_CONTEXT_BYTES) {
    throw refused('INVALID_TASK', 'context', `The context is over ${MAX_CONTEXT_BYTES} bytes.`);
  }
  return clean as TaskContext;
}

export function timeOf(
  time: Date | number | undefined,
  path: string,
  nowMs: number,
): number | undefined {
  if (time === undefined) return undefined;
  // Not whatever can be made a number: null would mean 1970, and expire at once.
  const ms = time instanceof Date ? time.getTime() : time;
  if (typeof ms === 'number' && ms >= 0 && ms <= nowMs + MAX_AHEAD_MS) return Math.floor(ms);
  const isAhead = typeof ms === 'number' && ms > nowMs;
  const hint = path === 'dueAt' ? '; for a wait use `delay`' : '';
  const message = isAhead
    ? `${shown(time)} is too late. A time is at most ten years from now.`
    : `${shown(time)} is no time. Give a Date or ms since the epoch${hint}.`;
  throw refused('INVALID_TASK', path, message);
}

function refused(code: EngineErrorCode, path: string, message: string): EngineError {
  return new EngineError(code, message, { faults: [{ path, code, message }] });
}
