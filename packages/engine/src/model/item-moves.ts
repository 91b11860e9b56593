/** What operators do to an item of the inbox. Pure: every store applies this, by calling it or by a statement that does the same. */
import type { ActResult, Edit, InboxItem, ItemAction } from '../ports/inbox.ts';
import { laneOf, type NewTask, type Task } from './task.ts';
import { uuidOf } from './uuid.ts';

/** What an action writes, all in one commit, and what it answers. Nothing but the answer: nothing changes. */
export interface ItemChange {
  result: ActResult;
  item?: InboxItem;
  /** Its row. */
  task?: Task;
  /**
   * A new row. Where its identity is known already, a row that was cancelled is written again as `revived` says; else
   * nothing of all this is written, and the answer is `conflict`.
   */
  added?: NewTask;
  /**
   * The item belongs to the new row from now on: it must be one. And it must be the last item of the row that is gone:
   * where there is a later one, the message came back since and went its way, and the answer is `gone`.
   */
  isMoved?: true;
}

/** A message comes to a place again where it was cancelled: in the next generation, so that late failures of the last one do not count. */
export function revived(row: Task, added: NewTask, nowMs: number): Task {
  const { due: _due, record: _record, ...task } = added;
  const generation = Math.max(row.generation, task.generation) + 1;
  const times = { createdAtMs: row.createdAtMs, dueAtMs: nowMs, visibleAtMs: nowMs };
  return { ...task, ...times, id: row.id, generation, edited: generation };
}

/** `task`: the row that the item belongs to, if it has one. A failed task has exactly one open item, and only failed ones have. */
export function actOn(
  action: ItemAction,
  item: InboxItem | undefined,
  task: Task | undefined,
  nowMs: number,
): ItemChange {
  if (action.type === 'pass') return { result: 'fault' };
  if (!item) return { result: 'unknown' };
  if (action.type === 'restore') return restore(item, task);
  if (item.state !== 'open') return { result: 'closed' };
  switch (action.type) {
    case 'replay':
      return replay(action, item, task, nowMs);
    case 'edit': {
      const { edit: _, ...rest } = item;
      return { result: 'done', item: action.edit ? { ...rest, edit: action.edit } : rest };
    }
    case 'resolve':
    case 'discard': {
      const state = action.type === 'resolve' ? 'resolved' : 'discarded';
      const over = task && cancelled(task, nowMs);
      return {
        result: 'done',
        item: closed(item, state, action, nowMs),
        ...(over ? { task: over } : {}),
      };
    }
  }
}

/** The same row and message again, in a new generation: its count begins anew. At another destination it is another row. */
function replay(
  action: Extract<ItemAction, { type: 'replay' }>,
  item: InboxItem,
  task: Task | undefined,
  nowMs: number,
): ItemChange {
  const edit = editOf(item, action);
  const mark = {
    ...(action.job === undefined ? {} : { job: action.job }),
    ...(action.trial ? { trial: true as const } : {}),
  };
  const after: InboxItem = {
    ...closed(item, 'replayed', action, nowMs),
    ...(edit ? { edit } : {}),
  };
  if (item.taskId === undefined) {
    if (!edit?.destination) return { result: 'unaddressed' };
    return { result: 'done', item: after, added: { ...readAtLast(item, edit), ...mark } };
  }
  // Nobody but a hand in the database makes these two differ.
  if (task?.status !== 'failed') return { result: 'gone' };
  const again: Task = { ...inNewGeneration(task, nowMs), ...mark };
  const { payload, headers, destination } = edit ?? {};
  const isElsewhere =
    destination &&
    (destination.kind !== task.destination.kind ||
      destination.address !== task.destination.address);
  if (!payload && !headers && !isElsewhere) return { result: 'done', item: after, task: again };
  const changed: Task = {
    ...again,
    ...(payload ? { payload } : {}),
    ...(headers ? { context: { ...task.context, headers } } : {}),
    edited: again.generation,
  };
  if (!isElsewhere) return { result: 'done', item: after, task: changed };
  const added = { ...newOf(changed), destination, lane: laneOf(destination) };
  // The old row stays and knows the message: should it still come back from there, it is not taken for a new one. Of
  // another generation, so that nobody restores an older item of it and has it in both places.
  const left = { ...cancelled(task, nowMs), generation: again.generation };
  return { result: 'done', item: after, task: left, added };
}

