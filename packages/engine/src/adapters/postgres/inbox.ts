import type { Failure } from 'redrive';
import type { InboxItem, ItemQuery, RawItem } from '../../ports/inbox.ts';
import type { NewOutboxMessage } from '../../ports/schedule.ts';
import type { AttemptRecord, Reason } from '../../task.ts';
import { Params, rowsOf } from './batch.ts';
import { isUuid } from './columns.ts';
import type { Database } from './database.ts';
import { onceMore, outboxColumns, sendAll } from './inbox-text.ts';
import type { Names } from './names.ts';
import { bytesOf, contextOf, destinationOf, numberOf, parsed, type Row, timeOf } from './rows.ts';
import { msOf, NOW } from './times.ts';
import { countOf } from './bounds.ts';

/** What never worked, and every execution that failed. A task's payload stays with the task. */
export class InboxTable {
  readonly #database: Database;
  readonly #names: Names;
  readonly #select: string;

  constructor(database: Database, names: Names) {
    this.#database = database;
    this.#names = names;
    this.#select = `SELECT item.id, item.task_id, item.message_id, item.kind, item.address, item.lane, item.state,
        item.reason, item.fingerprint, item.attempt, item.max_attempts, item.generation, item.occurrences,
        ${msOf('item.first_seen')}, ${msOf('item.last_seen')}, item.failure,
        coalesce(task.context, item.context), coalesce(task.original_payload, item.payload)
      FROM ${names.inbox} AS item LEFT JOIN ${names.queue} AS task ON task.id = item.task_id`;
  }

  /** Sorted and each once, as two batches might meet; what comes twice in one batch counts twice. */
  async append(items: readonly (RawItem & { outbox?: NewOutboxMessage })[]): Promise<void> {
    if (items.length === 0) return;
    const parts = partsOf(items);
    await this.#database.transaction(async (session) => {
      for (const part of parts) {
        const params = new Params();
        const source = rowsOf(
          [
            { name: 'message_id', type: 'uuid', values: part.map(({ messageId }) => messageId) },
            { name: 'source', type: 'text', values: part.map(({ source: name }) => name) },
            { name: 'reason', type: 'text', values: part.map(({ reason }) => reason) },
            {
              name: 'fingerprint',
              type: 'text',
              values: part.map(({ fingerprint }) => fingerprint),
            },
            {
              name: 'failure',
              type: 'json',
              values: part.map(({ failure }) => JSON.stringify(failure)),
            },
            {
              name: 'context',
              type: 'json',
              values: part.map(({ context }) => context && JSON.stringify(context)),
            },
            { name: 'payload', type: 'bytea', values: part.map(({ payload }) => payload) },
            ...outboxColumns(part.map(({ outbox }) => outbox)),
          ],
          params,
        );
        await session.query(
          `WITH u AS MATERIALIZED (${source}), sent AS (${sendAll(this.#names, 'u', 'n')})
           INSERT INTO ${this.#names.inbox} AS item (message_id, kind, address, lane, reason, fingerprint, attempt,
             max_attempts, generation, failure, context, payload, first_seen, last_seen)
           SELECT message_id, 'source', source, 'source:' || source, reason, fingerprint, 0, 0, 0, failure, context,
             payload, ${NOW}, ${NOW} FROM u ORDER BY n
           ON CONFLICT (message_id) WHERE state = 'open' AND task_id IS NULL DO UPDATE SET ${onceMore}`,
          params.values,
        );
      }
    });
  }

  async item(id: number): Promise<InboxItem | undefined> {
    const [row] = await this.#database.queryAgain(`${this.#select} WHERE item.id = $1::bigint`, [
      id,
    ]);
    return row && itemOf(row);
  }

  async items({ messageId, before, limit, ...equal }: ItemQuery): Promise<InboxItem[]> {
    if (messageId !== undefined && !isUuid(messageId)) return [];
    const params = new Params();
    const filters = (['state', 'reason', 'lane', 'fingerprint'] as const).flatMap((name) =>
      equal[name] === undefined ? [] : [`item.${name} = ${params.add(equal[name])}`],
    );
    if (messageId !== undefined) filters.push(`item.message_id = ${params.add(messageId)}::uuid`);
    if (before !== undefined) filters.push(`item.id < ${params.add(before)}::bigint`);
    const where = filters.length > 0 ? `WHERE ${filters.join(' AND ')}` : '';
    const rows = await this.#database.queryAgain(
      `${this.#select} ${where} ORDER BY item.id DESC LIMIT ${params.add(countOf(limit))}::int4`,
      params.values,
    );
    return rows.map(itemOf);
  }

  async attempts(
    taskId: number,
  ): Promise<(AttemptRecord & { generation: number; atMs: number })[]> {
    const rows = await this.#database.queryAgain(
      `SELECT generation, attempt, ${msOf('at')}, duration_ms, failure, answer
       FROM ${this.#names.attempts} WHERE task_id = $1::bigint ORDER BY id`,
      [taskId],
    );
    return rows.map(([generation, attempt, at, durationMs, failure, answer]) => ({
      generation: numberOf(generation),
      attempt: numberOf(attempt),
      atMs: timeOf(at),
      durationMs: numberOf(durationMs),
      failure: parsed(failure) as Failure,
      ...(answer === null ? {} : { answer: answer as string }),
    }));
  }
}

function partsOf<T extends { messageId: string }>(items: readonly T[]): T[][] {
  const parts: T[][] = [];
  let rest = items.toSorted((a, b) =>
    a.messageId < b.messageId ? -1 : a.messageId > b.messageId ? 1 : 0,
  );
  while (rest.length > 0) {
    const all = rest;
    parts.push(all.filter(({ messageId }, i) => messageId !== all[i - 1]?.messageId));
    rest = all.filter(({ messageId }, i) => messageId === all[i - 1]?.messageId);
  }
  return parts;
}

function itemOf(row: Row): InboxItem {
  const [id, taskId, messageId, kind, address, lane, state, reason, fingerprint] = row;
  const [attempt, maxAttempts, generation, occurrences, firstSeen, lastSeen] = row.slice(9);
  const [failure, context, payload] = row.slice(15);
  return {
    id: numberOf(id),
    ...(taskId === null ? {} : { taskId: numberOf(taskId) }),
    messageId: messageId as string,
    destination: destinationOf(kind, address),
    lane: lane as string,
    state: state as InboxItem['state'],
    reason: reason as Reason,
    fingerprint: fingerprint as string,
    attempt: numberOf(attempt),
    maxAttempts: numberOf(maxAttempts),
    generation: numberOf(generation),
    occurrences: numberOf(occurrences),
    firstSeenMs: timeOf(firstSeen),
    lastSeenMs: timeOf(lastSeen),
    failure: parsed(failure) as Failure,
    ...(context === null ? {} : { context: contextOf(context) }),
    payload: payload === null ? new Uint8Array() : bytesOf(payload),
  };
}
