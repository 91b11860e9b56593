import type { Task } from '../../model/task.ts';
import type { Dice } from '../dice.ts';

export const TASKS = 20;
export const LANES = 3;

/** More than there will ever be. */
export const ALL = 1000;

export type Key = Pick<Task, 'messageId' | 'destination'>;

/** The first ones are one message for several queues. Their order is that of their message ids. */
export function identityOf(who: number): Key {
  const message = who < LANES ? 0 : who;
  const destination = { kind: 'queue', address: `q${who % LANES}` };
  return { messageId: numbered(message), destination };
}

export function laneName(lane: number): string {
  return `queue:q${lane}`;
}

/** A UUID with that number. */
export function numbered(n: number): string {
  return `${n.toString(16).padStart(8, '0')}-0000-4000-8000-000000000000`;
}

/** A task by its number, or that of a lease that was given some leases ago. */
export type Who = number | { ago: number };

export function anyone(dice: Dice): Who {
  return dice.one(2) ? dice.below(TASKS) : { ago: dice.below(6) };
}

/** What the histories may make use of. */
export interface Means {
  /** Time can be moved. */
  canWait: boolean;
  hasOrder: boolean;
}
