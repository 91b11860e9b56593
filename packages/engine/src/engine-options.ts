import { inspect } from 'node:util';
import {
  ConfigError,
  type Clock,
  type Duration,
  type Fault,
  type IdempotencyStore,
  type Policy,
  type Random,
} from 'redrive';
import { checkObject, defaultOf, type Fields, readFields, type Values } from 'redrive/internal';
import type { InboxEntry } from './inbox/entry-hook.ts';
import { EngineError } from './errors.ts';
import type { EngineEvent } from './events.ts';
import type { Log } from './host.ts';
import type { LaneSettings } from './lanes/lanes.ts';
import type { AuditOptions, AuditSink } from './ports/audit.ts';
import type { Broker } from './ports/broker.ts';
import type { Delivery } from './ports/delivery.ts';
import type { NewItem } from './ports/inbox.ts';
import type { NewOutboxMessage } from './ports/schedule.ts';
import type { Store } from './ports/store.ts';
import { leastBurst, type RateSettings, rateSettings, usualBurst } from './model/rate.ts';
import type { NewTask, Task } from './model/task.ts';

export interface EngineOptions {
  /** Where tasks are kept: `sqlite('tasks.db')`, `postgres({ url })`, `memory()`. */
  store: Store;
  /** Beside local handlers: `http()` for URLs. */
  deliveries?: readonly Delivery[];
  brokers?: readonly Broker[];
  /** The policy of a task for which nobody says otherwise: what it leaves out is that of the default. */
  policy?: Policy;
  /** Policies that a submit may name. */
  policies?: Readonly<Record<string, Policy>>;
  /** Limits by lane (`handler:orders`, `https://api.example.com`), and for all others. */
  lanes?: Readonly<Record<string, LaneOptions>>;
  lane?: LaneOptions;
  /** Payloads over this are refused (1 MiB). */
  maxPayloadBytes?: number;
  /** What `submit` does while the store is away: `fail` at once (the default), or `wait`. */
  onUnavailable?: 'fail' | 'wait';
  /** How long a claim holds (30 s), and how often it is renewed (10 s). */
  lease?: Duration;
  heartbeat?: Duration;
  /** How often the store is looked at without a wake-up: the safety net (10 s). */
  poll?: Duration;
  /** Leases without a settle before a task goes to the inbox as WORKER_LOST (3). */
  maxLostLeases?: number;
  /** How long finished tasks are kept: done and cancelled 1 day, retried 7 days. */
  retention?: { done?: Duration; retried?: Duration; cancelled?: Duration };
  /** The inbox: how long closed items are kept (30 days), from how many open ones on it is full, who is told of new ones. */
  inbox?: InboxOptions;
  /**
   * Where the keys of idempotent handlers are kept: the store's own keys unless given. It stays yours to close. One with
   * transactions, such as `postgresIdempotency(pool)`, gives those handlers a `tx`.
   */
  idempotency?: IdempotencyStore;
  /** False: it takes in and answers, but delivers nothing, prunes nothing and runs no bulk jobs. */
  dispatch?: boolean;
  /** How long `stop` waits for what runs before it aborts it (10 s). */
  grace?: Duration;
  /** The trail of decisions: `true` for the store's own sink, a sink, or options. Off unless given. */
  audit?: boolean | AuditSink | AuditOptions;
  /** A message that is committed with every new inbox item, and published to a broker. */
  review?: (task: Task | NewTask, item: NewItem) => NewOutboxMessage | undefined;
  /** Called with everything that happens. It must be quick, and cannot change anything. */
  on?: (event: EngineEvent) => void;
  log?: Log;
  clock?: Clock;
  random?: Random;
  /** The name of this instance in audit and leases; made up unless given. */
  instance?: string;
  /** Calls back later in this turn: for simulations, which have no turns of their own. */
  defer?: (callback: () => void) => void;
}

export interface InboxOptions {
  /** How long replayed, resolved, discarded and erased items are kept (30 days): so long they can be restored. */
  retention?: Duration;
  /** Open items from which on it is full (1 million); it warns from four fifths on. Nothing open is ever deleted. */
  maxItems?: number;
  /** Called when something enters: for a group at once, then at most once per `debounce`, with the count. */
  onEntry?: (entry: InboxEntry) => unknown;
  debounce?: Duration;
}

