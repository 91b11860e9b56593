/** One request becomes one answer. Total: whatever is in it, there is an answer. */
import { type CriterionError, type CriterionResult, criterionConfig } from 'redrive';
import type { EvaluationRequest, Evaluator } from '../criteria/evaluator.ts';
import { type Answer, criterionAnswer, refusalAnswer, scheduleAnswer } from './answers.ts';
import { type CalculationRequest, readRequest, type Refusal } from './requests.ts';
import type { Waiting } from './waiting.ts';

/** What became of a request. `failed`: the answer is one of the five errors. */
export type Outcome = 'matched' | 'not_matched' | 'scheduled' | 'failed' | 'refused' | 'dropped';

export type Calculated =
  | { readonly outcome: Outcome; readonly answer: Answer; readonly refusal?: Refusal }
  /** Without a requestId there is no answer: the event is acknowledged as failed. */
  | { readonly outcome: 'refused'; readonly answer?: undefined; readonly refusal: Refusal };

export function calculate(waiting: Waiting, evaluator: Evaluator): Calculated {
  const { type, body, arrivedMs } = waiting;
  const request = readRequest(type, body);
  if (request.kind === 'refusal') {
    return request.to === undefined
      ? { outcome: 'refused', refusal: request }
      : {
          outcome: 'refused',
          refusal: request,
          answer: refusalAnswer(type, request.to, request),
        };
  }
  return request.kind === 'function'
    ? schedule(request, arrivedMs, evaluator)
    : evaluate(request, arrivedMs, evaluator);
}

type Of<Kind> = Extract<CalculationRequest, { kind: Kind }>;

function evaluate(request: Of<'criterion'>, arrivedMs: number, evaluator: Evaluator): Calculated {
  let result: CriterionResult;
  try {
    result = evaluator.evaluate(request.name, evaluation(request, arrivedMs));
  } catch (error) {
    result = { ...unanswered, errors: [faultOf(error)] };
  }
  const answered = result.matches ? 'matched' : 'not_matched';
  return {
    outcome: result.errors.length > 0 ? 'failed' : answered,
    answer: criterionAnswer(request, result, request.warnings),
  };
}

function schedule(request: Of<'function'>, arrivedMs: number, evaluator: Evaluator): Calculated {
  let scheduled: ReturnType<Evaluator['nextRetryTime']>;
  try {
    scheduled = evaluator.nextRetryTime(evaluation(request, arrivedMs));
  } catch (error) {
    scheduled = { fireAfterMs: LAST_RESORT_MS, warnings: [faultOf(error)] };
  }
  return { outcome: 'scheduled', answer: scheduleAnswer(request, scheduled, request.warnings) };
}

/** An evaluator that throws is a bug. One request must not end the process with all the others in it. */
function faultOf(error: unknown): CriterionError {
  const said = error instanceof Error ? error.message : typeof error;
  return { code: 'CALCULATION_ERROR', message: `The evaluation failed: ${said}` };
}

const unanswered: CriterionResult = {
  matches: false,
  reason: 'TIMING_ERROR',
  delayMs: null,
  elapsedMs: null,
  dueAtMs: null,
  errors: [],
  warnings: [],
};
const LAST_RESORT_MS = criterionConfig().defaultRetryDelaySeconds * 1000;

function evaluation(request: CalculationRequest, arrivedMs: number): EvaluationRequest {
  const { entity, entityId, context, settings } = request;
  return { entity, entityId, context, settings, arrivedMs };
}
