import type { MemoryStore } from '../../../adapters/memory/store.ts';
import type { HandlerContext } from '../../../dispatch/handlers.ts';
import type { Task } from '../../../model/task.ts';
import type { Instance } from '../instance.ts';
import type { Ledger } from '../ledger.ts';

const LANE = 'handler:pay';

/** One execution of a handler that is to happen once. */
interface Running {
  key: string;
  instance: Instance;
  signal: AbortSignal;
}

/** What must hold of handlers that happen once. Keys are computed here anew, so that a wrong one shows. */
export class OnceLedger {
  readonly #store: MemoryStore;
  readonly #say: (violation: string) => void;
  readonly #isTransactional: boolean;
  readonly #running = new Set<Running>();
  readonly #recorded = new Set<string>();
  /** How often somebody asked for a record, or was told that it was made. */
  readonly #asked = new Map<string, number>();
  readonly #answered = new Map<string, number>();
  /** How often the effect of a key happened: in a transaction, how often it was committed. */
  readonly #effects = new Map<string, number>();

  /** Told of everything that happens, to follow a seed that fails. */
  readonly tell: (what: string, details?: unknown) => void;

  constructor(
    store: MemoryStore,
    isTransactional: boolean,
    { say, tell }: Pick<Ledger, 'say' | 'tell'>,
  ) {
    this.#store = store;
    this.#isTransactional = isTransactional;
    this.#say = say;
    this.tell = tell;
  }

  /** The key that the execution of a message should have. Undefined: it is gone. */
  keyOf(messageId: string): string | undefined {
    for (const task of this.#store.peek().tasks) {
      if (task.messageId === messageId && task.lane === LANE) return keyOf(task);
    }
    return undefined;
  }

  /** An execution begins. Returns what is called when it ends. */
  began(instance: Instance, { id, signal }: HandlerContext): () => void {
    const key = this.keyOf(id);
    if (key === undefined) return () => undefined;
    if (this.#recorded.has(key)) this.#say(`${key} ran although it was recorded as done`);
    for (const other of this.#running) {
      const isSure = other.instance.isAlive && !other.signal.aborted;
      if (other.key === key && isSure) this.#say(`${key} ran twice at the same time`);
    }
    this.tell(`${instance.name} ran ${key}`);
    const running = { key, instance, signal };
    this.#running.add(running);
    return () => this.#running.delete(running);
  }

  /** An effect happened, outside of any transaction. */
  happened(key: string): void {
    this.#effects.set(key, (this.#effects.get(key) ?? 0) + 1);
  }

  committed(key: string): void {
    this.happened(key);
    if (this.#effects.get(key) !== 1) this.#say(`${key} happened twice, in transactions`);
  }

  recording(key: string): void {
    this.#asked.set(shortOf(key), (this.#asked.get(shortOf(key)) ?? 0) + 1);
  }

  answered(key: string): void {
    this.#answered.set(shortOf(key), (this.#answered.get(shortOf(key)) ?? 0) + 1);
  }

  recorded(key: string): void {
    this.#recorded.add(shortOf(key));
  }

  /** When all is quiet. */
  checkEnd(): void {
    for (const task of this.#store.peek().tasks) {
      if (task.lane !== LANE || task.status !== 'done') continue;
      const key = keyOf(task);
      if (!this.#effects.has(key)) this.#say(`${key} is done and never happened`);
      // A store that failed until the lease was over has no record, and nothing else is an excuse.
      const isExcused = (this.#asked.get(key) ?? 0) > (this.#answered.get(key) ?? 0);
      if (!this.#recorded.has(key) && (this.#isTransactional || !isExcused)) {
        this.#say(`${key} is done and was not recorded`);
      }
    }
  }
}

function keyOf({ messageId, edited }: Task): string {
  return edited === undefined ? messageId : `${messageId}.${edited}`;
}

/** Without the lane, which stands before it in the store. */
function shortOf(key: string): string {
  return key.slice(LANE.length + 1);
}