export interface LaneOptions {
  /** Deliveries at once in this instance (10; 1000 for a broker). */
  concurrency?: number;
  /** How long one delivery may take: the policy's `attemptTimeout`, or 15 s. */
  timeout?: Duration;
  /** Failures in a row, of more than one task, that open the breaker (5). */
  failures?: number;
  /** How long it stays open at first (30 s); each opening in a row twice as long, up to 5 min. */
  openFor?: Duration;
  /**
   * Starts per second, over all instances; 0.2 is one in 5 s. In no window there are more than `burst` and what the rate
   * allows in it. The burst is 100 ms worth unless given, and 1 up to 2 per second.
   */
  rate?: number | { perSecond: number; burst?: number };
  /** The fields in which its tasks differ from the policy of the engine. */
  policy?: Policy;
}

/** Everything checked, with its defaults. */
export interface EngineSettings {
  maxPayloadBytes: number;
  leaseMs: number;
  heartbeatMs: number;
  pollMs: number;
  maxLostLeases: number;
  graceMs: number;
  retention: { done: number; retried: number; cancelled: number };
  inbox: {
    retentionMs: number;
    maxItems: number;
    debounceMs: number;
    onEntry?: (entry: InboxEntry) => unknown;
  };
  onUnavailable: 'fail' | 'wait';
  /** How long it is remembered that the task of an idempotent handler is done. */
  recordsKeptMs: number;
}

const MiB = 1024 * 1024;
const DAY_MS = 86_400_000;

const engineFields = {
  maxPayloadBytes: { kind: 'integer', min: 1, max: 64 * MiB, default: MiB },
  lease: { kind: 'duration', min: 10, default: 30_000 },
  heartbeat: { kind: 'duration', min: 1, default: 10_000 },
  poll: { kind: 'duration', min: 1, default: 10_000 },
  maxLostLeases: { kind: 'integer', min: 1, max: 1000, default: 3 },
  grace: { kind: 'duration', min: 0, default: 10_000 },
  onUnavailable: { kind: 'choice', of: ['fail', 'wait'], default: 'fail' },
} as const satisfies Fields;

const retentionFields = {
  done: { kind: 'duration', min: 0, default: DAY_MS },
  retried: { kind: 'duration', min: DAY_MS, default: 7 * DAY_MS },
  cancelled: { kind: 'duration', min: 0, default: DAY_MS },
} as const satisfies Fields;

const inboxFields = {
  retention: { kind: 'duration', min: 0, default: 30 * DAY_MS },
  maxItems: { kind: 'integer', min: 1, max: 1_000_000_000, default: 1_000_000 },
  debounce: { kind: 'duration', min: 0, default: 60_000 },
} as const satisfies Fields;

const laneFields = {
  concurrency: { kind: 'integer', min: 1, max: 10_000, default: 10 },
  timeout: { kind: 'duration', min: 1, default: 15_000 },
  failures: { kind: 'integer', min: 1, max: 1_000_000, default: 5 },
  openFor: { kind: 'duration', min: 1, default: 30_000 },
} as const satisfies Fields;

/** From one in 11 days on. */
const rateFields = {
  perSecond: { kind: 'number', min: 1e-6, max: 100_000 },
  burst: { kind: 'integer', min: 1, max: 1_000_000 },
} as const satisfies Fields;

/** The last two are those of a handler. */
const laneOthers = ['rate', 'policy', 'schema', 'idempotent'];

const MAX_OPEN_FOR_MS = 300_000;

