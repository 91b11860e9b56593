import { type DelayRule, rawDelay, spreadDelay } from '../policy/backoff.ts';
import { unitRandom } from '../policy/random.ts';
import { criterionDefaults, criterionRules, positiveRule } from './config.ts';
import type { CriterionConfig } from './config.ts';
import { defaultUsed, isMissing, shown } from './entity.ts';
import type { CriterionOptions, RetryDelayInput } from './entity.ts';
import type { CriterionError, CriterionErrorCode, CriterionWarning } from './result.ts';

export interface Delay {
  kind: 'delay';
  delayMs: number;
  /** The delay without its jitter, in whole ms too. */
  unjitteredMs: number;
  /** Whether the cap cut it. */
  capped: boolean;
  exponential: boolean;
}

interface DelayError {
  kind: 'error';
  error: CriterionError;
}

/** How long an entity must wait, by `delayFor`'s own formula. Rounded up to whole ms: never yes too early. */
export function retryDelay(
  input: RetryDelayInput,
  config: CriterionConfig,
  options: CriterionOptions,
  lastMs: number,
  warnings: CriterionWarning[],
): Delay | DelayError {
  const rule = ruleFor(input, config, warnings);
  const attempt = attemptOf(input.attemptCount, warnings);
  const rawMs = rawDelay(rule, attempt);
  const capped = rawMs > rule.cap;
  const exponential = rule.strategy === 'exponential';
  if (exponential && rawMs === Infinity) {
    if (!capped) {
      return delayError(
        'OVERFLOW_ERROR',
        `The delay after attempt ${attempt} overflows, and no cap is usable`,
      );
    }
    warnings.push({
      code: 'OVERFLOW_ERROR',
      message: `The delay after attempt ${attempt} overflows; the cap is used`,
    });
  }
  const draw = (): number =>
    drawn(keyOf(input, options, lastMs, attempt), attempt, options, warnings);
  const delayMs = Math.ceil(spreadDelay(rule, rawMs, draw, undefined));
  if (!Number.isFinite(delayMs)) {
    return delayError('CALCULATION_ERROR', 'The delay is not a finite number of ms');
  }
  const unjitteredMs = Math.ceil(capped ? rule.cap : rawMs);
  return { kind: 'delay', delayMs, unjitteredMs, capped, exponential };
}

/** The first whole ms at which the delay is over: the last attempt may have a fraction of one. */
export function dueAt(lastMs: number, delayMs: number): number {
  return Math.ceil(lastMs) + delayMs;
}

/** The delay's rule from the entity's own numbers, else the configured ones. By default it is the preset `criterion`. */
function ruleFor(
  input: RetryDelayInput,
  config: CriterionConfig,
  warnings: CriterionWarning[],
): DelayRule {
  const seconds = choose(
    input.retryDelaySeconds,
    'retryDelaySeconds',
    'defaultRetryDelaySeconds',
    config,
    warnings,
  );
  if (isMissing(input.retryDelaySeconds)) {
    warnings.push(defaultUsed(`retryDelaySeconds is missing; ${seconds} is used`));
  }
  const backsOff = choose(
    input.exponentialBackoff,
    'exponentialBackoff',
    'enableExponentialBackoff',
    config,
    warnings,
  );
  const jitters = choose(input.jitterEnabled, 'jitterEnabled', 'enableJitter', config, warnings);
  const base = seconds * 1000;
  let multiplier = 1;
  // Without exponential backoff there is no cap.
  let cap = Infinity;
  if (backsOff) {
    multiplier = choose(
      input.backoffMultiplier,
      'backoffMultiplier',
      'defaultBackoffMultiplier',
      config,
      warnings,
    );
    // An unusable default leaves the backoff without a cap: nobody chose the built-in 3600.
    cap =
      1000 *
      choose(
        input.maxDelaySeconds,
        'maxDelaySeconds',
        'defaultMaxDelaySeconds',
        config,
        warnings,
        Infinity,
      );
  }
  return {
    strategy: backsOff ? 'exponential' : 'fixed',
    base,
    cap,
    multiplier,
    jitter: jitters ? 'up' : 'none',
    jitterRatio: jitters && base > 0 ? configured('jitterPercentage', config, warnings) : 0,
    jitterAdd: 0,
    hardCap: false,
    schedule: undefined,
  };
}

/** A configured value, or where that is unusable the last resort, with a warning. */
export function configured<Name extends keyof CriterionConfig>(
  name: Name,
  config: CriterionConfig,
  warnings: CriterionWarning[],
  lastResort: CriterionConfig[Name] = criterionDefaults[name],
): CriterionConfig[Name] {
  const value = config[name];
  const { accepts, expected } = criterionRules[name];
  if (accepts(value)) return value;
  warnings.push(
    defaultUsed(`${name} must be ${expected}, not ${shown(value)}; ${inWords(lastResort)} is used`),
  );
  return lastResort;
}

/** The cap is the one value whose last resort is to have none. */
function inWords(value: CriterionConfig[keyof CriterionConfig]): string {
  return value === Infinity ? 'no cap' : String(value);
}

/** The entity's own value; a missing or an unusable one gives way to the configured one. */
function choose<Name extends keyof CriterionConfig>(
  value: unknown,
  field: keyof RetryDelayInput,
  name: Name,
  config: CriterionConfig,
  warnings: CriterionWarning[],
  lastResort?: CriterionConfig[Name],
): CriterionConfig[Name] {
  // An entity's cap may be a fraction of a second; the configured one is whole seconds.
  const { accepts, expected } = field === 'maxDelaySeconds' ? positiveRule : criterionRules[name];
  if (accepts(value)) return value as CriterionConfig[Name];
  const fallback = configured(name, config, warnings, lastResort);
  if (!isMissing(value)) {
    warnings.push(
      defaultUsed(
        `${field} must be ${expected}, not ${shown(value)}; ${inWords(fallback)} is used`,
      ),
    );
  }
  return fallback;
}

/** Attempts beyond what a number can count are all the same one, which keeps 1^n at 1. */
function attemptOf(value: unknown, warnings: CriterionWarning[]): number {
  if (Number.isInteger(value) && (value as number) >= 1) {
    return Math.min(value as number, Number.MAX_SAFE_INTEGER);
  }
  if (!isMissing(value)) {
    warnings.push(
      defaultUsed(`attemptCount must be a whole number, 1 or more, not ${shown(value)}; 1 is used`),
    );
  }
  return 1;
}

/** Deterministic per entity: asking a hundred times must not find the luckiest draw. */
function keyOf(
  input: RetryDelayInput,
  options: CriterionOptions,
  lastMs: number,
  attempt: number,
): string {
  return idOf(options.key) ?? idOf(input.entityId) ?? idOf(input.id) ?? `${lastMs}:${attempt}`;
}

function idOf(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function drawn(
  key: string,
  attempt: number,
  options: CriterionOptions,
  warnings: CriterionWarning[],
): number {
  try {
    const unit = options.random
      ? options.random(key, attempt)
      : unitRandom(options.seed ?? 0, key, attempt);
    if (typeof unit === 'number' && unit >= 0 && unit < 1) return unit;
  } catch {
    // The warning below covers both a source that throws and one that gives no number in [0, 1).
  }
  warnings.push({ code: 'RANDOM_FAILED', message: 'The random source failed; no jitter is added' });
  return 0;
}

function delayError(code: CriterionErrorCode, message: string): DelayError {
  return { kind: 'error', error: { code, message } };
}
