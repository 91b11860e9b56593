import type { Duration } from '../policy/duration.ts';
import { ConfigError, type Fault } from '../errors.ts';
import { defaultOf, type Field, type Fields, readFields } from '../options/fields.ts';

/** The world a policy is tried in: clients that each have one call to make, and one service. */
export interface World {
  /** How many clients there are (1000). */
  clients?: number;
  /** Their first calls are spread at random over this time, from 0 on (100 ms: they notice together). */
  spread?: Duration;
  /** When the service goes down (0), and for how long (500 ms). */
  outageStart?: Duration;
  outage?: Duration;
  /** How many requests the service can answer in a second (500). */
  capacity?: number;
  /** A request that would queue for longer than this is refused at once (200 ms). */
  queue?: Duration;
  /** How long any answer takes, a refusal too, besides the time in the queue (50 ms). */
  latency?: Duration;
  /** What an overloaded service asks for in `Retry-After`. Nothing unless given. */
  retryAfter?: Duration;
  /** No attempt starts after this (1 h). */
  horizon?: Duration;
  /** After so many attempts in all it stops: a policy that never ends must not go on for ever (2 million). */
  limit?: number;
  /** Another seed, another set of random numbers; the same seed, the same result (1). */
  seed?: number;
  /** The width of one step of `load`. Left out: such that there are about a hundred. */
  bucket?: Duration;
}

/** A world with its defaults filled in, durations in whole ms. As JSON it is a world again. */
export type DefinedWorld = Readonly<
  Record<Exclude<keyof World, 'retryAfter' | 'bucket'>, number> & {
    retryAfter?: number;
    bucket?: number;
  }
>;

const worldFields = {
  clients: { kind: 'integer', min: 1, max: 100_000, default: 1000 },
  spread: { kind: 'duration', min: 0, default: 100 },
  outageStart: { kind: 'duration', min: 0, default: 0 },
  outage: { kind: 'duration', min: 0, default: 500 },
  capacity: { kind: 'integer', min: 1, max: 1_000_000, default: 500 },
  queue: { kind: 'duration', min: 0, default: 200 },
  // Not 0: a policy without delays would stay at one moment for ever.
  latency: { kind: 'duration', min: 1, default: 50 },
  retryAfter: { kind: 'duration', min: 1 },
  horizon: { kind: 'duration', min: 1, default: 3_600_000 },
  limit: { kind: 'integer', min: 1, max: 10_000_000, default: 2_000_000 },
  seed: { kind: 'integer', min: 0, max: Number.MAX_SAFE_INTEGER, default: 1 },
  bucket: { kind: 'duration', min: 1 },
} as const satisfies Fields;

/** Checks a world. Throws one `ConfigError` that lists every fault. */
export function defineWorld(world: World): DefinedWorld {
  const faults: Fault[] = [];
  const written = readFields(world, worldFields, Object.keys(worldFields), '', faults);
  if (faults.length > 0) throw new ConfigError('INVALID_CONFIG', 'The world has faults:', faults);
  const values: Record<string, number> = {};
  for (const [name, field] of Object.entries<Field>(worldFields)) {
    const value = written[name] ?? defaultOf(field);
    if (value !== undefined) values[name] = Math.round(value as number);
  }
  return values as DefinedWorld;
}
