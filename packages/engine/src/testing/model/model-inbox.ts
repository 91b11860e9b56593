import {
  type ActResult,
  type Edit,
  type Frozen,
  type InboxItem,
  type ItemAction,
  type ItemFilter,
  jobKey,
} from '../../ports/inbox.ts';
import type { Store } from '../../ports/store.ts';
import { bytes, HOUR_MS, outboxMessage, rawItem } from '../fixtures.ts';
import type {
  Act,
  Among,
  Filter,
  InboxOperation,
  Rewrite,
  Under,
} from './model-inbox-operations.ts';
import { ALL, identityOf, laneName, numbered } from './model-identities.ts';
import type { Words } from './model-words.ts';

/** Does what the operation says of an inbox, and answers in words. */
export async function applyToInbox(
  store: Store,
  words: Words,
  operation: Exclude<InboxOperation, { type: 'erase' }>,
): Promise<unknown> {
  switch (operation.type) {
    case 'append': {
      const raw = rawItem(`raw ${operation.who}`, { messageId: rawId(operation.who) });
      const { items } = await store.items({ messageId: raw.messageId, limit: 1 });
      const isNew = items.length === 0 && operation.announced;
      return store.append([isNew ? { ...raw, outbox: outboxMessage(raw.messageId) } : raw]);
    }
    case 'act': {
      const ids = chosen(await among(store, words, operation.among), operation.items);
      const action = actionOf(operation.act, operation.under);
      if (!operation.under) return store.act(ids, action);
      const next = (results: ActResult[]) => ({ results });
      return store.act(ids, action, { ...(await holdOf(store, operation.under)), next });
    }
    case 'find': {
      const filter = await filterOf(store, words, operation.filter);
      const found = await itemsOf(store, words, filter);
      return { names: found.map((item) => words.name(item)), count: await store.count(filter) };
    }
    case 'freeze': {
      const filter = await filterOf(store, words, operation.filter);
      const next = ({ added, next: more }: Frozen) => ({ added, isMore: more !== undefined });
      const page = { before: Number.MAX_SAFE_INTEGER, limit: operation.limit };
      const hold = { ...(await holdOf(store, operation.under)), next };
      const frozen = await store.freeze(filter, page, hold);
      return frozen && next(frozen);
    }
    case 'forget':
      return store.forgetJob(operation.job, ALL);
    case 'annotate': {
      const { type: _, group, ...by } = operation;
      return store.annotate(await groupOf(store, group), by);
    }
    case 'prune items':
      return store.pruneItems({ closedForMs: operation.age * HOUR_MS, limit: ALL });
  }
}

export function rawId(who: number): string {
  return numbered(100 + who);
}

/** All that match, in the same order in both stores. */
export async function itemsOf(
  store: Store,
  words: Words,
  filter: ItemFilter = {},
): Promise<InboxItem[]> {
  const { items } = await store.items({ ...filter, limit: ALL });
  words.meet(items);
  return items.toSorted(words.byItem);
}

async function among(store: Store, words: Words, which: Among): Promise<InboxItem[]> {
  const items = await itemsOf(store, words, which === 'open' ? { state: 'open' } : {});
  if (which !== 'closed') return items;
  return items.filter(({ state }) => state === 'resolved' || state === 'discarded');
}

/** The job as its runner knows it, begun if there is none. */
async function holdOf(store: Store, { job, stale }: Under) {
  await store.writeState(jobKey(job), { started: true }, 0);
  const { documents } = await store.readState(jobKey(job));
  const { version } = documents.find(({ key }) => key === jobKey(job))!;
  return { job, version: stale ? version - 1 : version };
}

function actionOf(act: Act, under: Under | undefined): ItemAction {
  if (act.type === 'edit') return { type: 'edit', edit: act.edit && editOf(act.edit) };
  if (act.type !== 'replay') return act;
  return {
    type: 'replay',
    ...(act.trial ? { trial: true } : {}),
    ...(under ? { job: under.job } : {}),
    ...(act.edit ? { edit: editOf(act.edit) } : {}),
  };
}

function editOf({ payload, header, lane }: Rewrite): Edit {
  return {
    ...(payload === undefined ? {} : { payload: bytes(`rewritten${payload}`) }),
    ...(header === undefined ? {} : { headers: { 'x-edit': `${header}` } }),
    ...(lane === undefined ? {} : { destination: { kind: 'queue', address: `q${lane}` } }),
  };
}

async function filterOf(store: Store, words: Words, filter: Filter): Promise<ItemFilter> {
  const { lane, key, group, who, items, ...rest } = filter;
  return {
    ...rest,
    ...(lane === undefined ? {} : { lane: laneName(lane) }),
    ...(key === undefined ? {} : { orderingKey: `k${key}` }),
    ...(group === undefined ? {} : { fingerprint: await groupOf(store, group) }),
    ...(who === undefined ? {} : { messageId: identityOf(who).messageId }),
    ...(items ? { ids: chosen(await itemsOf(store, words), items) } : {}),
  };
}

/** One of those that have items: the others may be forgotten already. */
async function groupOf(store: Store, place: number): Promise<string> {
  const { items } = await store.items({ limit: ALL });
  const fingerprints = [...new Set(items.map(({ fingerprint }) => fingerprint))].toSorted();
  return fingerprints[place] ?? 'no such group';
}

function chosen(items: readonly InboxItem[], places: readonly number[]): number[] {
  return places.flatMap((place) => items[place % Math.max(1, items.length)]?.id ?? []);
}
