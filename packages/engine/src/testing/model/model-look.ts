import type { Group, InboxItem, JobTally } from '../../ports/inbox.ts';
import type { Store } from '../../ports/store.ts';
import { ALL } from './model-identities.ts';
import { itemsOf } from './model-inbox.ts';
import { JOBS } from './model-inbox-operations.ts';
import { compare, type Words } from './model-words.ts';

/** Everything that can be seen of a store. */
export async function look(store: Store, words: Words): Promise<unknown> {
  const { nowMs, documents } = await store.readState('');
  words.nowMs = nowMs;
  const items = await itemsOf(store, words);
  const tasks = (await store.list({ limit: ALL })).toSorted(words.byName);
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const attempts = await Promise.all(tasks.map(({ id }) => store.attempts(id)));
  const groups = await store.groups({ all: true, limit: ALL });
  const open = await store.groups({ limit: ALL });
  const jobs = Array.from({ length: JOBS }, (_, job) => lookAtJob(store, words, job, items));
  return {
    tasks: tasks.map((task) => words.task(task)),
    attempts: attempts.map((list) => list.map((one) => ({ ...one, atMs: words.when(one.atMs) }))),
    items: items.map((item) => words.item(item, byId)),
    groups: groups
      .filter((group) => isKept(group, items))
      .toSorted((a, b) => compare(a.fingerprint, b.fingerprint))
      .map((group) => words.group(group, items)),
    open: open.map(({ fingerprint }) => fingerprint).toSorted(),
    jobs: await Promise.all(jobs),
    lanes: (await store.lanes({ limit: ALL })).map(({ lane, inMs }) => [lane, words.howLong(inMs)]),
    state: documents.map(({ key, value, version }) => [key, value, version]),
  };
}

/** When others are forgotten is nobody's promise. */
function isKept({ fingerprint, note, owner }: Group, items: readonly InboxItem[]): boolean {
  const isWrittenOn = note !== undefined || owner !== undefined;
  return isWrittenOn || items.some((item) => item.fingerprint === fingerprint);
}

async function lookAtJob(
  store: Store,
  words: Words,
  job: number,
  items: readonly InboxItem[],
): Promise<unknown> {
  const members = await store.members({ job, after: 0, limit: ALL });
  const places = new Map(items.map(({ id }, place) => [id, place]));
  return {
    members: members
      .map(({ itemId, result = 'none' }) => [places.get(itemId) ?? -1, result] as const)
      .toSorted((a, b) => a[0] - b[0] || compare(a[1], b[1])),
    tally: tallyWords(await store.tally(job, ALL), words, job, items),
    upTo: (({ underway, taken }) => [underway, taken])(await store.tally(job, 2)),
  };
}

function tallyWords(
  { failure, takenAtMs, ...counts }: JobTally,
  words: Words,
  job: number,
  items: readonly InboxItem[],
): unknown {
  const back = items.filter((item) => item.job === job);
  // Which of several that came back together is the last is nobody's promise.
  const isClear = new Set(back.map((item) => JSON.stringify(item.failure.code))).size === 1;
  return { ...counts, takenAtMs: words.when(takenAtMs), failure: isClear ? failure : undefined };
}
