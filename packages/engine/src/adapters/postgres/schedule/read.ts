import type { LaneAgenda, TaskKey, TaskQuery } from '../../../ports/schedule.ts';
import type { Census } from '../../../ports/store.ts';
import type { Task } from '../../../model/task.ts';
import { Params, rowsOf } from '../batch.ts';
import { censusText } from '../inbox/census-text.ts';
import { identityColumns, isUuid } from '../columns.ts';
import type { Database } from '../connection/database.ts';
import type { Names } from '../names.ts';
import { numberOf, parsed, taskColumns, taskOf } from '../rows.ts';
import { claimed, due } from './sets.ts';
import { msOf } from '../times.ts';
import { countOf } from '../bounds.ts';

/** Looks at tasks without touching them. */
export class Reader {
  readonly #database: Database;
  readonly #names: Names;

  constructor(database: Database, names: Names) {
    this.#database = database;
    this.#names = names;
  }

  async get(key: TaskKey): Promise<Task | undefined> {
    const params = new Params();
    const select = `SELECT ${taskColumns.join(', ')} FROM ${this.#names.queue} AS q`;
    let text: string;
    if ('messageId' in key) {
      if (!isUuid(key.messageId)) return undefined;
      text = `${select} WHERE (message_id, original_queue, kind) =
        (SELECT message_id, original_queue, kind FROM (${rowsOf(identityColumns([key]), params)}) AS u)`;
    } else {
      text = `${select} WHERE id = ${params.add(key.id)}::bigint`;
    }
    const [row] = await this.#database.queryAgain(text, params.values);
    return row && taskOf(row);
  }

  async list({ status, lane, messageId, exceptKind, before, limit }: TaskQuery): Promise<Task[]> {
    if (messageId !== undefined && !isUuid(messageId)) return [];
    const params = new Params();
    const filters = [
      ...(before === undefined ? [] : [`q.id < ${params.add(before)}::bigint`]),
      ...(status === undefined ? [] : [`status = ${params.add(status)}`]),
      ...(lane === undefined ? [] : [`lane = ${params.add(lane)}`]),
      ...(exceptKind === undefined ? [] : [`kind <> ${params.add(exceptKind)}`]),
      ...(messageId === undefined ? [] : [`message_id = ${params.add(messageId)}::uuid`]),
    ];
    const rows = await this.#database.queryAgain(
      `SELECT ${taskColumns.join(', ')} FROM ${this.#names.queue} AS q
       ${filters.length > 0 ? `WHERE ${filters.join(' AND ')}` : ''} ORDER BY q.id DESC LIMIT ${params.add(countOf(limit))}::int4`,
      params.values,
    );
    return rows.map(taskOf);
  }

  /** From lane to lane by the index: it costs as much as there are lanes, however many tasks wait in them. */
  async lanes({ after = '', limit }: { after?: string; limit: number }): Promise<LaneAgenda[]> {
    const walk = (name: string, condition: string) => `${name} AS (
      (SELECT lane, visible_at FROM ${this.#names.queue} WHERE ${condition} AND lane > $1
       ORDER BY lane, visible_at LIMIT 1)
      UNION ALL
      SELECT next.lane, next.visible_at FROM ${name} CROSS JOIN LATERAL (
        SELECT lane, visible_at FROM ${this.#names.queue} WHERE ${condition} AND lane > ${name}.lane
        ORDER BY lane, visible_at LIMIT 1
      ) AS next
    )`;
    const rows = await this.#database.queryAgain(
      `WITH RECURSIVE ${walk('waiting', due)}, ${walk('held', `${claimed} AND NOT blocked`)}
       SELECT lane, ${msOf('min(visible_at) - statement_timestamp()')} AS wait FROM (
         (SELECT * FROM waiting LIMIT $2) UNION ALL (SELECT * FROM held LIMIT $2)
       ) AS first GROUP BY lane ORDER BY lane LIMIT $2`,
      [after, countOf(limit)],
    );
    return rows.map(([lane, wait]) => ({
      lane: lane as string,
      inMs: Math.max(0, Math.ceil(numberOf(wait))),
    }));
  }

  async census(): Promise<Census> {
    const [row] = await this.#database.queryAgain(censusText(this.#names));
    const [pending, wait, open] = row!;
    return {
      pending: numberOf(pending),
      ...(wait === null ? {} : { oldestDueInMs: Math.round(numberOf(wait)) }),
      open: parsed(open) ?? {},
    };
  }
}
