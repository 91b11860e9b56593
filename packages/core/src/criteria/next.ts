import { criterionDefaults, layerConfig } from './config.ts';
import type { CriterionConfig, CriterionSettings } from './config.ts';
import { configured, dueAt, retryDelay } from './delay.ts';
import { configFor, fieldsOf, lastAttemptOf, messageOf } from './entity.ts';
import type { CriterionOptions } from './entity.ts';
import type { CriterionWarning } from './result.ts';
import { LAST_DATE_MS } from './time.ts';

/** When a retry is due, for an engine that schedules it. */
export type NextRetryTime =
  | { fireAtMs: number; warnings: CriterionWarning[] }
  /** Counted from the answer. */
  | { fireAfterMs: number; warnings: CriterionWarning[] };

/**
 * The time at which `isRetryDelayElapsed` begins to match. Without usable data it is the default delay from
 * now, with a warning. Total, as the criteria are: a failure would fail the work that asks. The current time
 * plays no part, so a wrong clock cannot move the answer.
 */
export function nextRetryTime(
  entity: unknown,
  settings?: CriterionSettings | null,
  options?: CriterionOptions | null,
): NextRetryTime {
  const warnings: CriterionWarning[] = [];
  const usable = settings ?? criterionDefaults;
  try {
    const input = fieldsOf(entity);
    const lastMs = lastAttemptOf(entity, warnings);
    const config = configFor(input, usable, options ?? {});
    if (typeof lastMs !== 'number') return afterDefault(lastMs, config, warnings);
    const delay = retryDelay(input, config, options ?? {}, lastMs, warnings);
    if (delay.kind === 'error') return afterDefault(delay.error, config, warnings);
    const dueAtMs = dueAt(lastMs, delay.delayMs);
    if (dueAtMs <= LAST_DATE_MS) return { fireAtMs: dueAtMs, warnings };
    warnings.push({
      code: 'OVERFLOW_ERROR',
      message: `The due time is past the last one that a date can hold; ${LAST_DATE_MS} is used`,
    });
    return { fireAtMs: LAST_DATE_MS, warnings };
  } catch (error) {
    const failure: CriterionWarning = { code: 'CALCULATION_ERROR', message: messageOf(error) };
    return afterDefault(failure, configOrDefaults(usable), warnings);
  }
}

function afterDefault(
  failure: CriterionWarning,
  config: CriterionConfig,
  warnings: CriterionWarning[],
): NextRetryTime {
  const seconds = configured('defaultRetryDelaySeconds', config, warnings);
  const { code, message } = failure;
  warnings.push({ code, message: `${message}; the default delay of ${seconds} s is used` });
  return { fireAfterMs: Math.min(seconds * 1000, LAST_DATE_MS), warnings };
}

/** Settings may be as hostile as an entity. */
function configOrDefaults(settings: CriterionSettings): CriterionConfig {
  try {
    return layerConfig(settings, {});
  } catch {
    return criterionDefaults;
  }
}
