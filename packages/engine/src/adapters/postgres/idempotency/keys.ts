import type {
  ClaimAnswer,
  ClaimRequest,
  IdempotencyEntry,
  IdempotencyStore,
  NewRecord,
  Outcome,
} from 'redrive';
import type { Row } from '../rows.ts';
import type { KeyTexts } from './text.ts';

export type Ask = (text: string, values: unknown[]) => Promise<Row[]>;

/** A claim that met a row which changed under it is made again. */
const MAX_CLAIMS = 5;
const MAX_PRUNED = 10_000;

/** The keys, by statements of whatever connection `ask` uses. */
export class PostgresKeys implements IdempotencyStore {
  readonly #ask: Ask;
  readonly #texts: KeyTexts;

  constructor(ask: Ask, texts: KeyTexts) {
    this.#ask = ask;
    this.#texts = texts;
  }

  async claim(request: ClaimRequest): Promise<ClaimAnswer> {
    const { key, owner, fingerprint, leaseMs, takeOver } = request;
    const fresh = [key, owner, fingerprint, leaseMs];
    const [inserted] = await this.#ask(this.#texts.insert, fresh);
    if (inserted) return { state: 'claimed', fencingToken: Number(inserted[0]), claims: 1 };
    for (let attempt = 1; ; attempt++) {
      const values = [...fresh, takeOver];
      const [row = []] = await this.#ask(this.#texts.claim, values);
      const [mine, token, claims, ...columns] = row;
      if (token != null) {
        return { state: 'claimed', fencingToken: Number(token), claims: Number(claims) };
      }
      const found = entryOf(columns);
      // What the snapshot shows may be over: then the row is looked at once more, or somebody else is claiming it.
      const isStale =
        !found ||
        (found.state === 'abandoned' && takeOver && isSame(found.fingerprint, fingerprint));
      if (!isStale) return found;
      if (mine !== '1' || attempt === MAX_CLAIMS) {
        return { state: 'held', fingerprint: found?.fingerprint ?? '', remainingMs: 0 };
      }
    }
  }

  async renew(key: string, owner: string, leaseMs: number): Promise<boolean> {
    return isOne(await this.#ask(this.#texts.renew, [key, owner, leaseMs]));
  }

  async record(key: string, owner: string, record: NewRecord): Promise<boolean> {
    const { outcome, metadata = null, expiresInMs = null } = record;
    const values = [key, owner, outcome.kind, outcome.text, metadata, expiresInMs];
    return isOne(await this.#ask(this.#texts.record, values));
  }

  async read(key: string): Promise<IdempotencyEntry | undefined> {
    const [row] = await this.#ask(this.#texts.read, [key]);
    return row && entryOf(row);
  }

  async release(key: string, owner?: string): Promise<boolean> {
    const { release, clear } = this.#texts;
    return isOne(
      owner === undefined ? await this.#ask(clear, [key]) : await this.#ask(release, [key, owner]),
    );
  }

  async prune(limit: number): Promise<number> {
    const most = Math.min(Math.max(0, Math.floor(limit)), MAX_PRUNED);
    return (await this.#ask(this.#texts.prune, [most])).length;
  }
}

function isOne(rows: readonly Row[]): boolean {
  return rows.length === 1;
}

function isSame(one: string, other: string): boolean {
  return one === '' || other === '' || one === other;
}

/** Undefined: there is no row. */
function entryOf(columns: Row): IdempotencyEntry | undefined {
  const [fingerprint, remaining, kind, text, metadata, recordedAt] = columns as (string | null)[];
  if (fingerprint == null) return undefined;
  if (kind != null) {
    const outcome = { kind, text } as Outcome;
    const more = metadata == null ? {} : { metadata };
    return { state: 'done', fingerprint, outcome, ...more, recordedAtMs: Number(recordedAt) };
  }
  const remainingMs = Number(remaining);
  return remainingMs > 0
    ? { state: 'held', fingerprint, remainingMs }
    : { state: 'abandoned', fingerprint };
}
