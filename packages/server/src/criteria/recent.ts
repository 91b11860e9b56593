/** The last answers of this instance, for people who look. No payload is kept. */
import type { CriterionName, CriterionResult } from 'redrive';

const MAX_RECENT = 100;

export interface RecentAnswer {
  readonly atMs: number;
  readonly entityId: string | undefined;
  readonly result: CriterionResult;
}

export class RecentAnswers {
  readonly #rings: Readonly<Record<CriterionName, Ring>> = {
    isRetryDelayElapsed: new Ring(),
    isMaxRetriesExceeded: new Ring(),
    hasRetriesAvailable: new Ring(),
  };

  add(name: CriterionName, answer: RecentAnswer): void {
    this.#rings[name].add(answer);
  }

  /** The newest first. */
  of(name: CriterionName): RecentAnswer[] {
    return this.#rings[name].newestFirst();
  }
}

class Ring {
  readonly #answers: RecentAnswer[] = [];
  #next = 0;

  add(answer: RecentAnswer): void {
    this.#answers[this.#next] = answer;
    this.#next = (this.#next + 1) % MAX_RECENT;
  }

  newestFirst(): RecentAnswer[] {
    const { length } = this.#answers;
    return Array.from(
      { length },
      (_, i) => this.#answers[(this.#next - 1 - i + 2 * length) % length]!,
    );
  }
}
