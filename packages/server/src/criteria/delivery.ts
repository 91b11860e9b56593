/** The replay of an item: the entity is evaluated again, by this service itself. */
import type { Delivery, Outcome, Task } from '@redrive/engine';
import { isCriterionName } from 'redrive';
import type { CriterionEvaluator } from './evaluator.ts';
import { unknownCriterion } from './names.ts';
import { CRITERION, failureOf, requestOf } from './review-item.ts';

/** The clock is asked anew; an entity with a `currentTime` of its own keeps that one. */
export function criterionDelivery(evaluator: Pick<CriterionEvaluator, 'again'>): Delivery {
  return { kind: CRITERION, deliver: async (task) => evaluateAgain(evaluator, task) };
}

function evaluateAgain(evaluator: Pick<CriterionEvaluator, 'again'>, task: Task): Outcome {
  const name = task.destination.address;
  if (!isCriterionName(name)) {
    const failure = { class: 'technical', code: 'CRITERION_UNKNOWN' } as const;
    return { type: 'impossible', failure: { ...failure, message: unknownCriterion(name) } };
  }
  let entity: unknown;
  try {
    entity = JSON.parse(Buffer.from(task.payload).toString('utf8'));
  } catch {
    const failure = { class: 'business', code: 'INVALID_PAYLOAD' } as const;
    return { type: 'invalid', failure: { ...failure, message: 'The entity is not JSON.' } };
  }
  const [error] = evaluator.again(name, requestOf(entity, task.context)).errors;
  if (!error) return { type: 'done' };
  return { type: 'giveUp', reason: 'EVALUATION_FAILED', failure: failureOf(error) };
}
