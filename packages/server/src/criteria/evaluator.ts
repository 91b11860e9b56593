/** Evaluates criteria for every door of the service: HTTP, gRPC and replays give the same answers. */
import {
  type Clock,
  type CriterionName,
  type CriterionResult,
  type CriterionSettings,
  evaluateCriterion,
  nextRetryTime,
} from 'redrive';
import type { CriterionCounts } from '../observe/metrics/criterion-counts.ts';
import { isErrorCode } from './audience.ts';
import { type FailedEvaluation, FUNCTION } from './error-log.ts';
import type { RecentAnswers } from './recent.ts';
import type { SettingsInForce } from './settings.ts';

export interface EvaluationRequest {
  readonly entity: unknown;
  /** The jitter's key. It outranks the entity's own id. */
  readonly entityId?: string | undefined;
  /** Chooses a named set where the entity's operation type names none. */
  readonly context?: string | undefined;
  /** The request's own settings. The caller has checked them. */
  readonly settings?: CriterionSettings | undefined;
  /** When the request arrived, by the monotonic clock. Its time limit counts from then; absent: from now. */
  readonly arrivedMs?: number | undefined;
}

export interface Evaluator {
  /** Synchronous and total: evaluates, counts, logs, remembers, and hands a failed one on to the review writer. */
  evaluate(name: CriterionName, request: EvaluationRequest): CriterionResult;
  nextRetryTime(request: EvaluationRequest): ReturnType<typeof nextRetryTime>;
}

interface EvaluatorParts {
  settings: SettingsInForce;
  clock: Clock;
  counts: Pick<CriterionCounts, 'evaluated' | 'failed'>;
  recent: RecentAnswers;
  /** The deployment's seed. */
  seed: () => number;
  onError: (failed: FailedEvaluation) => void;
  /** Makes a review item of a failed evaluation; absent: none is wanted. */
  review?: (name: CriterionName, request: EvaluationRequest, result: CriterionResult) => void;
}

const MAX_ID = 256;

export class CriterionEvaluator implements Evaluator {
  readonly #parts: EvaluatorParts;
  readonly #nowMs: () => number;
  readonly #monotonicMs: () => number;

  constructor(parts: EvaluatorParts) {
    this.#parts = parts;
    const { clock } = parts;
    this.#nowMs = () => clock.now();
    this.#monotonicMs = () => clock.monotonic();
  }

  evaluate(name: CriterionName, request: EvaluationRequest): CriterionResult {
    const result = this.again(name, request);
    if (result.errors.length > 0) this.#parts.review?.(name, request, result);
    return result;
  }

  /** Evaluates without making a review item: the replay of an item must not make another one. */
  again(name: CriterionName, request: EvaluationRequest): CriterionResult {
    const { clock, counts, recent } = this.#parts;
    const { entity, settings } = request;
    const beganMs = clock.monotonic();
    const used = this.#parts.settings.of(settings);
    const result = evaluateCriterion(name, entity, used, this.#options(request));
    counts.evaluated(name, outcomeOf(result), (clock.monotonic() - beganMs) / 1000);
    const entityId = idOf(request);
    recent.add(name, { atMs: clock.now(), entityId, result });
    if (result.errors.length > 0) this.#failed(name, entity, entityId, result);
    return result;
  }

  nextRetryTime(request: EvaluationRequest): ReturnType<typeof nextRetryTime> {
    const settings = this.#parts.settings.of(request.settings);
    const next = nextRetryTime(request.entity, settings, this.#options(request));
    if ('fireAfterMs' in next) {
      const errors = next.warnings.flatMap(({ code, message }) =>
        isErrorCode(code) ? [{ code, message }] : [],
      );
      this.#failed(FUNCTION, request.entity, idOf(request), { errors });
    }
    return next;
  }

  #options({ entityId, context, arrivedMs }: EvaluationRequest) {
    return {
      nowMs: this.#nowMs,
      monotonicMs:
        arrivedMs === undefined ? this.#monotonicMs : startedAt(arrivedMs, this.#monotonicMs),
      seed: this.#parts.seed(),
      key: entityId,
      context,
    };
  }

  #failed(
    criterion: FailedEvaluation['criterion'],
    entity: unknown,
    entityId: string | undefined,
    { errors }: Pick<CriterionResult, 'errors'>,
  ): void {
    const attempt = fieldOf(entity, 'attemptCount');
    for (const error of errors) {
      this.#parts.counts.failed(criterion, error.code);
      this.#parts.onError({ criterion, error, entityId, attempt });
    }
  }
}

/** Core reads this clock when an evaluation begins and when it ends. The first reading is the request's arrival. */
function startedAt(firstMs: number, monotonicMs: () => number): () => number {
  let isFirst = true;
  return () => {
    if (!isFirst) return monotonicMs();
    isFirst = false;
    return firstMs;
  };
}

/** The id of an entity: the request's, else the entity's own. Bounded, because it is logged and kept. */
export function idOf({ entity, entityId }: EvaluationRequest): string | undefined {
  const id = entityId ?? fieldOf(entity, 'entityId') ?? fieldOf(entity, 'id');
  if (typeof id === 'number') return String(id);
  if (typeof id !== 'string' || id === '') return undefined;
  // Copied, since a slice keeps all of the text that it was cut from.
  return id.length > MAX_ID ? Buffer.from(id.slice(0, MAX_ID)).toString() : id;
}

/** An entity may be anything, and reading a field of it may throw. */
function fieldOf(entity: unknown, name: string): unknown {
  if (typeof entity !== 'object' || entity === null) return undefined;
  try {
    return (entity as Record<string, unknown>)[name];
  } catch {
    return undefined;
  }
}

function outcomeOf({ matches, errors }: CriterionResult): 'match' | 'no_match' | 'error' {
  if (errors.length > 0) return 'error';
  return matches ? 'match' : 'no_match';
}
