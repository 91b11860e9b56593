/** Hands what a request asks for to the engine, in one call where it is of one kind, and says what became of it. */
import type { Engine, EngineErrorCode, Rejected, Reported, Submitted } from '@redrive/engine';
import { EngineError, isEngineError, laneOf } from '@redrive/engine';
import type { Static } from 'typebox';
import { type Around, type GivenItem, type Wish, wishOf } from './intake.ts';
import { type WireFault, wireFaults, wirePath } from './reading/faults.ts';
import { inServiceWords } from '../service-words.ts';
import { Problem, problemOf, sentences } from './problem.ts';
import type { Receipt, Receipts } from './schemas/retries.ts';
import { invalid, joinFaults } from './reading/validate.ts';
import { placeView, taskView } from './views.ts';

type Good = Exclude<Wish, { type: 'faulty' }>;
type Answer = Submitted | Reported | Rejected;

export async function takeOne(
  engine: Engine,
  item: unknown,
  around: Around,
): Promise<Static<typeof Receipt>> {
  const wish = wishOf(item, around);
  if (wish.type === 'faulty') throw invalid(allFaults(engine, wish));
  const answer = await handIn(engine, wish);
  const { id, status } = answer;
  if (status === 'accepted') {
    const { warning } = answer as Submitted;
    // A delay counts from the clock of the store, so only the store knows when that is. The task is committed: a failed
    // read must not look like a failed request, which the client would send again.
    const { delay } = item as GivenItem;
    const stored =
      delay === undefined
        ? undefined
        : await engine.get(id, wish.destination).catch(() => undefined);
    const receipt = stored
      ? { status_of_request: status, ...taskView(stored) }
      : newReceipt(wish, id, item as GivenItem);
    return warning === undefined ? receipt : { ...receipt, warning: inServiceWords(warning) };
  }
  const task = await engine.get(id, wish.destination);
  if (!task) {
    throw new Problem('TASK_UNKNOWN', 'It was known, and deleted in this very moment. Ask again.');
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
      for (const { code, path, message } of allFaults(engine, wish))
        taken.reject(index, code, path, message);
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
  return taken.inOrder();
}

/** What is wrong with a faulty item, together with what the engine finds in the parts of it that can be read. */
function allFaults(
  engine: Engine,
  { faults, usable }: Wish & { type: 'faulty' },
): readonly WireFault[] {
  return usable ? joinFaults(faults, wireFaults(engine.faultsOf(usable))) : faults;
}

async function handIn(engine: Engine, wish: Good): Promise<Submitted | Reported> {
  if (wish.type === 'fresh') {
    const { to, payload, ...options } = wish.submission;
    return engine.submit(to, payload, options);
  }
  const [answer] = await engine.report([wish.report]);
  if (answer!.status !== 'rejected') return answer!;
  const { code, message, faults } = answer!;
  throw problemOf(new EngineError(code, message, { faults }));
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
      for (const { code, path, message } of answer.faults) {
        this.reject(
          index,
          code,
          wirePath(path),
          sentences[code as EngineErrorCode] ?? inServiceWords(message),
        );
      }
    } else this.#accepted.push({ index, message_id: answer.id, result: answer.status });
  }

  reject(index: number, code: string, path: string, message: string): void {
    this.#rejected.push({ index, code, path, message });
  }

  inOrder(): Static<typeof Receipts> {
    const accepted = this.#accepted.sort((a, b) => a.index - b.index);
    return { accepted, rejected: this.#rejected.sort((a, b) => a.index - b.index) };
  }
}
