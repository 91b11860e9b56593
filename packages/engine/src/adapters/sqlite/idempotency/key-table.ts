import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Outcome } from 'redrive';
import type { KeyEntry } from 'redrive/internal';
import { prepareRows, type Row } from '../connection.ts';

const columns =
  'owner, fingerprint, fencing_token, claims, lease_end_ms, outcome, text, metadata, recorded_at_ms, expires_at_ms';

/** A prune is one transaction: more would hold up the event loop and other processes. */
const MAX_PRUNED = 10_000;

/** The rows of the keys. */
export class KeyTable {
  readonly #find: StatementSync;
  readonly #save: StatementSync;
  readonly #delete: StatementSync;
  readonly #prune: StatementSync;
  readonly #lastToken: StatementSync;
  readonly #keepToken: StatementSync;

  constructor(db: DatabaseSync) {
    this.#find = prepareRows(db, `SELECT ${columns} FROM redrive_idempotency WHERE key = ?`);
    this.#save = db.prepare(
      `INSERT INTO redrive_idempotency (key, ${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (key) DO UPDATE SET (${columns}) = (${columns.replace(/\w+/g, 'excluded.$&')})`,
    );
    this.#lastToken = prepareRows(db, 'SELECT last FROM redrive_idempotency_token');
    this.#keepToken = db.prepare('UPDATE redrive_idempotency_token SET last = max(last, ?)');
    this.#delete = db.prepare('DELETE FROM redrive_idempotency WHERE key = ?');
    this.#prune = db.prepare(
      `DELETE FROM redrive_idempotency WHERE rowid IN (SELECT rowid FROM redrive_idempotency
       WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ?)`,
    );
  }

  /** What has expired is gone. */
  find(key: string, nowMs: number): KeyEntry | undefined {
    const row = this.#find.get(key) as unknown as Row | undefined;
    if (!row) return undefined;
    const [owner, fingerprint, token, claims, leaseEnd, kind, text, metadata, at, expires] = row;
    const expiresAtMs = expires === null ? Infinity : (expires as number);
    if (expiresAtMs <= nowMs) return undefined;
    return {
      owner: owner as string,
      fingerprint: fingerprint as string,
      fencingToken: token as number,
      claims: claims as number,
      leaseEndMs: leaseEnd as number,
      ...(kind === null ? {} : { outcome: { kind, text } as Outcome }),
      ...(metadata === null ? {} : { metadata: metadata as string }),
      recordedAtMs: at as number,
      expiresAtMs,
    };
  }

  save(key: string, entry: KeyEntry): void {
    const { owner, fingerprint, fencingToken, claims, leaseEndMs, outcome, metadata } = entry;
    this.#save.run(
      key,
      owner,
      fingerprint,
      fencingToken,
      claims,
      Math.ceil(leaseEndMs),
      outcome?.kind ?? null,
      outcome?.text ?? null,
      metadata ?? null,
      entry.recordedAtMs,
      entry.expiresAtMs === Infinity ? null : Math.ceil(entry.expiresAtMs),
    );
  }

  /** The next token of a key of which nothing is kept: larger than that of any key that was deleted. */
  nextToken(nowMs: number): number {
    const [last = 0] = (this.#lastToken.get() ?? []) as unknown as Row;
    return Math.max(nowMs * 1000, (last as number) + 1);
  }

  delete(key: string, { fencingToken }: KeyEntry): void {
    this.#keepToken.run(fencingToken);
    this.#delete.run(key);
  }

  prune(nowMs: number, limit: number): number {
    return Number(
      this.#prune.run(nowMs, Math.min(Math.max(0, Math.floor(limit)), MAX_PRUNED)).changes,
    );
  }
}