export function engineSettings(options: EngineOptions): EngineSettings {
  const given = checked(pick(options, engineFields), engineFields, 'The engine has faults:');
  const kept = checked(options.retention ?? {}, retentionFields, 'The retention has faults:');
  const { done, retried, cancelled } = kept as Record<keyof typeof retentionFields, number>;
  checkObject('The inbox', options.inbox ?? {});
  const { onEntry, ...ofInbox } = options.inbox ?? {};
  const inbox = checked(ofInbox, inboxFields, 'The inbox has faults:', [], ['onEntry']) as Record<
    keyof typeof inboxFields,
    number
  >;
  const { retention: retentionMs, maxItems, debounce: debounceMs } = inbox;
  return {
    maxPayloadBytes: given['maxPayloadBytes'] as number,
    leaseMs: given['lease'] as number,
    heartbeatMs: Math.min(given['heartbeat'] as number, (given['lease'] as number) / 3),
    pollMs: given['poll'] as number,
    maxLostLeases: given['maxLostLeases'] as number,
    graceMs: given['grace'] as number,
    onUnavailable: given['onUnavailable'] as 'fail' | 'wait',
    retention: { done, retried, cancelled },
    inbox: { retentionMs, maxItems, debounceMs, ...(onEntry ? { onEntry } : {}) },
    // At least as long as the row of a task that is over.
    recordsKeptMs: Math.max(done, retentionMs),
  };
}

/** An option that is true, false or absent. */
export function isOn(name: string, given: unknown): boolean {
  if (given === undefined || typeof given === 'boolean') return given === true;
  throw new EngineError(
    'INVALID_ENGINE',
    `The option '${name}' is true or false, not ${inspect(given)}.`,
  );
}

/** `attemptTimeout` is that of the lane's whole policy; `what` is at fault, in the words of whoever wrote the options. */
export function laneSettings(
  options: LaneOptions,
  leaseMs: number,
  attemptTimeout?: number,
  what = 'The lane',
): LaneSettings {
  checkObject(what, options);
  const { policy: _, rate, ...data } = options;
  const timeoutOfPolicy = attemptTimeout === undefined ? {} : { timeout: attemptTimeout };
  const faults: Fault[] = [];
  const rated = rate === undefined ? {} : { rate: laneRate(rate, faults) };
  const all = { ...timeoutOfPolicy, ...data };
  const given = checked(all, laneFields, `${what} has faults:`, faults, laneOthers);
  const { concurrency, timeout, failures, openFor } = given as Record<
    keyof typeof laneFields,
    number
  >;
  const maxOpenForMs = Math.max(MAX_OPEN_FOR_MS, openFor);
  const breaker = {
    openForMs: openFor,
    maxOpenForMs,
    turnMs: Math.max(leaseMs, timeout + leaseMs / 2),
  };
  return { concurrency, timeoutMs: timeout, failures, breaker, ...rated };
}

function laneRate(rate: NonNullable<LaneOptions['rate']>, faults: Fault[]): RateSettings {
  const before = faults.length;
  const given =
    typeof rate === 'object'
      ? readFields(rate, rateFields, Object.keys(rateFields), 'rate', faults)
      : readFields({ rate }, { rate: rateFields.perSecond }, ['rate'], '', faults);
  const perSecond = Number(given['perSecond'] ?? given['rate']);
  const burst = Number(given['burst'] ?? usualBurst(perSecond));
  const least = leastBurst(perSecond);
  if (faults.length === before && Number.isNaN(perSecond)) {
    const message = 'is missing: { perSecond: 10, burst: 5 }, or just a number.';
    faults.push({ path: 'rate.perSecond', code: 'INVALID_VALUE', message });
  }
  if (burst < least) {
    const message = `${burst} is too few to reach ${perSecond} per second: give at least ${least}, or leave it out.`;
    faults.push({ path: 'rate.burst', code: 'INVALID_VALUE', message });
  }
  return rateSettings(perSecond, burst);
}

/** `others` are checked elsewhere, and stand here for "did you mean". */
function checked(
  data: object,
  fields: Fields,
  message: string,
  faults: Fault[] = [],
  others: readonly string[] = [],
): Values {
  const values = readFields(data, fields, [...Object.keys(fields), ...others], '', faults);
  if (faults.length > 0) throw new ConfigError('INVALID_CONFIG', message, faults);
  for (const [name, field] of Object.entries(fields)) values[name] ??= defaultOf(field);
  return values;
}

function pick(options: object, fields: Fields): Values {
  const all = options as Values;
  return Object.fromEntries(
    Object.keys(fields).flatMap((name) => (all[name] === undefined ? [] : [[name, all[name]]])),
  );
}
