/** The state machine of one delivery: which moves there are, as data. */
import { NotificationError } from '../errors.ts';
import type { DeliveryState, NotificationStatus } from './notification.ts';

/** Where a delivery begins, before anything was reported. */
export type Begin = '[*]';

/** The arrows of the document. */
export const documentMoves = [
  ['[*]', 'DeliveryFailed'],
  ['DeliveryFailed', 'AssessingRetry'],
  ['AssessingRetry', 'SchedulingRetry'],
  ['AssessingRetry', 'PermanentFailure'],
  ['SchedulingRetry', 'AwaitingRetry'],
  ['AwaitingRetry', 'Retrying'],
  ['Retrying', 'DeliverySucceeded'],
  ['Retrying', 'DeliveryFailed'],
] as const satisfies readonly Move[];

/** Those that the document lacks, each for a case that it does not draw. */
export const addedMoves = [
  /** The first delivery worked. */
  ['[*]', 'DeliverySucceeded'],
  /** The device is inactive. */
  ['AssessingRetry', 'Skipped'],
  /** The next retry would be due after the notification's end. */
  ['AssessingRetry', 'Expired'],
  /** The retry could not start before the notification's end. */
  ['AwaitingRetry', 'Expired'],
  /** Quiet hours began while it waited. */
  ['AwaitingRetry', 'AwaitingRetry'],
  /** An attempt that was believed not to have begun has failed elsewhere. */
  ['AwaitingRetry', 'DeliveryFailed'],
  /** A provider may deliver although it answered with an error: the success comes late. */
  ['AwaitingRetry', 'DeliverySucceeded'],
  /** Its worker was lost: the same attempt begins again. */
  ['Retrying', 'Retrying'],
  /** Nothing was sent: the same attempt waits again. */
  ['Retrying', 'AwaitingRetry'],
  /** It was handed over, and nobody reported until the notification's end. */
  ['Retrying', 'Expired'],
  /** An operator's replay. */
  ['PermanentFailure', 'SchedulingRetry'],
  ['Skipped', 'SchedulingRetry'],
] as const satisfies readonly Move[];

type Move = readonly [from: DeliveryState | Begin, to: DeliveryState];

const legal = new Map<Move[0], readonly DeliveryState[]>();
for (const [from, to] of [...documentMoves, ...addedMoves])
  legal.set(from, [...(legal.get(from) ?? []), to]);

export function mayMove(from: DeliveryState | Begin, to: DeliveryState): boolean {
  return legal.get(from)?.includes(to) ?? false;
}

/** Goes through these states in one write, and gives the last one. Throws where an arrow is missing. */
export function walk<To extends DeliveryState>(
  from: DeliveryState | Begin,
  ...way: readonly [...DeliveryState[], To]
): To {
  let at = from;
  for (const to of way) {
    if (!mayMove(at, to)) {
      throw new NotificationError('ILLEGAL_MOVE', `A delivery cannot go from ${at} to ${to}.`);
    }
    at = to;
  }
  return at as To;
}

const finalStates = ['DeliverySucceeded', 'PermanentFailure', 'Skipped', 'Expired'] as const;
type FinalState = (typeof finalStates)[number];

export function isFinal(state: DeliveryState): state is FinalState {
  return (finalStates as readonly DeliveryState[]).includes(state);
}

export const statusByState: Readonly<Record<DeliveryState, NotificationStatus>> = {
  DeliveryFailed: 'retrying',
  AssessingRetry: 'retrying',
  SchedulingRetry: 'retrying',
  AwaitingRetry: 'retrying',
  Retrying: 'retrying',
  DeliverySucceeded: 'delivered',
  PermanentFailure: 'failed',
  Skipped: 'skipped',
  Expired: 'expired',
};
