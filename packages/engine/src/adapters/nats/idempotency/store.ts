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
import { answerOf, checkObject, claimOf, isHeldBy, recordedOf } from 'redrive/internal';
import { EngineError } from '../../../errors.ts';
import { type NatsOptions, readOptions } from '../options.ts';
import type { Bucket } from './bucket.ts';
import { Link } from './link.ts';
import { type Found, OwnWrites } from './own-writes.ts';
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
  checkObject('The JetStream idempotency store', options);
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

/** What a look at a key finds. */
interface Look {
  revision: number;
  found?: Found;
}

const NEVER_WRITTEN: Look = { revision: 0 };

/** What to write at the revision that was found, and the answer once that has worked. */
type Decision<T> = { answer: T } | { write: Found | 'nothing'; done: (revision: number) => T };

class JetstreamIdempotency implements IdempotencyStore {
  readonly #link: Link;
  readonly #clock: Clock;
  readonly #sightings = new Sightings(MAX_SIGHTINGS);
  readonly #own = new OwnWrites(MAX_SIGHTINGS);

  constructor(link: Link, clock: Clock) {
    this.#link = link;
    this.#clock = clock;
  }

  claim(request: ClaimRequest): Promise<ClaimAnswer> {
    const { key, leaseMs } = request;
    // Most keys are new: a write says so, and fails where one is not. A waiter has seen its key before.
    const guess = this.#sightings.has(key) ? undefined : NEVER_WRITTEN;
    const decide = (found: Found | undefined): Decision<ClaimAnswer> => {
      const claimed = claimOf(found?.entry, request, NOW_MS, 1);
      if ('answer' in claimed) return claimed;
      const { entry } = claimed;
      return {
        write: { entry, leaseMs },
        // Revisions grow over all keys of a bucket, also after a key was pruned.
        done: (fencingToken) => ({ state: 'claimed', fencingToken, claims: entry.claims }),
      };
    };
    return this.#change(key, decide, guess);
  }

  renew(key: string, owner: string, leaseMs: number): Promise<boolean> {
    const decide = (found: Found | undefined): Decision<boolean> => {
      if (!found || !isHeldBy(found.entry, owner)) return { answer: false };
      return { write: { entry: found.entry, leaseMs }, done: () => true };
    };
    return this.#change(key, decide, this.#known(key, owner));
  }

  record(key: string, owner: string, record: NewRecord): Promise<boolean> {
    const decide = (found: Found | undefined): Decision<boolean> => {
      if (found?.entry.owner !== owner) return { answer: false };
      // The answer to an earlier call was lost.
      if (found.entry.outcome) return { answer: true };
      const wallMs = this.#clock.now();
      const entry = recordedOf(found.entry, record, wallMs, wallMs);
      return { write: { entry, leaseMs: found.leaseMs }, done: () => true };
    };
    return this.#change(key, decide, this.#known(key, owner));
  }

  read(key: string): Promise<IdempotencyEntry | undefined> {
    return this.#change(key, (found) => ({ answer: found && answerOf(found.entry, NOW_MS) }));
  }

  release(key: string, owner?: string): Promise<boolean> {
    const decide = (found: Found | undefined): Decision<boolean> => {
      if (!found || (owner !== undefined && !isHeldBy(found.entry, owner))) {
        return { answer: false };
      }
      return { write: 'nothing', done: () => true };
    };
    return this.#change(key, decide, owner === undefined ? undefined : this.#known(key, owner));
  }

  prune(limit: number): Promise<number> {
    return this.#link.run((bucket) => bucket.prune(limit, this.#clock.now()));
  }

  close(): Promise<void> {
    return this.#link.close();
  }

  /** Reads, decides, and writes where nobody else has written meanwhile; else reads again. A guess saves the first look. */
  #change<T>(
    key: string,
    decide: (found: Found | undefined) => Decision<T>,
    guess?: Look,
  ): Promise<T> {
    return this.#link.run(async (bucket) => {
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const { revision, found } = tries === 0 && guess ? guess : await this.#find(bucket, key);
        const decision = decide(found);
        if ('answer' in decision) return decision.answer;
        // Also where the answer does not come: then nobody knows what is there.
        this.#own.forget(key);
        const written = await write(bucket, key, revision, decision.write);
        if (written === undefined) continue;
        this.#remember(key, written, decision.write);
        return decision.done(written);
      }
      throw new EngineError(
        'STORE_UNAVAILABLE',
        `Others changed the key ${MAX_TRIES} times between a look and a write. Trying again is safe.`,
      );
    });
  }

  /** What is there, if nobody else has written since. */
  #known(key: string, owner: string): Look | undefined {
    const written = this.#own.get(key, owner);
    return written && { revision: written.revision, found: written };
  }

  /** Only what is still held: of the rest nothing more is written. */
  #remember(key: string, revision: number, what: Found | 'nothing'): void {
    if (what === 'nothing' || what.entry.outcome) return;
    this.#own.set(key, { ...what, revision });
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
