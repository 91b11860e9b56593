/** What to say to whoever asks for a criterion that there is not: the same over HTTP, gRPC and on the command line. */
import { criterionNames } from 'redrive';
import { didYouMean, nearest } from 'redrive/internal';

/** The one function that is offered. It schedules a transition. */
export const FUNCTION_NAME = 'nextRetryTime';

const MAX_SHOWN = 100;

export function unknownCriterion(name: unknown): string {
  if (name === FUNCTION_NAME) {
    return `'${FUNCTION_NAME}' is a function, not a criterion: use it in the schedule of a Cyoda transition. The answer of isRetryDelayElapsed has the same time as its due time.`;
  }
  const allowed = `The criteria are ${criterionNames.join(', ')}.`;
  return `There is no criterion '${shownName(name)}'. ${allowed}${meantBy(name, criterionNames)}`;
}

/** ` Did you mean 'x'?`, or nothing. A name of a megabyte is compared by its start. */
export function meantBy(name: unknown, names: readonly string[]): string {
  return didYouMean(nearest(shownName(name), names));
}

/** A name that is too long to repeat is cut; what is no text is told by its type. */
export function shownName(name: unknown): string {
  return typeof name === 'string' ? name.slice(0, MAX_SHOWN) : typeof name;
}
