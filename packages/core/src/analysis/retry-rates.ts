import type { AuditEvent } from '../audit/audit-events.ts';
import { OTHER } from './tallies.ts';
import { checkOptions } from '../options/check-options.ts';
import type { Fields } from '../options/fields.ts';

export interface RetryRateOptions {
  /** An alert is raised where a category has more retries in a minute than this. Left out: only rates are measured. */
  perMinute?: number;
}

/** A category passed its limit, or is well below it again. */
export interface RetryRateAlert {
  state: 'raised' | 'over';
  category: string;
  perMinute: number;
  limit: number;
}

/** Retries of the last minute, per category. */
export interface RetryRates {
  /** `nowMs` is any time that only grows: a monotonic clock. */
  add(event: AuditEvent, nowMs: number): void;
  /** Alerts that were raised or are over since the last look. */
  look(nowMs: number): RetryRateAlert[];
  rates(nowMs: number): { category: string; perMinute: number }[];
}

const fields = {
  perMinute: { kind: 'number', min: 0, max: Infinity },
} as const satisfies Fields;

const STEP_MS = 5000;
const STEPS = 12;
const MAX_CATEGORIES = 1000;
/** An alert is over at this share of its limit, so that a rate around the limit does not raise it again and again. */
const OVER = 0.8;

/** Counts events as they are written, for alerts. Pure: it reads no clock. */
export function createRetryRates(options: RetryRateOptions = {}): RetryRates {
  const checked = checkOptions('The options of createRetryRates', options, fields);
  const limit = (checked['perMinute'] as number | undefined) ?? Infinity;
  const categories = new Map<string, Minute>();

  return {
    add(event, nowMs) {
      if (event.event_type !== 'retry_attempt') return;
      const name = event['retry_category'];
      minuteOf(typeof name === 'string' ? name : OTHER).add(nowMs);
    },
    look(nowMs) {
      const alerts: RetryRateAlert[] = [];
      for (const [category, minute] of categories) {
        const perMinute = minute.sum(nowMs);
        if (!minute.isRaised && perMinute > limit) {
          minute.isRaised = true;
          alerts.push({ state: 'raised', category, perMinute, limit });
        } else if (minute.isRaised && perMinute <= limit * OVER) {
          minute.isRaised = false;
          alerts.push({ state: 'over', category, perMinute, limit });
        }
        if (perMinute === 0) categories.delete(category);
      }
      return alerts;
    },
    rates(nowMs) {
      return [...categories].map(([category, minute]) => ({
        category,
        perMinute: minute.sum(nowMs),
      }));
    },
  };

  function minuteOf(name: string): Minute {
    const key = categories.has(name) || categories.size < MAX_CATEGORIES ? name : OTHER;
    let minute = categories.get(key);
    if (!minute) categories.set(key, (minute = new Minute()));
    return minute;
  }
}

/** A ring of twelve steps of five seconds. */
class Minute {
  readonly #counts = new Uint32Array(STEPS);
  #step = -Infinity;
  isRaised = false;

  add(nowMs: number): void {
    this.#advance(nowMs);
    this.#counts[this.#step % STEPS]! += 1;
  }

  sum(nowMs: number): number {
    this.#advance(nowMs);
    return this.#counts.reduce((total, count) => total + count, 0);
  }

  #advance(nowMs: number): void {
    const step = Math.max(0, Math.floor(nowMs / STEP_MS));
    if (step <= this.#step) return;
    const passed = Math.min(STEPS, step - this.#step);
    for (let i = 0; i < passed; i++) this.#counts[(step - i) % STEPS] = 0;
    this.#step = step;
  }
}
