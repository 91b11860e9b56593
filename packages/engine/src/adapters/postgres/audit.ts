import type { AuditEvent, AuditSink } from '../../ports/audit.ts';
import { Params, rowsOf } from './batch.ts';
import type { Database } from './database.ts';
import type { Names } from './names.ts';

/** The trail as a table, one statement for a batch. When its answer is lost, a gap or a twin shows by the sequence. */
export class AuditTable implements AuditSink {
  readonly #database: Database;
  readonly #names: Names;

  constructor(database: Database, names: Names) {
    this.#database = database;
    this.#names = names;
  }

  async write(events: readonly AuditEvent[]): Promise<void> {
    if (events.length === 0) return;
    const params = new Params();
    const source = rowsOf(
      [
        { name: 'sequence', type: 'int8', values: events.map(({ sequence }) => sequence) },
        { name: 'instance', type: 'text', values: events.map(({ instance }) => instance) },
        { name: 'event_type', type: 'text', values: events.map(({ event_type: type }) => type) },
        { name: 'at', type: 'text', values: events.map(({ timestamp }) => timestamp) },
        { name: 'event', type: 'json', values: events.map((event) => JSON.stringify(event)) },
      ],
      params,
    );
    await this.#database.query(
      `INSERT INTO ${this.#names.audit} (instance, sequence, event_type, at, event)
       SELECT instance, sequence, event_type, at::timestamptz, event FROM (${source}) AS u ORDER BY n`,
      params.values,
    );
  }
}
