import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Failure } from 'redrive';
import type { Group, GroupQuery } from '../../../ports/inbox.ts';
import type { Reason } from '../../../model/task.ts';
import { prepareRows, type Row } from '../connection.ts';

const select = `SELECT fingerprint, lane, reason, failure, open, first_seen, last_seen, note, owner FROM redrive_groups`;
const page = `(last_seen, fingerprint) < (?1, ?2) ORDER BY last_seen DESC, fingerprint DESC LIMIT ?3`;

/** Items of one cause. Triggers count those that come and those that are deleted, `ItemStates` those that are closed and opened again. */
export class GroupTable {
  readonly #all: StatementSync;
  readonly #allInLane: StatementSync;
  readonly #open: StatementSync;
  readonly #openInLane: StatementSync;
  readonly #one: StatementSync;
  readonly #annotate: StatementSync;
  readonly #sample: StatementSync;

  constructor(db: DatabaseSync) {
    this.#all = prepareRows(db, `${select} INDEXED BY redrive_groups_seen WHERE ${page}`);
    this.#allInLane = prepareRows(
      db,
      `${select} INDEXED BY redrive_groups_seen WHERE lane = ?4 AND ${page}`,
    );
    this.#open = prepareRows(
      db,
      `${select} INDEXED BY redrive_groups_open WHERE is_open = 1 AND ${page}`,
    );
    this.#openInLane = prepareRows(
      db,
      `${select} INDEXED BY redrive_groups_open_lane WHERE is_open = 1 AND lane = ?4 AND ${page}`,
    );
    this.#one = prepareRows(db, `${select} WHERE fingerprint = ?`);
    this.#annotate = db.prepare(
      `UPDATE redrive_groups SET note = nullif(coalesce(?2, note), ''), owner = nullif(coalesce(?3, owner), '')
       WHERE fingerprint = ?1`,
    );
    this.#sample = db.prepare('UPDATE redrive_groups SET failure = ?2 WHERE fingerprint = ?1');
  }

  list({ fingerprint, lane, all = false, before, limit }: GroupQuery): Group[] {
    if (fingerprint !== undefined) {
      const group = this.get(fingerprint);
      const isWanted =
        group &&
        (all || group.open > 0) &&
        (lane === undefined || group.lane === lane) &&
        (!before || isAfter(group, before));
      return isWanted && limit > 0 ? [group] : [];
    }
    const { lastSeenMs = Infinity, fingerprint: last = '' } = before ?? {};
    const rows =
      lane === undefined
        ? (all ? this.#all : this.#open).all(lastSeenMs, last, limit)
        : (all ? this.#allInLane : this.#openInLane).all(lastSeenMs, last, limit, lane);
    return (rows as unknown as Row[]).map(groupOf);
  }

  get(fingerprint: string): Group | undefined {
    const row = this.#one.get(fingerprint) as unknown as Row | undefined;
    return row && groupOf(row);
  }

  /** False: there is no such group. */
  annotate(fingerprint: string, { note, owner }: { note?: string; owner?: string }): boolean {
    return this.#annotate.run(fingerprint, note ?? null, owner ?? null).changes === 1;
  }

  /** Takes the words out of the failure that stands for the group. */
  silence(fingerprint: string): void {
    const group = this.get(fingerprint);
    if (!group) return;
    const { class: kind, code } = group.failure;
    this.#sample.run(fingerprint, JSON.stringify({ class: kind, code }));
  }
}

type Seen = Pick<Group, 'lastSeenMs' | 'fingerprint'>;

/** The last seen come first. */
function isAfter(group: Seen, before: Seen): boolean {
  if (group.lastSeenMs !== before.lastSeenMs) return group.lastSeenMs < before.lastSeenMs;
  return group.fingerprint < before.fingerprint;
}

function groupOf(row: Row): Group {
  const [fingerprint, lane, reason, failure, open, firstSeenMs, lastSeenMs, note, owner] = row;
  return {
    fingerprint: fingerprint as string,
    lane: lane as string,
    reason: reason as Reason,
    failure: JSON.parse(failure as string) as Failure,
    open: open as number,
    firstSeenMs: firstSeenMs as number,
    lastSeenMs: lastSeenMs as number,
    ...(note === null ? {} : { note: note as string }),
    ...(owner === null ? {} : { owner: owner as string }),
  };
}
