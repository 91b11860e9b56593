import { criterionDefaults, criterionRules } from './criteria-config.ts';
import type { CriterionConfig } from './criteria-config.ts';
import { unitRandom } from './random.ts';

/** The entity as it came: nothing in it is trusted. `null` is the same as missing. */
export interface RetryDelayInput {
  /** ISO-8601 with date, time and zone, or a `Date`. Without a zone it is read as UTC, with a warning. */
  readonly lastAttemptTime?: unknown;
  /** The same; where it is missing, the clock. */
  readonly currentTime?: unknown;
  readonly retryDelaySeconds?: unknown;
  /** The attempt that just failed, 1 or more. */
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

export interface CriterionPorts {
  /** Wall time, for an entity without `currentTime`. By default the system's. */
  readonly nowMs?: () => number;
  /** Only where it is given is `responseTimeoutMs` watched. */
  readonly monotonicMs?: () => number;
  /** A number in [0, 1), the same for the same arguments. */
  readonly random?: (key: string, attempt: number) => number;
  /** One per deployment, so that all instances give the same answer. 0 by default. */
  readonly seed?: number;
}

export type CriterionError =
  | 'DATA_UNAVAILABLE'
  | 'INVALID_TIME'
  | 'CALCULATION_ERROR'
  | 'OVERFLOW_ERROR'
  | 'EVALUATION_TIMEOUT';

export interface Delay {
  kind: 'delay';
  delayMs: number;
  /** What of it is not jitter. */
  unjitteredMs: number;
  /** Whether the cap cut it. */
  capped: boolean;
  exponential: boolean;
}

interface DelayError {
  kind: 'error';
  code: CriterionError;
  message: string;
}

/** What an entity must wait, in whole ms: exponential backoff is capped, then comes the jitter. */
export function retryDelay(
  input: RetryDelayInput,
  config: CriterionConfig,
  ports: CriterionPorts,
  lastMs: number,
  warnings: string[],
): Delay | DelayError {
  const seconds = choose(
    input.retryDelaySeconds,
    'retryDelaySeconds',
    'defaultRetryDelaySeconds',
    config,
    warnings,
  );
  if (isMissing(input.retryDelaySeconds)) {
    warnings.push(`DEFAULT_USED: retryDelaySeconds is missing; ${seconds} is used`);
  }
  const exponential = choose(
    input.exponentialBackoff,
    'exponentialBackoff',
    'enableExponentialBackoff',
    config,
    warnings,
  );
  const attempt = attemptOf(input.attemptCount, warnings);
  let unjitteredMs = seconds * 1000;
  let capped = false;
  if (exponential) {
    const multiplier = choose(
      input.backoffMultiplier,
      'backoffMultiplier',
      'defaultBackoffMultiplier',
      config,
      warnings,
    );
    // An unusable default leaves the backoff without a cap: 3600 would be a number that nobody chose.
    const capMs =
      choose(
        input.maxDelaySeconds,
        'maxDelaySeconds',
        'defaultMaxDelaySeconds',
        config,
        warnings,
        Infinity,
      ) * 1000;
    // Zero delay means now, and zero times an overflow would not be a number.
    const rawMs = seconds === 0 ? 0 : unjitteredMs * multiplier ** (attempt - 1);
    capped = rawMs > capMs;
    if (rawMs === Infinity) {
      if (!capped) return delayError('OVERFLOW_ERROR', `attempt ${attempt} overflows, with no cap`);
      warnings.push(`OVERFLOW_ERROR: attempt ${attempt} overflows; the cap is used`);
    }
    unjitteredMs = capped ? capMs : rawMs;
  }

  let delayMs = unjitteredMs;
  if (
    unjitteredMs > 0 &&
    choose(input.jitterEnabled, 'jitterEnabled', 'enableJitter', config, warnings)
  ) {
    const ratio = configured('jitterPercentage', config, warnings);
    const key = jitterKey(input, lastMs, attempt);
    delayMs += ratio * unjitteredMs * draw(key, attempt, ports, warnings);
  }
  delayMs = Math.floor(delayMs);
  return Number.isFinite(delayMs)
    ? { kind: 'delay', delayMs, unjitteredMs: Math.floor(unjitteredMs), capped, exponential }
    : delayError('CALCULATION_ERROR', 'the delay is not a finite number of ms');
}

/** A configured value, or where that is unusable the last resort, with a warning. */
export function configured<Name extends keyof CriterionConfig>(
  name: Name,
  config: CriterionConfig,
  warnings: string[],
  lastResort: CriterionConfig[Name] = criterionDefaults[name],
): CriterionConfig[Name] {
  const value = config[name];
  const [accepts, expected] = criterionRules[name];
  if (accepts(value)) return value;
  warnings.push(
    `DEFAULT_USED: ${name} must be ${expected}, not ${shown(value)}; ${lastResort} is used`,
  );
  return lastResort;
}

export function isMissing(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

/** The entity's own value; a missing or an unusable one gives way to the configured one. */
function choose<Name extends keyof CriterionConfig>(
  value: unknown,
  field: keyof RetryDelayInput,
  name: Name,
  config: CriterionConfig,
  warnings: string[],
  lastResort?: CriterionConfig[Name],
): CriterionConfig[Name] {
  const [accepts, expected] = criterionRules[name];
  if (accepts(value)) return value as CriterionConfig[Name];
  const fallback = configured(name, config, warnings, lastResort);
  if (!isMissing(value)) {
    warnings.push(
      `DEFAULT_USED: ${field} must be ${expected}, not ${shown(value)}; ${fallback} is used`,
    );
  }
  return fallback;
}

/** Attempts beyond what a number can count are all the same one, which keeps 1^n at 1. */
function attemptOf(value: unknown, warnings: string[]): number {
  if (isMissing(value)) return 1;
  if (typeof value !== 'number' || Number.isNaN(value)) {
    warnings.push(`DEFAULT_USED: attemptCount must be a number, not ${shown(value)}; 1 is used`);
    return 1;
  }
  return Math.min(Math.max(Math.floor(value), 1), Number.MAX_SAFE_INTEGER);
}

/** Deterministic per entity: asking a hundred times must not find the luckiest draw. */
function jitterKey(input: RetryDelayInput, lastMs: number, attempt: number): string {
  return idOf(input.entityId) ?? idOf(input.id) ?? `${lastMs}:${attempt}`;
}

function idOf(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function draw(key: string, attempt: number, ports: CriterionPorts, warnings: string[]): number {
  try {
    const unit = ports.random
      ? ports.random(key, attempt)
      : unitRandom(ports.seed ?? 0, key, attempt);
    if (typeof unit === 'number' && unit >= 0 && unit < 1) return unit;
  } catch {
    // Told below, together with a source that gives what is no number in [0, 1).
  }
  warnings.push('RANDOM_FAILED: the random source failed; no jitter is added');
  return 0;
}

/** Hostile values do not belong into a log: of all but numbers only the type is told. */
function shown(value: unknown): string {
  return typeof value === 'number' ? String(value) : `a value of type ${typeof value}`;
}

function delayError(code: CriterionError, message: string): DelayError {
  return { kind: 'error', code, message };
}
