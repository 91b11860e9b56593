import type { KeyNames } from './schema.ts';

/** The statements of the store. Every value comes back as text: a client of the caller's own parses in its own way. */
export interface KeyTexts {
  /** A claim of a key that nobody has used: the usual case, and a fraction of the cost of `claim`. */
  insert: string;
  claim: string;
  renew: string;
  record: string;
  read: string;
  release: string;
  clear: string;
  prune: string;
}

/** Tells the locks of keys from other advisory locks. */
const LOCK_SEED = 7_235_001;

const isOver = (alias: string) => `${alias}.expires_at <= clock_timestamp()`;
const isKept = (alias: string) =>
  `(${alias}.expires_at IS NULL OR ${alias}.expires_at > clock_timestamp())`;
const inMs = (parameter: string) =>
  `clock_timestamp() + ${parameter}::float8 * interval '1 millisecond'`;

const entry = `k.fingerprint,
  (extract(epoch FROM k.lease_end - clock_timestamp()) * 1000)::float8::text, k.outcome, k.result, k.metadata,
  (extract(epoch FROM k.recorded_at) * 1000)::bigint::text`;

export function textsFor({ keys }: KeyNames): KeyTexts {
  return {
    insert: `INSERT INTO ${keys} (key, owner, fingerprint, fencing_token, claims, lease_end)
      SELECT $1, $2, $3, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 1, ${inMs('$4')}
      WHERE pg_try_advisory_xact_lock(hashtextextended($1, ${LOCK_SEED}))
      ON CONFLICT DO NOTHING RETURNING fencing_token::text`,
    // The advisory lock is only tried. Without it a claim would wait for a transaction of somebody's that has the key, for
    // as long as that takes. The row itself decides: ON CONFLICT sees the newest one, whatever the snapshot is.
    claim: `WITH turn AS MATERIALIZED (
      SELECT clock_timestamp() AS now, pg_try_advisory_xact_lock(hashtextextended($1, ${LOCK_SEED})) AS mine
    ), taken AS (
      INSERT INTO ${keys} AS k (key, owner, fingerprint, fencing_token, claims, lease_end)
      SELECT $1, $2, $3, (extract(epoch FROM now) * 1000000)::bigint, 1, now + $4::float8 * interval '1 millisecond'
      FROM turn WHERE mine
      ON CONFLICT (key) DO UPDATE SET
        owner = excluded.owner,
        fingerprint = CASE WHEN excluded.fingerprint = '' AND ${isKept('k')} THEN k.fingerprint
          ELSE excluded.fingerprint END,
        fencing_token = greatest(k.fencing_token + 1, excluded.fencing_token),
        claims = CASE WHEN ${isOver('k')} THEN 1 WHEN k.owner = excluded.owner THEN k.claims ELSE k.claims + 1 END,
        lease_end = excluded.lease_end,
        outcome = NULL, result = NULL, metadata = NULL, recorded_at = NULL, expires_at = NULL
      WHERE ${isOver('k')} OR (k.outcome IS NULL AND (k.owner = excluded.owner OR (
        $5::bool AND k.lease_end <= clock_timestamp()
        AND (k.fingerprint = excluded.fingerprint OR k.fingerprint = '' OR excluded.fingerprint = ''))))
      RETURNING fencing_token, claims
    )
    SELECT mine::int::text, taken.fencing_token::text, taken.claims::text, ${entry}
    FROM turn LEFT JOIN taken ON true LEFT JOIN ${keys} AS k ON k.key = $1 AND ${isKept('k')}`,
    renew: `UPDATE ${keys} SET lease_end = ${inMs('$3')}
      WHERE key = $1 AND owner = $2 AND outcome IS NULL RETURNING 1`,
    record: `UPDATE ${keys} AS k SET outcome = $3, result = $4, metadata = $5, recorded_at = clock_timestamp(),
      expires_at = ${inMs('$6')} WHERE key = $1 AND owner = $2 AND ${isKept('k')} RETURNING 1`,
    read: `SELECT ${entry} FROM ${keys} AS k WHERE key = $1 AND ${isKept('k')}`,
    release: `DELETE FROM ${keys} WHERE key = $1 AND owner = $2 AND outcome IS NULL RETURNING 1`,
    clear: `DELETE FROM ${keys} AS k WHERE key = $1 AND ${isKept('k')} RETURNING 1`,
    prune: `DELETE FROM ${keys} WHERE key = ANY (ARRAY(SELECT key FROM ${keys}
      WHERE expires_at <= clock_timestamp() ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING 1`,
  };
}
