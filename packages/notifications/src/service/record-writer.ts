/** Changes records by compare-and-set: reads, changes, writes, and begins anew for whatever lost its race. */
import { pause } from '@redrive/engine/internal';
import { isNotificationError, NotificationError } from '../errors.ts';
import type { DeliveryAttempt, NotificationRecord } from '../model/notification.ts';
import type { Moved } from '../model/moves.ts';
import { slimmed } from '../model/record.ts';
import { recordFault } from '../repository/limits.ts';
import type { Parts } from './parts.ts';

/** A pure change of one record, or why there is none. It is called again where the record was changed by another meanwhile. */
export interface RecordChange<R> {
  id: string;
  /** Recorded with the change, or without one where there is nothing to change. */
  attempt?: DeliveryAttempt;
  apply(record: NotificationRecord | undefined): Moved<R> | { error: NotificationError };
}

export type Applied<R> =
  | { result: R; record: NotificationRecord | undefined }
  | { error: NotificationError };

/** Each round writes at least one of those who race for a record. */
const MAX_ROUNDS = 200;
/** From then on whoever lost waits a little. */
const PATIENT_ROUNDS = 2;
const PAUSE_MS = 20;

export class RecordWriter {
  readonly #parts: Parts;
  readonly #never = new AbortController().signal;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Reads records. One that cannot be read spoils no other. */
  async read(ids: readonly string[]): Promise<ReadRecords> {
    const found = new Map<string, NotificationRecord>();
    const unreadable = new Map<string, NotificationError>();
    let wanted = [...new Set(ids)];
    while (wanted.length > 0) {
      try {
        const records = await this.#parts.repository.find(wanted);
        for (const record of records) if (record) found.set(record.id, record);
        break;
      } catch (error) {
        const bad = new Set(isNotificationError(error) ? error.ids : []);
        const rest = wanted.filter((id) => !bad.has(id));
        if (!isNotificationError(error) || rest.length === wanted.length) throw error;
        for (const id of wanted) if (bad.has(id)) unreadable.set(id, error);
        this.#parts.tell({ type: 'unreadable', count: wanted.length - rest.length });
        wanted = rest;
      }
    }
    return { found, unreadable };
  }

  /** One answer per change. `known`: what was read already, for the first round. */
  async apply<R>(changes: readonly RecordChange<R>[], known?: ReadRecords): Promise<Applied<R>[]> {
    const answers: Applied<R>[] = [];
    let open = changes.map((change, index) => ({ change, index }));
    for (let round = 0; open.length > 0; round++) {
      if (round >= MAX_ROUNDS) throw contended(open[0]!.change.id);
      if (round > PATIENT_ROUNDS) await this.#wait();
      const read =
        round === 0 && known ? known : await this.read(open.map(({ change }) => change.id));
      const states = new Map(read.found);
      const changed = new Map<string, NotificationRecord>();
      const attempts: DeliveryAttempt[] = [];
      for (const { change, index } of open) {
        const error = read.unreadable.get(change.id);
        if (error) {
          answers[index] = { error };
          continue;
        }
        const before = states.get(change.id);
        const moved = change.apply(before);
        if ('error' in moved) {
          answers[index] = moved;
          continue;
        }
        const { record, result } = moved;
        if (record) {
          states.set(change.id, record);
          changed.set(change.id, record);
        }
        const after = record ?? before;
        if (after && change.attempt) attempts.push(change.attempt);
        answers[index] = { result, record: after };
      }
      const { lost, refused } = await this.write([...changed.values()], attempts);
      for (const { change, index } of open) {
        const error = refused.get(change.id);
        if (error) answers[index] = { error };
      }
      open = open.filter(({ change }) => lost.has(change.id));
    }
    return answers;
  }

  /** Those that lost their race, and those that no repository takes: one of them spoils no other. */
  async write(
    records: readonly NotificationRecord[],
    attempts: readonly DeliveryAttempt[] = [],
  ): Promise<Writing> {
    const refused = new Map<string, NotificationError>();
    const slim = new Set<string>();
    let wanted = records;
    let made = attempts;
    while (wanted.length + made.length > 0) {
      try {
        const written = await this.#parts.repository.write(wanted, made);
        const lost = wanted.filter((_, i) => !written.records[i]).map(({ id }) => id);
        for (const [i, { status }] of made.entries())
          if (written.attempts[i]) this.#parts.tell({ type: 'attempted', status });
        return { lost: new Set(lost), refused };
      } catch (error) {
        if (!isNotificationError(error)) throw error;
        const bad = badOnes(wanted, error);
        const large = [...bad].filter(
          ([id, { code }]) => code === 'RECORD_TOO_LARGE' && !slim.has(id),
        );
        for (const [id] of large) {
          slim.add(id);
          bad.delete(id);
          this.#parts.host.log.warn(
            { notification: id },
            'a record was too large: texts of its failures and its older events were left out',
          );
        }
        if (large.length > 0) {
          const ids = new Set(large.map(([id]) => id));
          wanted = wanted.map((record) => (ids.has(record.id) ? slimmed(record) : record));
        }
        for (const [id, fault] of bad) refused.set(id, fault);
        wanted = wanted.filter(({ id }) => !bad.has(id));
        made = made.filter(({ notificationId }) => !bad.has(notificationId));
        if (bad.size + large.length === 0) throw error;
      }
    }
    return { lost: new Set(), refused };
  }

  #wait(): Promise<void> {
    const { host } = this.#parts;
    return pause(host, Math.ceil(host.random() * PAUSE_MS), this.#never);
  }
}

interface Writing {
  lost: ReadonlySet<string>;
  refused: ReadonlyMap<string, NotificationError>;
}

export interface ReadRecords {
  found: ReadonlyMap<string, NotificationRecord>;
  unreadable: ReadonlyMap<string, NotificationError>;
}

/** Which of them no repository takes. */
function badOnes(
  records: readonly NotificationRecord[],
  error: NotificationError,
): Map<string, NotificationError> {
  const bad = new Map<string, NotificationError>();
  for (const record of records) {
    const fault = error.ids.includes(record.id) ? error : recordFault(record);
    if (fault) bad.set(record.id, fault);
  }
  return bad;
}

function contended(id: string): NotificationError {
  const message = `Notification ${id} was changed by others ${MAX_ROUNDS} times in a row. Try again.`;
  return new NotificationError('RECORD_CONTENDED', message, { ids: [id] });
}
