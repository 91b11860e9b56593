import { EngineError } from '../errors.ts';
import type { ActResult, InboxItem, ItemAction } from '../ports/inbox.ts';

const done = {
  replay: 'replayed',
  edit: 'edited',
  resolve: 'resolved',
  discard: 'discarded',
  restore: 'restored',
  pass: 'passed over',
} as const;

/** Why an item could not be acted on, what is there instead, and a way out. */
export function refusal(
  id: number,
  result: ActResult,
  action: ItemAction,
  item: InboxItem | undefined,
): EngineError {
  if (result === 'unknown') return unknownItem(id);
  if (result === 'unaddressed') {
    return new EngineError(
      'NO_DESTINATION',
      `Item ${id} is a message that could not be read. Say where it goes: replay(${id}, { to, payload }).`,
    );
  }
  if (result === 'conflict') {
    return new EngineError(
      'ITEM_CONFLICT',
      `The message of item ${id} is already known at that destination, as a task that waits, was done or has failed: look at it with get(id, to).`,
    );
  }
  if (result === 'gone') {
    return new EngineError(
      'ITEM_CLOSED',
      `The message of item ${id} came back meanwhile: it has another item, or is on its way.`,
    );
  }
  return new EngineError(
    'ITEM_CLOSED',
    `Item ${id} cannot be ${done[action.type]}: ${standing(item)}`,
  );
}

export function unknownItem(id: number): EngineError {
  return new EngineError('ITEM_UNKNOWN', `There is no item ${id} in the inbox.`);
}

/** What is there, in words. */
function standing(item: InboxItem | undefined): string {
  if (!item) return 'it is not there any more.';
  if (item.state === 'open') return 'it is open.';
  const { closedAtMs, closedBy } = item;
  const when = closedAtMs === undefined ? '' : ` at ${new Date(closedAtMs).toISOString()}`;
  const who = closedBy === undefined ? '' : ` by ${closedBy}`;
  return `it was ${item.state}${when}${who}.`;
}
