/** What is asked of the engine about tasks, lanes and events, checked at the edge. */
import type { LaneQuery } from '../engine.ts';
import { EngineError } from '../errors.ts';
import { knownId, checkedLimit } from '../intake/submission.ts';
import type { TaskStatus } from '../model/task.ts';
import type { AuditQuery } from '../ports/audit.ts';
import type { TaskQuery } from '../ports/schedule.ts';
import { checkedPlace, checkedText, checkNames } from './selection.ts';

const statuses = [
  'pending',
  'retried',
  'done',
  'failed',
  'cancelled',
] as const satisfies readonly TaskStatus[];

export function checkedTaskQuery(query: TaskQuery): TaskQuery {
  checkNames(
    query,
    ['status', 'lane', 'exceptKind', 'messageId', 'before', 'limit'],
    'A query of tasks',
  );
  const { status, lane, messageId, before } = query;
  if (status !== undefined && !statuses.includes(status)) {
    const message = `There is no status ${JSON.stringify(status)}. A task is one of ${statuses.join(', ')}.`;
    const fault = { path: 'status', code: 'INVALID_FILTER', message } as const;
    throw new EngineError('INVALID_FILTER', message, { faults: [fault] });
  }
  if (lane !== undefined) checkedText(lane, 'lane');
  if (before !== undefined) checkedPlace(before, 'before');
  const id = messageId === undefined ? {} : { messageId: knownId(messageId) };
  return { ...query, ...id, limit: checkedLimit(query.limit) };
}

export function checkedLaneQuery(query: LaneQuery = {}): LaneQuery {
  const names = ['state', 'kind', 'prefix', 'blocked', 'after', 'limit'];
  checkNames(query, names, 'A query of lanes');
  return query;
}

export function checkedAuditQuery(query: AuditQuery): AuditQuery {
  const names = ['before', 'limit', 'type', 'messageId', 'fromMs', 'toMs'];
  checkNames(query, names, 'A query of audit events');
  return { ...query, limit: checkedLimit(query.limit) };
}
