/** The numbers of the criteria. Counted in plain fields, and written when somebody asks for the page. */
import { type CriterionErrorCode, type CriterionName, criterionNames } from 'redrive';
import type { PlainSeries } from './plain-histogram.ts';
import type { MetricSet } from './registry.ts';

type Outcome = 'match' | 'no_match' | 'error';

interface OfOne {
  readonly results: Record<Outcome, number>;
  readonly errors: Partial<Record<CriterionErrorCode, number>>;
  readonly duration: PlainSeries;
}

export class CriterionCounts {
  readonly #set: MetricSet;
  readonly #byName: Readonly<Record<CriterionName, OfOne>>;
  /** How many failed evaluations wait to become items. */
  waiting: () => number = () => 0;
  #dropped = 0;
  readonly #functionErrors: OfOne['errors'] = {};

  constructor(set: MetricSet) {
    this.#set = set;
    const entries = criterionNames.map((name): [CriterionName, OfOne] => [
      name,
      {
        results: { match: 0, no_match: 0, error: 0 },
        errors: {},
        duration: set.criterionDuration.labels(name),
      },
    ]);
    this.#byName = Object.fromEntries(entries) as Record<CriterionName, OfOne>;
  }

  evaluated(name: CriterionName, outcome: Outcome, seconds: number): void {
    const one = this.#byName[name];
    one.results[outcome] += 1;
    one.duration.observe(seconds);
  }

  failed(name: CriterionName | 'nextRetryTime', code: CriterionErrorCode): void {
    const errors = name === 'nextRetryTime' ? this.#functionErrors : this.#byName[name].errors;
    errors[code] = (errors[code] ?? 0) + 1;
  }

  /** Failed evaluations that will never be items. */
  dropped(count: number): void {
    this.#dropped += count;
  }

  write(): void {
    const { criterionEvaluations, criterionErrors, criterionDropped, criterionWaiting } = this.#set;
    for (const one of [criterionEvaluations, criterionErrors, criterionDropped]) one.reset();
    for (const [criterion, { results, errors }] of Object.entries(this.#byName)) {
      for (const [result, count] of Object.entries(results)) {
        criterionEvaluations.inc({ criterion, result }, count);
      }
      for (const [code, count] of Object.entries(errors)) {
        criterionErrors.inc({ criterion, code }, count);
      }
    }
    for (const [code, count] of Object.entries(this.#functionErrors)) {
      criterionErrors.inc({ criterion: 'nextRetryTime', code }, count);
    }
    criterionDropped.inc(this.#dropped);
    criterionWaiting.set(this.waiting());
  }
}
