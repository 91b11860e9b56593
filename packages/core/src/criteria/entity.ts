/** Reading an entity of which nothing is certain. */
import { type CriterionConfig, type CriterionSettings, layerConfig } from './config.ts';
import type { CriterionError, CriterionWarning } from './result.ts';
import { hasZone, parseIsoTime } from './time.ts';

const MAX_MESSAGE_LENGTH = 200;

/** The entity as it came: nothing in it is trusted. `null` is the same as missing. */
export interface RetryDelayInput {
  /** ISO-8601 with date, time and zone, or a `Date`. Without a zone it is read as UTC, with a warning. */
  readonly lastAttemptTime?: unknown;
  /** The same; where it is missing, the clock. */
  readonly currentTime?: unknown;
  /** A whole number, 0 or more. */
  readonly retryDelaySeconds?: unknown;
  /** The attempt that just failed: a whole number, 1 or more. */
  readonly attemptCount?: unknown;
  readonly exponentialBackoff?: unknown;
  readonly backoffMultiplier?: unknown;
  readonly maxDelaySeconds?: unknown;
  readonly jitterEnabled?: unknown;
  /** Jitter belongs to the entity: `entityId`, else `id`, a text or a number. */
  readonly entityId?: unknown;
  readonly id?: unknown;
  /** Chooses a named set of the configuration. */
  readonly operationType?: unknown;
}

/** What an evaluation is handed besides the entity and the settings. */
export interface CriterionOptions {
  /** Wall time, for an entity without `currentTime`. By default the system's. */
  readonly nowMs?: (() => number) | undefined;
  /** `responseTimeoutMs` is watched only where this clock is given. */
  readonly monotonicMs?: (() => number) | undefined;
  /** A number in [0, 1), the same for the same arguments. */
  readonly random?: ((key: string, attempt: number) => number) | undefined;
  /** One per deployment, so that all instances give the same answer. 0 by default. */
  readonly seed?: number | undefined;
  /** The jitter's key. It outranks the entity's own id. */
  readonly key?: string | undefined;
  /** Chooses a named set of the settings where the entity's `operationType` names none. */
  readonly context?: string | undefined;
}

/** Reading a field of a text or a number gives undefined, so only null and undefined need care. */
export function fieldsOf(entity: unknown): Readonly<Record<string, unknown>> {
  return (entity ?? {}) as Readonly<Record<string, unknown>>;
}

/** The epoch ms of the last attempt, or why there is none. */
export function lastAttemptOf(
  entity: unknown,
  warnings: CriterionWarning[],
): number | CriterionError {
  const { lastAttemptTime } = fieldsOf(entity) as RetryDelayInput;
  if (isMissing(lastAttemptTime)) {
    return { code: 'DATA_UNAVAILABLE', message: missing('lastAttemptTime', entity) };
  }
  const lastMs = timeOf('lastAttemptTime', lastAttemptTime, warnings);
  return Number.isNaN(lastMs)
    ? { code: 'INVALID_TIME', message: notATime('lastAttemptTime', lastAttemptTime) }
    : lastMs;
}

/** The configuration that an entity or the request's context chooses. */
export function configFor(
  input: RetryDelayInput,
  settings: CriterionSettings,
  { context }: CriterionOptions,
): Readonly<CriterionConfig> {
  return layerConfig(settings, { operationType: input.operationType, context });
}

export function isMissing(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

/** That a field is missing, and why where the entity itself is none. */
export function missing(field: string, entity: unknown): string {
  if (isMissing(entity)) return `${field} is missing: there is no entity`;
  const isObject = typeof entity === 'object' && !Array.isArray(entity);
  const found = typeof entity === 'object' ? 'a list' : shown(entity);
  return `${field} is missing${isObject ? '' : `: the entity is ${found}, not an object`}`;
}

/** The epoch ms, NaN for what is no time. */
export function timeOf(field: string, value: unknown, warnings: CriterionWarning[]): number {
  if (typeof value === 'string') {
    const ms = parseIsoTime(value);
    if (!Number.isNaN(ms) && !hasZone(value)) {
      warnings.push({
        code: 'ZONE_MISSING',
        message: `${field} names no zone and is read as UTC`,
      });
    }
    return ms;
  }
  // Not the value's own `getTime`, which a subclass may have replaced.
  return value instanceof Date ? Date.prototype.getTime.call(value) : Number.NaN;
}

export function notATime(field: string, value: unknown): string {
  return `${field} must be an ISO-8601 date and time such as 2025-06-01T12:00:00Z, not ${shown(value)}`;
}

export function defaultUsed(message: string): CriterionWarning {
  return { code: 'DEFAULT_USED', message };
}

/** A text that can only be a number or a time. It gives away nothing, and obeys no terminal. */
const HARMLESS = /^[-+\d.,:TZ ]{1,40}$/;

/** A value for a message. Texts may be hostile or secret, and stay out of the log: only their length is told. */
export function shown(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) {
    return String(value);
  }
  if (typeof value !== 'string') return `a value of type ${typeof value}`;
  return HARMLESS.test(value) ? `the text "${value}"` : `a text of length ${value.length}`;
}

/** What was thrown may itself be hostile: a message that throws when read. */
export function messageOf(error: unknown): string {
  try {
    return error instanceof Error
      ? `${error.message}`.slice(0, MAX_MESSAGE_LENGTH)
      : `a value of type ${typeof error} was thrown`;
  } catch {
    return 'the error cannot be read';
  }
}
