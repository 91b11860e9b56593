/** What a look at a database finds: data, for people and programs. */
export interface Findings {
  server: {
    /** As it says itself: `18.0`. */
    version: string;
    /** As a number: 180000. */
    number: number;
    encoding: string;
    /** It follows another server and takes no writes. */
    isStandby: boolean;
  };
  /** How far the server's clock is ahead of this machine's; negative: behind. It may be wrong by as much as the answer took. */
  clock: { aheadMs: number; uncertaintyMs: number };
  /** Absent version: no tables. 0: a migration that was not finished. `known`: the one of this program. */
  schema: { name: string; version?: number; oldest?: number; known: number };
  tables: TableFinding[];
  /** Those above a MiB, the largest first. */
  indexes: IndexFinding[];
  /** What keeps vacuum from removing dead rows, the oldest first. */
  holders: Holder[];
  /** False: this role does not see other sessions, so that holders may be missing. */
  seesSessions: boolean;
  /** `reserved`: for superusers and the like. */
  connections: { used: number; max: number; reserved: number };
  /** `isBetween`: PgBouncer or its like answers in the server's place; absent: cannot be told. */
  pooler: { isBetween?: boolean; hasWayAround: boolean };
  /** As a new connection of this role has them. */
  settings: Record<Setting, string>;
}

export interface TableFinding {
  name: string;
  /** Both as the server estimates them. */
  rows: number;
  deadRows: number;
  tableBytes: number;
  indexBytes: number;
  /** Since vacuum came by itself, and since it came at all; absent: it never did. */
  autovacuumedAgoMs?: number;
  vacuumedAgoMs?: number;
}

export interface IndexFinding {
  name: string;
  table: string;
  bytes: number;
  /** What its entries would need if it were built anew, roughly; absent: the table was never analysed. */
  neededBytes?: number;
}

export interface Holder {
  kind: 'session' | 'prepared transaction' | 'replication slot';
  /** The name of the application, of the transaction, of the slot. */
  name: string;
  pid?: number;
  /** Of a session: `active`, `idle in transaction`. */
  state?: string;
  /** Since its transaction began. A slot does not know. */
  ageMs?: number;
  /** Transactions that came after what it still sees. */
  transactions: number;
}

export const settingNames = [
  'autovacuum',
  'default_transaction_read_only',
  'fsync',
  'full_page_writes',
  'idle_in_transaction_session_timeout',
  'statement_timeout',
  'synchronous_commit',
  'track_counts',
] as const;

export type Setting = (typeof settingNames)[number];
