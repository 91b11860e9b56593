import type { Failure } from 'redrive';
import type { InboxItem, ItemFilter, ItemPage, ItemQuery, RawItem } from '../../../ports/inbox.ts';
import { MAX_ATTEMPTS } from '../../../ports/inbox.ts';
import type { NewOutboxMessage } from '../../../ports/schedule.ts';
import type { AttemptRecord } from '../../../model/task.ts';
import { Params, rowsOf } from '../batch.ts';
import { encodeArray } from '../arrays.ts';
import { type Database, Restart, type Session } from '../connection/database.ts';
import { isUniqueFault } from '../connection/faults.ts';
import { appendText, outboxColumns } from './inbox-text.ts';
import { countText, isPossible, FEW_SCANNED, MAX_SCANNED, nextOf, pageText } from './item-query.ts';
import { failureJson, itemOf, selectItems } from './item-rows.ts';
import type { Names } from '../names.ts';
import { numberOf, parsed, type Row, timeOf } from '../rows.ts';
import { msOf } from '../times.ts';
import { countOf } from '../bounds.ts';

/** What never worked, and every execution that failed. A task's payload stays with the task. */
export class InboxTable {
  readonly #database: Database;
  readonly #names: Names;
  readonly #select: string;

  constructor(database: Database, names: Names) {
    this.#database = database;
    this.#names = names;
    this.#select = selectItems(names);
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
              values: part.map(({ failure }) => failureJson(failure)),
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
        await this.#appendPart(session, appendText(this.#names, source), params);
      }
    });
  }

  /** Looks again where an item was opened or closed by somebody else meanwhile: no message is counted into a closed one. */
  async #appendPart(session: Session, text: string, params: Params): Promise<void> {
    let rows: Row[];
    try {
      rows = await session.query(text, params.values);
    } catch (error) {
      throw isUniqueFault(error, 'redrive_open_raw') ? new Restart() : error;
    }
    const [known, written] = rows[0]!;
    if (numberOf(known) === 0) return;
    const ids = (parsed(written) ?? []) as number[];
    const [row] = await session.query(
      `SELECT count(*) FROM ${this.#names.open} WHERE id = ANY ($1::int8[])`,
      [encodeArray('int8', ids)],
    );
    if (numberOf(row![0]) < numberOf(known)) throw new Restart();
  }

  async item(id: number): Promise<InboxItem | undefined> {
    const [row] = await this.#database.queryAgain(`${this.#select} WHERE item.id = $1::bigint`, [
      id,
    ]);
    return row && itemOf(row);
  }

  async items(query: ItemQuery): Promise<ItemPage> {
    if (!isPossible(query)) return { items: [] };
    const { items, next } = await this.#page(query, FEW_SCANNED);
    const missing = query.limit - items.length;
    if (next === undefined || missing <= 0)
      return { items, ...(next === undefined ? {} : { next }) };
    const more = await this.#page({ ...query, before: next, limit: missing }, MAX_SCANNED);
    return { ...more, items: [...items, ...more.items] };
  }

  async #page({ before, limit, ...filter }: ItemQuery, maxScanned: number): Promise<ItemPage> {
    const params = new Params();
    const page = pageText(
      this.#names,
      filter,
      { ...(before === undefined ? {} : { before }), limit },
      params,
      maxScanned,
    );
    const rows = await this.#database.queryAgain(
      `WITH ${page}
       SELECT item.*, (SELECT count(*) FROM found), (SELECT count(*) FROM scanned), (SELECT min(id) FROM scanned)
       FROM (SELECT) AS once LEFT JOIN (
         SELECT item.* FROM (SELECT id FROM found ORDER BY id DESC LIMIT ${params.add(countOf(limit))}::int4) AS page
         CROSS JOIN LATERAL (${this.#select} WHERE item.id = page.id OFFSET 0) AS item
       ) AS item ON true ORDER BY item.id DESC`,
      params.values,
    );
    const items = rows.flatMap((row) => (row[0] === null ? [] : [itemOf(row)]));
    const [found, scanned, lowest] = rows[0]!.slice(-3).map(numberOf);
    const seen = { found: found!, scanned: scanned!, lowest: lowest! };
    const next = nextOf(filter, limit, seen, items.at(-1)?.id, maxScanned);
    return { items, ...(next === undefined ? {} : { next }) };
  }

  async count(filter: ItemFilter): Promise<number> {
    if (!isPossible(filter)) return 0;
    const params = new Params();
    const text = countText(this.#names, filter, params);
    const [row] = await this.#database.queryAgain(text, params.values);
    return numberOf(row![0]);
  }

  async attempts(
    taskId: number,
  ): Promise<(AttemptRecord & { generation: number; atMs: number })[]> {
    const rows = await this.#database.queryAgain(
      `SELECT generation, attempt, ${msOf('at')}, duration_ms, failure, answer
       FROM ${this.#names.attempts} WHERE task_id = $1::bigint ORDER BY id LIMIT ${MAX_ATTEMPTS}`,
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
