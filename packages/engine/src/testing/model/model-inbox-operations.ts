import type { Failure } from 'redrive';
import type { ItemState } from '../../ports/inbox.ts';
import type { Reason } from '../../model/task.ts';
import type { Dice, Span } from '../dice.ts';
import { LANES, type Means, TASKS, type Who, anyone } from './model-identities.ts';

/** One call of an inbox, as data: items and groups by their place among those that are there. */
export type InboxOperation =
  | { type: 'append'; who: number; announced: boolean }
  | { type: 'act'; among: Among; items: readonly number[]; act: Act; under?: Under }
  | { type: 'find'; filter: Filter }
  | { type: 'erase'; who: Who | { raw: number } }
  | { type: 'freeze'; under: Under; filter: Filter; limit: number }
  | { type: 'forget'; job: number }
  | { type: 'annotate'; group: number; note?: string; owner?: string }
  | { type: 'prune items'; age: Span };

/** `closed`: what can be opened again. */
export type Among = 'open' | 'closed' | 'all';

/** As its runner does it, or one who comes too late. */
export interface Under {
  job: number;
  stale: boolean;
}

export type Act =
  | { type: 'replay'; trial?: true; edit?: Rewrite }
  | { type: 'edit'; edit?: Rewrite }
  | { type: 'resolve' | 'discard' | 'restore'; by?: string }
  | { type: 'pass' };

/** What an operator changes. */
export interface Rewrite {
  payload?: number;
  header?: number;
  lane?: number;
}

export interface Filter {
  state?: ItemState;
  reason?: Reason;
  class?: Failure['class'];
  lane?: number;
  key?: number;
  text?: string;
  group?: number;
  who?: number;
  items?: readonly number[];
}

export const JOBS = 3;
const RAW = 2;

type Maker = (dice: Dice, means: Means) => InboxOperation;

export const inboxMakers: readonly Maker[] = [
  (dice) => ({ type: 'append', who: dice.below(RAW), announced: dice.one(2) }),
  act,
  act,
  act,
  act,
  act,
  act,
  (dice) => ({ type: 'find', filter: filter(dice) }),
  (dice) => ({ type: 'erase', who: dice.one(4) ? { raw: dice.below(RAW) } : anyone(dice) }),
  (dice, { canWait }) => ({
    type: 'freeze',
    under: under(dice),
    filter: dice.one(2) ? {} : filter(dice),
    // Which of several that failed together is the newer item is nobody's promise.
    limit: canWait ? 1 + dice.below(5) : 100,
  }),
  (dice) => ({
    type: 'annotate',
    group: dice.below(4),
    ...(dice.one(2) ? { note: dice.of('', 'a', 'b') } : {}),
    ...(dice.one(2) ? { owner: dice.of('', 'eva', 'tom') } : {}),
  }),
  (dice) =>
    dice.one(2)
      ? { type: 'prune items', age: dice.span() }
      : { type: 'forget', job: dice.below(JOBS) },
];

function act(dice: Dice): InboxOperation {
  const isRestore = dice.one(5);
  return {
    type: 'act',
    among: dice.one(5) ? 'all' : isRestore ? 'closed' : 'open',
    items: dice.some(4, () => dice.below(12)),
    act: isRestore ? { type: 'restore' } : action(dice),
    ...(dice.one(2) ? { under: under(dice) } : {}),
  };
}

function under(dice: Dice): Under {
  return { job: dice.below(JOBS), stale: dice.one(8) };
}

function action(dice: Dice): Act {
  switch (dice.below(6)) {
    case 0:
    case 1:
      return { type: 'replay', ...(dice.one(4) ? { trial: true } : {}) };
    case 2:
      return { type: 'replay', edit: rewrite(dice) };
    case 3:
      return { type: 'edit', ...(dice.one(4) ? {} : { edit: rewrite(dice) }) };
    case 4:
      return { type: dice.of('resolve', 'discard'), ...(dice.one(2) ? { by: 'eva' } : {}) };
    default:
      return dice.one(4) ? { type: 'pass' } : { type: 'replay' };
  }
}

function rewrite(dice: Dice): Rewrite {
  return {
    ...(dice.one(2) ? { payload: dice.below(3) } : {}),
    ...(dice.one(3) ? { header: dice.below(3) } : {}),
    ...(dice.one(2) ? { lane: dice.below(LANES) } : {}),
  };
}

function filter(dice: Dice): Filter {
  const states: readonly ItemState[] = ['open', 'replayed', 'resolved', 'discarded', 'erased'];
  const parts: readonly Filter[] = [
    { state: dice.of(...states) },
    { reason: dice.of<Reason>('EXHAUSTED', 'PERMANENT', 'CAME_BACK', 'UNREADABLE') },
    { class: dice.of<Failure['class']>('transient', 'technical') },
    { lane: dice.below(LANES) },
    { key: dice.below(2) },
    { text: dice.of('refused', 'BROKEN', 'e', '%', 'ERASED') },
    { group: dice.below(6) },
    { who: dice.below(TASKS) },
    { items: dice.some(5, () => dice.below(12)) },
  ];
  const [one, two] = [dice.of(...parts), dice.of(...parts)];
  return dice.one(3) ? { ...one, ...two } : one;
}
