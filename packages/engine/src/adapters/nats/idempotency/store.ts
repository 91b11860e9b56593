import type { NatsConnection } from '@nats-io/transport-node';
import {
  type ClaimAnswer,
  type ClaimRequest,
  type Clock,
  ConfigError,
  type Fault,
  type IdempotencyEntry,
  type IdempotencyStore,
  type NewRecord,
} from 'redrive';
import { answerOf, claimOf, isHeldBy, type KeyEntry, recordedOf } from 'redrive/internal';
import { EngineError } from '../../../errors.ts';
import { type NatsOptions, readOptions } from '../options.ts';
import type { Bucket } from './bucket.ts';
import { Link } from './link.ts';
import { Sightings } from './sightings.ts';
import { valueOf } from './value.ts';

/** Those of the connection count where the store makes it: with a URL. */
export interface JetstreamIdempotencyOptions extends Pick<
  NatsOptions,
  'token' | 'credsFile' | 'tls' | 'heartbeat' | 'name' | 'clock'
> {
  /** It is created where it is missing (`redrive-idempotency`). */
  bucket?: string;
  /** Servers of a cluster that hold a copy (1). */
  replicas?: number;
  /** How long a connection, or an answer of JetStream, may take (5 s). */
  connectTimeout?: NatsOptions['connectTimeout'];
}

/**
 * Idempotency keys in a bucket of JetStream KV, which any number of processes may share. A URL, several of a cluster, or
 * a connection that stays yours to close.
 */
export function jetstreamIdempotency(
  given: NatsConnection | string | readonly string[],
  options: JetstreamIdempotencyOptions = {},
): IdempotencyStore {
  const { bucket = 'redrive-idempotency', replicas = 1, connectTimeout = 5000, ...rest } = options;
  const lent = typeof given === 'string' || Array.isArray(given) ? undefined : given;
  const faults: Fault[] = [];
  const fault = (path: string, message: string) =>
    faults.push({ path, code: 'INVALID_VALUE', message });
  if (lent !== undefined && typeof (lent as NatsConnection | null)?.request !== 'function') {
    fault('connection', 'is neither a URL nor a connection of @nats-io/transport-node.');
  }
  if (typeof bucket !== 'string' || !/^[\w-]{1,64}$/.test(bucket)) {
    fault('bucket', 'is not a name of 1 to 64 letters, digits, dashes and underscores.');
  }
  if (!Number.isInteger(replicas) || replicas < 1 || replicas > 5) {
    fault('replicas', 'is not a whole number from 1 to 5.');
  }
  if (faults.length > 0) {
    throw new ConfigError('INVALID_CONFIG', 'The JetStream idempotency store has faults:', faults);
  }
  const url = lent ? 'nats://lent' : (given as string | readonly string[]);
  const settings = readOptions({ ...rest, connectTimeout, url });
  const timeoutMs = settings.connectTimeoutMs;
  const link = new Link(settings, { bucket, replicas, timeoutMs }, lent as NatsConnection);
  return new JetstreamIdempotency(link, settings.host.clock);
}

/** Keys whose leases one store watches at once. */
const MAX_SIGHTINGS = 10_000;
/** After so many changes by others between a look and a write the caller may try again. */
const MAX_TRIES = 20;

/** Ends of leases are counted from each look at a key. */
const NOW_MS = 0;

interface Found {
  entry: KeyEntry;
  leaseMs: number;
}

/** What is under a key, or is taken to be: a write at another revision does nothing. */
interface Look {
  revision: number;
  found?: Found;
}

const nothingYet: Look = { revision: 0 };

/** What to write at the revision that was found, and the answer once that has worked. */
type Decision<T> = { answer: T } | { write: Found | 'nothing'; done: (revision: number) => T };

type Decide<T> = (found: Found | undefined) => Decision<T>;

class JetstreamIdempotency implements IdempotencyStore {
  readonly #link: Link;
  readonly #clock: Clock;
  readonly #sightings = new Sightings(MAX_SIGHTINGS);
  /** The claims of this store, as they were written last: to record the result needs no look then. */
  readonly #own = new Map<string, Look & { found: Found }>();

  constructor(link: Link, clock: Clock) {
    this.#link = link;
    this.#clock = clock;
  }

