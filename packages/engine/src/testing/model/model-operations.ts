import type { Random } from 'redrive';
import type { Reason } from '../../model/task.ts';
import { Dice, type Span } from '../dice.ts';
import type { settlements } from '../fixtures.ts';
import { LANES, type Means, TASKS, type Who, anyone } from './model-identities.ts';
import { type InboxOperation, inboxMakers } from './model-inbox-operations.ts';

/**
 * One call of a store, as data: tasks by their number, leases by how long ago they were given, times as words. So it
 * means the same to two stores with ids and clocks of their own, and still means something when others are left out.
 */
export type Operation =
  | InboxOperation
  | { type: 'insert'; tasks: readonly Draft[] }
  | { type: 'submit'; task: Draft }
  | { type: 'arrive'; arrivals: readonly Coming[] }
  | { type: 'cancel' | 'expedite'; who: Who }
  | {
      type: 'claim';
      from: 'due';
      lanes: readonly number[];
      limit: number;
      tasksOfBytes: number;
      lease: Span;
    }
  | { type: 'claim'; from: 'lost' | 'expired'; limit: number; lease: Span }
  | { type: 'settle'; ends: readonly { ago: number; how: How; soon: boolean }[] }
  | { type: 'renew'; ago: readonly number[]; lease: Span }
  | { type: 'abandon'; ago: number }
  | { type: 'prune'; age: Span }
  | { type: 'state'; key: number; value: number; stale: boolean }
  | { type: 'outbox'; lease: Span; drop: boolean }
  | { type: 'wait'; ms: number };

type How = keyof typeof settlements;

export interface Draft {
  who: number;
  due: 'past' | Span;
  expires?: 'past' | Span;
  attempt: number;
  recorded: boolean;
  /** Its line. */
  key?: number;
  release?: true;
}

export interface Coming {
  who: Who;
  attempt: number;
  /** The same token again is the same arrival. */
  token?: number;
  verdict?: Reason;
  /** The count came back from us. */
  ours: boolean;
  permanent: boolean;
  key?: number;
}

/** Random operations in a mix that brings tasks into every state. By a clock that can be moved, time passes too. */
export function operationsOf(random: Random, count: number, means: Means): Operation[] {
  const dice = new Dice(random);
  return Array.from({ length: count }, () =>
    dice.of<Maker>(...makers, ...inboxMakers)(dice, means),
  );
}

type Maker = (dice: Dice, means: Means) => Operation;

const KEYS = 2;

const makers: readonly Maker[] = [
  insert,
  insert,
  (dice, means) => ({ type: 'submit', task: draft(dice, isOrdered(dice, means)) }),
  arrive,
  arrive,
  (dice) => ({ type: 'cancel', who: anyone(dice) }),
  (dice) => ({ type: 'expedite', who: anyone(dice) }),
  claimDue,
  claimDue,
  claimDue,
  (dice, { canWait }) => ({
    type: 'claim',
    from: 'lost',
    // Which of several that were lost together comes first is nobody's promise.
    limit: canWait ? 1 + dice.below(5) : 100,
    lease: dice.span(),
  }),
  (dice, { canWait }) => ({
    type: 'claim',
    from: 'expired',
    limit: canWait ? 1 + dice.below(3) : 100,
    lease: dice.span(),
  }),
  settle,
  settle,
  settle,
  settle,
  (dice) => ({ type: 'renew', ago: dice.some(3, () => dice.below(8)), lease: dice.span() }),
  (dice) => ({ type: 'abandon', ago: dice.below(5) }),
  (dice) => ({ type: 'prune', age: dice.span() }),
  (dice) => ({ type: 'state', key: dice.below(3), value: dice.below(10), stale: dice.one(4) }),
  (dice) => ({ type: 'outbox', lease: dice.span(), drop: dice.one(2) }),
  (dice, { canWait }) => ({ type: 'wait', ms: canWait ? dice.below(90) * 60_000 : 0 }),
];

function insert(dice: Dice, means: Means): Operation {
  const ordered = isOrdered(dice, means);
  const tasks = dice.some(4, () => draft(dice, ordered));
  // In the order of their message ids: a store may sort a batch so, and number it then. Not where order is promised.
  return { type: 'insert', tasks: ordered ? tasks : tasks.toSorted((a, b) => a.who - b.who) };
}

/** A whole batch or nothing of it: how those with and without a key are numbered among each other is nobody's promise. */
function isOrdered(dice: Dice, { hasOrder }: Means): boolean {
  return dice.one(2) && hasOrder;
}

function draft(dice: Dice, ordered: boolean): Draft {
  const due = dice.of<Draft['due']>('past', 0, 0, 1);
  const base = {
    who: dice.below(TASKS),
    due,
    attempt: dice.below(3),
    recorded: dice.one(3),
    ...(ordered ? { key: dice.below(KEYS) } : {}),
    ...(ordered && dice.one(3) ? { release: true as const } : {}),
  };
  return dice.one(3) ? { ...base, expires: dice.of<'past' | Span>('past', 1, 2) } : base;
}

function arrive(dice: Dice, means: Means): Operation {
  const ordered = isOrdered(dice, means);
  // One verdict at most: what is due by the same call may come in any order.
  const verdict = dice.one(3) ? dice.of<Reason>('PERMANENT', 'TOO_FAR') : undefined;
  const arrivals = dice.some(3, (): Coming => ({
    who: anyone(dice),
    attempt: 1 + dice.below(3),
    ours: dice.one(3),
    permanent: dice.one(8),
    ...(dice.one(3) ? { token: dice.below(3) } : {}),
    ...(ordered ? { key: dice.below(KEYS) } : {}),
  }));
  return {
    type: 'arrive',
    arrivals: arrivals.map((one, i) => (i === 0 && verdict ? { ...one, verdict } : one)),
  };
}

function claimDue(dice: Dice): Operation {
  const isShort = dice.one(4);
  // Where bytes are short, which of several lanes gets the last of them is nobody's promise.
  const lanes = isShort ? [dice.below(LANES)] : [0, 1, 2].filter(() => !dice.one(4));
  const limit = 1 + dice.below(5);
  return {
    type: 'claim',
    from: 'due',
    lanes,
    limit,
    tasksOfBytes: isShort ? dice.below(3) : 100,
    lease: dice.span(),
  };
}

const likely: readonly How[] = [
  'done',
  'done',
  'retried',
  'retried',
  'retried',
  'pending',
  'pending',
  'pending',
  'released',
  'released',
  'cancelled',
  'failed',
  'failed',
  'failed',
  'failed',
];

function settle(dice: Dice): Operation {
  const ends = dice.some(4, () => ({
    ago: dice.below(6),
    how: dice.of<How>(...likely),
    soon: false,
  }));
  // One at most is due at once: those that become due by the same call may come in any order.
  return { type: 'settle', ends: ends.map((one, i) => ({ ...one, soon: i === 0 })) };
}
