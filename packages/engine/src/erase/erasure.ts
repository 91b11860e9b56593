import type { InboxItem } from '../ports/inbox.ts';
import type { NotReached, Store } from '../ports/store.ts';

/** What `erase` answers. */
export interface Erased {
  /** Where something of the message may still be, and what can be done about it. */
  notReached: NotReached[];
}

/** What an erase has to know of the engine around the store. */
export interface Surroundings {
  /** Messages go through a broker, in this process or in another one. */
  hasBroker: boolean;
  /** Items that enter the inbox are told to a hook, such as a webhook. */
  hasHook: boolean;
}

/** What an erase did in the store and in the audit trail. */
interface EraseResult {
  item: InboxItem;
  /** The note on the group of its item. */
  note: string | undefined;
  /** The sink of the audit trail could not erase. */
  isTrailKept: boolean;
  store: Pick<Store, 'capabilities'>;
  /** What the store itself says. */
  ofStore: readonly NotReached[];
}

/** Where something may be left: only what applies to this message and this engine. */
export function notReached(
  { hasBroker, hasHook }: Surroundings,
  result: EraseResult,
): NotReached[] {
  const { item, note, isTrailKept, store, ofStore } = result;
  return [
    ...ofStore,
    ...(isTrailKept ? [trail] : []),
    ...(hasBroker ? [brokerQueues] : []),
    ...(item.taskId === undefined ? [] : [destination(item.lane)]),
    ...(hasHook ? [hook] : []),
    ...(note === undefined ? [] : [groupNote(item.fingerprint)]),
    ...(item.job === undefined ? [] : [bulkJob(item.job)]),
    logs,
    ...(store.capabilities.durable ? [backups] : []),
  ];
}

const trail: NotReached = {
  what: 'audit_sink',
  why: 'The audit trail goes to a sink that cannot erase, such as a file, or is strict, so that its events do not name their message.',
  todo: 'Remove the lines of this message from the trail yourself, or delete trails that are past their retention.',
};

const brokerQueues: NotReached = {
  what: 'broker',
  why: 'Messages that were published stay in the broker: in the queue of the destination, in the review queue (manual-review.pending), in redrive.oversized, or in another queue.',
  todo: 'Look for the message id in these queues, and remove the message there.',
};

const hook: NotReached = {
  what: 'entry_hook',
  why: 'The inbox hook or webhook received the text of the failure. A webhook also has that text in the finished task that delivered it.',
  todo: 'Erase it at the receiver. The finished task is deleted after its retention.',
};

const logs: NotReached = {
  what: 'logs',
  why: 'Logs and traces name message ids, and those of handlers, proxies and receivers may have more.',
  todo: 'Delete logs and traces as your retention rules say.',
};

const backups: NotReached = {
  what: 'backups',
  why: 'Backups and snapshots of the store from before the erase still have the message.',
  todo: 'Delete the backups, or erase the message again after a restore.',
};

function destination(lane: string): NotReached {
  return {
    what: 'destination',
    why: `Redrive cannot take back what was delivered to ${lane}.`,
    todo: 'Erase it at the destination, if it was delivered.',
  };
}

function groupNote(fingerprint: string): NotReached {
  return {
    what: 'group_note',
    why: `The group ${fingerprint} has a note that an operator wrote. It belongs to all items of the group, and stands in the audit trail too.`,
    todo: 'Read the note, and change it if it says something of the message.',
  };
}

function bulkJob(job: number): NotReached {
  return {
    what: 'bulk_filter',
    why: `Bulk job ${job} took the message. The audit trail keeps the search text and the destination that the operator gave to the job.`,
    todo: 'Read the operator_action of the job. Its text stays as long as the trail does.',
  };
}
