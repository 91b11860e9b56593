import type { Random } from 'redrive';
import type { Reason } from '../task.ts';
import type { settlements } from './fixtures.ts';

/**
 * One call of a store, as data: tasks by their number, leases by how long ago they were given, times as words. So it
 * means the same to two stores with ids and clocks of their own, and still means something when others are left out.
 */
export type Operation =
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
  | { type: 'append'; who: number; announced: boolean }
  | { type: 'wait'; ms: number };

/** Nothing, or hours: what a real clock cannot blur. */
type Span = 0 | 1 | 2;
type How = keyof typeof settlements;

/** A task by its number, or that of a lease that was given some leases ago. */
export type Who = number | { ago: number };

export interface Draft {
  who: number;
  due: 'past' | Span;
  expires?: 'past' | Span;
  attempt: number;
  recorded: boolean;
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
}

export const TASKS = 20;
export const LANES = 3;

/** Random operations in a mix that brings tasks into every state. By a clock that can be moved, time passes too. */
export function operationsOf(random: Random, count: number, canWait: boolean): Operation[] {
  return Array.from({ length: count }, () => pick(random, makers)(new Dice(random), canWait));
}

type Maker = (dice: Dice, canWait: boolean) => Operation;

const makers: readonly Maker[] = [
  insert,
  insert,
  (dice) => ({ type: 'submit', task: draft(dice) }),
  arrive,
  arrive,
  (dice) => ({ type: 'cancel', who: who(dice) }),
  (dice) => ({ type: 'expedite', who: who(dice) }),
  claimDue,
  claimDue,
  claimDue,
  (dice, canWait) => ({
    type: 'claim',
    from: 'lost',
    // Which of several that were lost together comes first is nobody's promise.
    limit: canWait ? 1 + dice.below(5) : 100,
    lease: dice.span(),
  }),
  (dice, canWait) => ({
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
  (dice) => ({ type: 'append', who: dice.below(5), announced: dice.one(2) }),
  (dice, canWait) => ({ type: 'wait', ms: canWait ? dice.below(90) * 60_000 : 0 }),
];

function insert(dice: Dice): Operation {
  const tasks = dice.some(4, () => draft(dice));
  // In the order of their message ids: a store may sort a batch so, and number it then.
  return { type: 'insert', tasks: tasks.toSorted((a, b) => a.who - b.who) };
}

function who(dice: Dice): Who {
  return dice.one(2) ? dice.below(TASKS) : { ago: dice.below(6) };
}

function draft(dice: Dice): Draft {
  const due = dice.of<Draft['due']>('past', 0, 0, 1);
  const base = { who: dice.below(TASKS), due, attempt: dice.below(3), recorded: dice.one(3) };
  return dice.one(3) ? { ...base, expires: dice.of<'past' | Span>('past', 1, 2) } : base;
}

function arrive(dice: Dice): Operation {
  // One verdict at most: what is due by the same call may come in any order.
  const verdict = dice.one(5) ? dice.of<Reason>('PERMANENT', 'TOO_FAR') : undefined;
  const arrivals = dice.some(3, (): Coming => ({
    who: who(dice),
    attempt: 1 + dice.below(3),
    ours: dice.one(3),
    permanent: dice.one(8),
    ...(dice.one(3) ? { token: dice.below(3) } : {}),
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

class Dice {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  below(count: number): number {
    return Math.floor(this.#random() * count);
  }

  /** True one time in so many. */
  one(inHowMany: number): boolean {
    return this.below(inHowMany) === 0;
  }

  of<T>(...choices: readonly T[]): T {
    return pick(this.#random, choices);
  }

  span(): Span {
    return this.of<Span>(0, 1, 2);
  }

  some<T>(most: number, make: () => T): T[] {
    return Array.from({ length: 1 + this.below(most) }, make);
  }
}

function pick<T>(random: Random, choices: readonly T[]): T {
  return choices[Math.floor(random() * choices.length)]!;
}
