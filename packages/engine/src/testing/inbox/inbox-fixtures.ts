import { deepEqual, equal } from 'node:assert/strict';
import type { Failure } from 'redrive';
import { itemOf } from '../../model/item.ts';
import { accept } from '../../model/moves.ts';
import { type ActResult, type InboxItem, type ItemAction, jobKey } from '../../ports/inbox.ts';
import type { Store } from '../../ports/store.ts';
import type { NewTask, Reason, Task } from '../../model/task.ts';
import {
  arrivalOf,
  broken,
  claimDue,
  inLane,
  put,
  rawItem,
  row,
  settlements,
} from '../fixtures.ts';

/** How something comes into the inbox. */
interface Cause {
  reason?: Reason;
  failure?: Failure;
}

/** A task that has failed, with its open item. */
export async function dead(
  store: Store,
  task: NewTask = inLane('a'),
  { reason = 'EXHAUSTED', failure = broken }: Cause = {},
): Promise<{ task: Task; item: InboxItem }> {
  const { id } = await put(store, task);
  await failIn(store, task.lane, { reason, failure });
  return { task: await row(store, id), item: await openItem(store, id) };
}

/** Fails whatever is due in a lane. */
export async function failIn(
  store: Store,
  lane: string,
  { reason = 'EXHAUSTED', failure = broken }: Cause = {},
): Promise<void> {
  const { tasks } = await claimDue(store, lane);
  const item = itemOf(reason, failure, lane);
  const ends = tasks.map((task) => ({ ...settlements.failed(task), item }) as never);
  const answers = await store.settle(ends);
  deepEqual(
    answers,
    answers.map(() => 'settled'),
  );
}

/** So many in one lane that failed in one call, oldest item first. */
export async function deadMany(store: Store, count: number, lane = 'a'): Promise<InboxItem[]> {
  await store.insert(Array.from({ length: count }, () => inLane(lane)));
  for (let left = count; left > 0; left -= 100) await failIn(store, lane);
  const { items } = await store.items({ state: 'open', lane, limit: count });
  return items.toReversed();
}

/** A message without a task. */
export async function deadRaw(store: Store, text = 'what'): Promise<InboxItem> {
  const raw = rawItem(text);
  await store.append([raw]);
  const { items } = await store.items({ messageId: raw.messageId, limit: 1 });
  return items[0]!;
}

export async function openItem(store: Store, taskId: number): Promise<InboxItem> {
  const { items } = await store.items({ state: 'open', limit: 1000 });
  const found = items.find((one) => one.taskId === taskId);
  if (!found) throw new Error(`Task ${taskId} has no open item.`);
  return found;
}

export async function itemBy(store: Store, id: number): Promise<InboxItem> {
  const found = await store.item(id);
  if (!found) throw new Error(`Item ${id} is gone.`);
  return found;
}

/** Acts on one item. */
export async function actOne(
  store: Store,
  { id }: { id: number },
  action: ItemAction,
): Promise<ActResult | undefined> {
  const [result, ...more] = await store.act([id], action);
  equal(more.length, 0);
  return result;
}

/** The same message fails once more, elsewhere. */
export async function comeBack(store: Store, task: Task) {
  const [answer] = await store.change([task], (known, nowMs) =>
    accept(arrivalOf(task), known, nowMs, 0),
  );
  return answer;
}

/** The document of a new job: its first version is 1. */
export async function newJob(store: Store, job: number): Promise<void> {
  equal(await store.writeState(jobKey(job), { step: 0 }, 0), true);
}

/** The document of a job, and its version. */
export async function jobDocument(store: Store, job: number): Promise<unknown[] | undefined> {
  const { documents } = await store.readState(jobKey(job));
  const found = documents.find(({ key }) => key === jobKey(job));
  return found && [found.value, found.version];
}

/** Bytes compare as bytes wherever they are, and what is absent is absent. */
export function sameItem(actual: InboxItem | undefined, expected: InboxItem): void {
  deepEqual(actual && withBytes(actual), withBytes(expected));
}

function withBytes({ payload, edit, ...rest }: InboxItem): unknown {
  const change = edit && {
    ...edit,
    ...(edit.payload ? { payload: Uint8Array.from(edit.payload) } : {}),
  };
  return { ...rest, payload: Uint8Array.from(payload), ...(change ? { edit: change } : {}) };
}
