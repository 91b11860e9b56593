/** Notifications or reports of one request: those with faults are rejected, the others go in. */
import { isNotificationError } from '@redrive/notifications';
import { problemOf } from './problem.ts';
import type { WireFault } from './reading/faults.ts';

/** The items of a request, each held against its schema by itself. */
export class Batch<Item> {
  readonly good: { item: Item; index: number }[] = [];
  readonly #rejected: { index: number; code: string; path: string; message: string }[] = [];

  constructor(items: readonly unknown[], check: (item: unknown) => WireFault[] | undefined) {
    for (const [index, item] of items.entries()) {
      const faults = check(item);
      if (!faults) this.good.push({ item: item as Item, index });
      else this.#reject(index, faults);
    }
  }

  answer<Answer extends object, View extends object>(
    given: readonly (Answer | { error: Error })[],
    view: (answer: Answer, item: Item) => View,
  ) {
    const accepted: ({ index: number } & View)[] = [];
    for (const [i, { item, index }] of this.good.entries()) {
      const answer = given[i]!;
      if (!isRefused(answer)) accepted.push({ index, ...view(answer, item) });
      else {
        const { code, message, faults } = problemOf(answer.error);
        this.#reject(index, faults.length > 0 ? faults : [{ code, path: '', message }]);
      }
    }
    const rejected = this.#rejected.toSorted((one, other) => one.index - other.index);
    return { accepted, rejected };
  }

  #reject(index: number, faults: readonly { code: string; path: string; message: string }[]): void {
    for (const { code, path, message } of faults)
      this.#rejected.push({ index, code, path, message });
  }
}

function isRefused<Answer extends object>(
  answer: Answer | { error: Error },
): answer is { error: Error } {
  return 'error' in answer && isNotificationError(answer.error);
}