  claim(request: ClaimRequest): Promise<ClaimAnswer> {
    const { key, leaseMs } = request;
    const decide: Decide<ClaimAnswer> = (found) => {
      const claimed = claimOf(found?.entry, request, NOW_MS, 1);
      if ('answer' in claimed) return claimed;
      const { entry } = claimed;
      return {
        write: { entry, leaseMs },
        // Revisions grow over all keys of a bucket, also after a key was pruned.
        done: (fencingToken) => {
          this.#keep(key, { revision: fencingToken, found: { entry, leaseMs } });
          return { state: 'claimed', fencingToken, claims: entry.claims };
        },
      };
    };
    // Most keys are new. One that was seen with somebody else is not.
    return this.#change(key, decide, this.#sightings.has(key) ? undefined : nothingYet);
  }

  renew(key: string, owner: string, leaseMs: number): Promise<boolean> {
    return this.#change(key, (found) => {
      if (!found || !isHeldBy(found.entry, owner)) return { answer: false };
      const renewed = { entry: found.entry, leaseMs };
      return {
        write: renewed,
        done: (revision) => {
          this.#keep(key, { revision, found: renewed });
          return true;
        },
      };
    });
  }

  record(key: string, owner: string, record: NewRecord): Promise<boolean> {
    const decide: Decide<boolean> = (found) => {
      if (found?.entry.owner !== owner) return { answer: false };
      // The answer to an earlier call was lost.
      if (found.entry.outcome) return { answer: true };
      const wallMs = this.#clock.now();
      const entry = recordedOf(found.entry, record, wallMs, wallMs);
      return { write: { ...found, entry }, done: () => true };
    };
    const own = this.#own.get(key);
    this.#own.delete(key);
    return this.#change(key, decide, own?.found.entry.owner === owner ? own : undefined);
  }

  read(key: string): Promise<IdempotencyEntry | undefined> {
    return this.#change(key, (found) => ({ answer: found && answerOf(found.entry, NOW_MS) }));
  }

  release(key: string, owner?: string): Promise<boolean> {
    this.#own.delete(key);
    return this.#change(key, (found) => {
      if (!found || (owner !== undefined && !isHeldBy(found.entry, owner))) {
        return { answer: false };
      }
      return { write: 'nothing', done: () => true };
    });
  }

  prune(limit: number): Promise<number> {
    return this.#link.run((bucket) => bucket.prune(limit, this.#clock.now()));
  }

  close(): Promise<void> {
    return this.#link.close();
  }

  /** One that is not recorded by this store is the oldest some day, and then forgotten. */
  #keep(key: string, own: Look & { found: Found }): void {
    this.#own.delete(key);
    this.#own.set(key, own);
    if (this.#own.size > MAX_SIGHTINGS) this.#own.delete(this.#own.keys().next().value!);
  }

  /**
   * Reads, decides, and writes where nobody else has written meanwhile; else reads again. With a guess it need not be read
   * first: the revision of the write says whether the guess was right.
   */
  #change<T>(key: string, decide: Decide<T>, guess?: Look): Promise<T> {
    return this.#link.run(async (bucket) => {
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const { revision, found } = guess && tries === 0 ? guess : await this.#find(bucket, key);
        const decision = decide(found);
        if ('answer' in decision) return decision.answer;
        const written = await write(bucket, key, revision, decision.write);
        if (written !== undefined) return decision.done(written);
      }
      throw new EngineError(
        'STORE_UNAVAILABLE',
        `Others changed the key ${MAX_TRIES} times between a look and a write. Trying again is safe.`,
      );
    });
  }

  async #find(bucket: Bucket, key: string): Promise<Look> {
    const askedAtMs = this.#clock.monotonic();
    const { revision, value, expiresAtMs } = await bucket.read(key);
    const isHeld = value !== undefined && !value.outcome;
    const answeredAtMs = this.#clock.monotonic();
    if (!isHeld) this.#sightings.forget(key);
    // Results expire by the wall clock of whoever looks.
    if (!value || expiresAtMs <= this.#clock.now()) return { revision };
    const ageMs = isHeld ? this.#sightings.ageMs(key, revision, askedAtMs, answeredAtMs) : 0;
    const { leaseMs, recordedAtMs = 0, ...rest } = value;
    const leaseEndMs = NOW_MS + leaseMs - ageMs;
    const entry = { ...rest, fencingToken: 0, leaseEndMs, recordedAtMs, expiresAtMs };
    return { revision, found: { entry, leaseMs } };
  }
}

async function write(
  bucket: Bucket,
  key: string,
  revision: number,
  what: Found | 'nothing',
): Promise<number | undefined> {
  if (what === 'nothing') return (await bucket.delete(key, revision)) ? revision : undefined;
  const { entry, leaseMs } = what;
  return bucket.put(key, revision, valueOf(key, entry, leaseMs), entry.expiresAtMs);
}