function inNewGeneration(task: Task, nowMs: number): Task {
  const {
    lease: _lease,
    verdict: _verdict,
    finishedAtMs: _finished,
    firstAtMs: _first,
    job: _job,
    trial: _trial,
    expiresAtMs,
    ...rest
  } = task;
  return {
    ...rest,
    status: 'pending',
    generation: task.generation + 1,
    attempt: 0,
    uncounted: 0,
    delayMs: 0,
    claims: 0,
    arrived: false,
    cancelling: false,
    // Its line says when it is its turn.
    blocked: task.orderingKey !== undefined,
    dueAtMs: nowMs,
    visibleAtMs: nowMs,
    // One that has passed would send it straight back.
    ...(expiresAtMs !== undefined && expiresAtMs > nowMs ? { expiresAtMs } : {}),
  };
}

/** What the operator wrote on the item, and over it what the action says for all. */
function editOf(item: InboxItem, action: { by?: string; edit?: Edit }): Edit | undefined {
  if (!action.edit) return item.edit;
  const by = action.by ?? item.edit?.by;
  return { ...item.edit, ...action.edit, ...(by === undefined ? {} : { by }) };
}

/** The id of a message that could not be read, once an operator has made something of it. */
export function replayedId({ messageId, id }: Pick<InboxItem, 'messageId' | 'id'>): string {
  return uuidOf(messageId, `${id}`);
}

/** A message that could not be read, with what the operator made of it. The same bytes may come again: the id is this item's. */
function readAtLast(item: InboxItem, { payload, headers, destination }: Edit): NewTask {
  const to = destination ?? item.destination;
  return {
    ...unstored(item),
    messageId: replayedId(item),
    destination: to,
    lane: laneOf(to),
    payload: payload ?? item.payload,
    context: { ...item.context, ...(headers ? { headers } : {}) },
    maxAttempts: RAW_ATTEMPTS,
    edited: 0,
  };
}

/** A message that was not understood says nothing of its attempts: as many as the scheduler's preset has. */
const RAW_ATTEMPTS = 4;

function restore(item: InboxItem, task: Task | undefined): ItemChange {
  if (item.state === 'open') return { result: 'open' };
  if (item.state !== 'resolved' && item.state !== 'discarded') return { result: 'closed' };
  const { closedAtMs: _at, closedBy: _by, ...rest } = item;
  const open: InboxItem = { ...rest, state: 'open' };
  if (item.taskId === undefined) return { result: 'done', item: open };
  if (!task) {
    // Its row was deleted meanwhile, and the item kept what was in it.
    const added: NewTask = { ...unstored(item), status: 'failed' };
    return { result: 'done', item: open, added, isMoved: true };
  }
  if (task.status !== 'cancelled' || task.generation !== item.generation) return { result: 'gone' };
  return { result: 'done', item: open, task: { ...task, status: 'failed' } };
}

/** A row as an item remembers it. */
function unstored(item: InboxItem): NewTask {
  const { messageId, destination, lane, payload, context, attempt, maxAttempts, failure } = item;
  const { generation, orderingKey, taskEdited: edited, taskOnDead: onDead } = item;
  return {
    messageId,
    destination,
    lane,
    payload,
    ...(context ? { context } : {}),
    ...(orderingKey === undefined ? {} : { orderingKey }),
    ...(onDead ? { onDead } : {}),
    ...(edited === undefined ? {} : { edited }),
    status: 'pending',
    attempt,
    maxAttempts: Math.max(1, maxAttempts),
    uncounted: 0,
    delayMs: 0,
    generation,
    claims: 0,
    arrived: false,
    cancelling: false,
    blocked: orderingKey !== undefined,
    failure,
    due: { inMs: 0 },
  };
}

function newOf(task: Task): NewTask {
  const {
    id: _id,
    dueAtMs: _due,
    visibleAtMs: _visible,
    createdAtMs: _created,
    firstAtMs: _first,
    finishedAtMs: _finished,
    lease: _lease,
    ...rest
  } = task;
  return { ...rest, due: { inMs: 0 } };
}

/** It was back in the inbox: the job that had sent it must not take it for one that was cancelled on its way. */
function cancelled(task: Task, nowMs: number): Task {
  const { job: _job, trial: _trial, ...rest } = task;
  return { ...rest, status: 'cancelled', finishedAtMs: nowMs };
}

function closed(
  item: InboxItem,
  state: InboxItem['state'],
  { by }: { by?: string },
  nowMs: number,
): InboxItem {
  const { closedBy: _, ...rest } = item;
  return { ...rest, state, closedAtMs: nowMs, ...(by === undefined ? {} : { closedBy: by }) };
}
