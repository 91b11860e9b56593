import type { OperatorFacts } from '../audit/audit-facts.ts';
import { EngineError } from '../errors.ts';
import type { By } from './engine-inbox.ts';
import { knownId, destinationOf } from '../intake/submission.ts';
import type { Change } from '../model/moves.ts';
import type { Destination, Task } from '../model/task.ts';
import type { TaskKey } from '../ports/schedule.ts';
import type { Store } from '../ports/store.ts';
import { checkedBy } from './selection.ts';

type Acted = (action: string, facts: OperatorFacts) => void;

/** What is done to one task that is named by its message id, and by its destination where the id has several. */
export class TaskActions {
  readonly #opened: () => Promise<Store>;
  readonly #acted: Acted;

  constructor(opened: () => Promise<Store>, acted: Acted) {
    this.#opened = opened;
    this.#acted = acted;
  }

  async get(id: string, to: string | Destination | undefined): Promise<Task | undefined> {
    const store = await this.#opened();
    const key = await keyOf(store, id, to);
    return key && store.get(key);
  }

  async change<T>(
    action: string,
    id: string,
    to: string | Destination | undefined,
    options: By = {},
    move: (task: Task | undefined, nowMs: number) => Change<T>,
  ): Promise<T | 'unknown'> {
    const { by } = checkedBy(options);
    const store = await this.#opened();
    const key = await keyOf(store, id, to);
    if (!key) return 'unknown';
    const [result] = await store.change([key], move);
    this.#acted(action, { messageId: id, by, details: { result } });
    return result!;
  }
}

async function keyOf(
  store: Store,
  id: string,
  to: string | Destination | undefined,
): Promise<TaskKey | undefined> {
  const messageId = knownId(id);
  if (to !== undefined) return { messageId, destination: destinationOf(to) };
  const [task, another] = await store.list({ messageId, limit: 2 });
  if (another) {
    const message = `There are several tasks ${id}: say which destination is meant.`;
    throw new EngineError('INVALID_TASK', message);
  }
  return task && { id: task.id };
}
