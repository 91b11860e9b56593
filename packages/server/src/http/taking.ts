/** Hands what a request asks for to the engine, in one call where it is of one kind, and says what became of it. */
import type { Engine, Rejected, Reported, Submitted, Task } from '@redrive/engine';
import { isEngineError, laneOf } from '@redrive/engine';
import type { Static } from 'typebox';
import { wirePath } from './reading/faults.ts';
import { type Around, bytesOf, type GivenItem, type Wish, wishOf } from './intake.ts';
import { Problem, problemOf } from './problem.ts';
import type { Receipt, Receipts } from './schemas/retries.ts';
import { invalid } from './reading/validate.ts';
import { placeView, taskView } from './views.ts';

type Good = Exclude<Wish, { type: 'faulty' }>;
type Answer = Submitted | Reported | Rejected;

/** Duplicates are looked at so many at a time. */
const LOOKS = 20;

const MISMATCH = 'This Idempotency-Key was used for another payload. Use another one.';

export async function takeOne(
  engine: Engine,
  item: unknown,
  around: Around,
): Promise<Static<typeof Receipt>> {
  const wish = wishOf(item, around);
  if (wish.type === 'faulty') throw invalid(wish.faults);
  const { id, status } = await handIn(engine, wish);
  if (status === 'accepted') return newReceipt(wish, id, item as GivenItem);
  const task = await engine.get(id, wish.destination);
  if (!task) {
    throw new Problem('TASK_UNKNOWN', 'It was known, and deleted in this very moment. Ask again.');
  }
  if (status === 'duplicate' && isMismatch(wish, task, item, around)) {
    throw new Problem('IDEMPOTENCY_MISMATCH', MISMATCH);
  }
  return { status_of_request: status, ...taskView(task) };
}

/** One call of the engine for fresh work, and one for failures. */
export async function takeMany(
  engine: Engine,
  items: readonly unknown[],
  around: Around,
): Promise<Static<typeof Receipts>> {
  const taken = new Taken();
  const fresh: { index: number; wish: Good & { type: 'fresh' } }[] = [];
  const failures: { index: number; wish: Good & { type: 'failure' } }[] = [];
  for (const [index, item] of items.entries()) {
    const key = around.key === undefined ? around : { ...around, key: `${around.key}:${index}` };
    const wish = wishOf(item, key);
    if (wish.type === 'fresh') fresh.push({ index, wish });
    else if (wish.type === 'failure') failures.push({ index, wish });
    else
      for (const { code, path, message } of wish.faults) taken.reject(index, code, path, message);
  }
  const wishes: { index: number; wish: Good }[] = [];
  const answers: Answer[] = [];
  if (fresh.length > 0) {
    answers.push(...(await engine.submitMany(fresh.map(({ wish }) => wish.submission))));
    wishes.push(...fresh);
  }
  if (failures.length > 0) {
    try {
      answers.push(...(await engine.report(failures.map(({ wish }) => wish.report))));
      wishes.push(...failures);
    } catch (error) {
      // What was committed before must not be told as failed.
      if (fresh.length === 0 || !isEngineError(error)) throw error;
      const { code, message } = problemOf(error);
      for (const { index } of failures) taken.reject(index, code, '', message);
    }
  }
  for (const [i, { index }] of wishes.entries()) taken.add(index, answers[i]!);
  if (around.key !== undefined) await refuseMismatches(engine, items, wishes, taken, around);
  return taken.inOrder();
}

async function handIn(engine: Engine, wish: Good): Promise<Submitted | Reported> {
  if (wish.type === 'fresh') {
    const { to, payload, ...options } = wish.submission;
    return engine.submit(to, payload, options);
  }
  const [answer] = await engine.report([wish.report]);
  if (answer!.status !== 'rejected') return answer!;
  const { code, path, message } = answer!;
  const faults = [{ in: 'body', path: wirePath(path), code, message } as const];
  throw new Problem(code, message, { faults });
}

/** What is known without asking the store again. */
function newReceipt(wish: Good, id: string, item: GivenItem): Static<typeof Receipt> {
  const { retry_count = 0, max_retries, due_at, ordering_key } = item;
  return {
    status_of_request: 'accepted',
    message_id: id,
    ...placeView(wish.destination),
    lane: laneOf(wish.destination),
    status: 'pending',
    retry_count,
    ...(max_retries === undefined ? {} : { max_retries }),
    ...(due_at === undefined ? {} : { due_at }),
    ...(ordering_key === undefined ? {} : { ordering_key }),
  };
}

/** What became of the items of a request. */
class Taken {
  readonly #accepted: Static<typeof Receipts>['accepted'] = [];
  readonly #rejected: Static<typeof Receipts>['rejected'] = [];

  add(index: number, answer: Answer): void {
    if (answer.status === 'rejected') {
      this.reject(index, answer.code, wirePath(answer.path), answer.message);
    } else this.#accepted.push({ index, message_id: answer.id, result: answer.status });
  }

  reject(index: number, code: string, path: string, message: string): void {
    this.#rejected.push({ index, code, path, message });
  }

  get duplicates() {
    return this.#accepted.filter(({ result }) => result === 'duplicate');
  }

  refuse(index: number, code: string, message: string): void {
    this.#accepted.splice(
      this.#accepted.findIndex((one) => one.index === index),
      1,
    );
    this.reject(index, code, '/payload', message);
  }

  inOrder(): Static<typeof Receipts> {
    const accepted = this.#accepted.sort((a, b) => a.index - b.index);
    return { accepted, rejected: this.#rejected.sort((a, b) => a.index - b.index) };
  }
}

/** Of those whose id came from the key: what was there already has to be the same. */
async function refuseMismatches(
  engine: Engine,
  items: readonly unknown[],
  wishes: readonly { index: number; wish: Good }[],
  taken: Taken,
  around: Around,
): Promise<void> {
  const wishAt = new Map(wishes.map(({ index, wish }) => [index, wish]));
  const duplicates = taken.duplicates;
  for (let from = 0; from < duplicates.length; from += LOOKS) {
    const some = duplicates.slice(from, from + LOOKS);
    const tasks = await Promise.all(
      some.map(({ index, message_id }) => engine.get(message_id, wishAt.get(index)!.destination)),
    );
    for (const [i, { index }] of some.entries()) {
      const task = tasks[i];
      if (task && isMismatch(wishAt.get(index)!, task, items[index], around)) {
        taken.refuse(index, 'IDEMPOTENCY_MISMATCH', MISMATCH);
      }
    }
  }
}

function isMismatch(wish: Good, task: Task, item: unknown, { key }: Around): boolean {
  // An operator's change is not the client's, and what was erased cannot be compared.
  if (key === undefined || (item as GivenItem).message_id !== undefined) return false;
  if (task.edited !== undefined || task.payload.length === 0) return false;
  const { payload } = wish.type === 'fresh' ? wish.submission : wish.report;
  return !Buffer.from(task.payload).equals(bytesOf(payload));
}
