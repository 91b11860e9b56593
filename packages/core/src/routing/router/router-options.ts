import type { AuditEntry } from '../../audit/audit-events.ts';
import type { Budget } from '../../limits/budget.ts';
import type { Clock, Random } from '../../clock.ts';
import type { Duration } from '../../policy/duration.ts';
import { ConfigError, type Fault } from '../../errors.ts';
import type { Failure } from '../../failure/failure.ts';
import { nearest } from '../../options/faults.ts';
import { defaultOf, type Fields, readFields, type Values } from '../../options/fields.ts';
import { systemClock, systemRandom } from '../../system.ts';
import type { DetailLevel } from '../explain-route.ts';
import type { RoutingPolicy } from '../routing-policy.ts';
import type { RouteAttempt } from './leg.ts';
import type { RouteEvent, Router } from './router.ts';
import type { StickyStore } from './sticky-store.ts';
import type { StreamOptions } from './stream-guard.ts';

/** Calls one provider. It should pass `signal` on; a function that does not is abandoned all the same. */
export type RouteProvider<Input = never, Output = unknown> = (
  input: Input,
  attempt: RouteAttempt,
) => Output;

export type RouteProviders = Readonly<Record<string, RouteProvider>>;

/** What the functions of a router take, all of them, and what they may return. */
export type InputOf<P extends RouteProviders> = P[keyof P] extends (
  input: infer Input,
  ...rest: never[]
) => unknown
  ? Input
  : never;
export type OutputOf<P extends RouteProviders> = Awaited<ReturnType<P[keyof P]>>;

/** A failed attempt, for `mayRepeat`. */
export interface FailedAttempt<Input, Output> {
  input: Input;
  provider: string;
  /** As rules compare it. */
  status: string;
  /** What the provider function threw. */
  error: unknown;
  failure: Failure;
  /** The value, where `refuse` called it a failure. */
  refused: Output | undefined;
}

export interface RouterOptions<P extends RouteProviders> {
  /** A function for each provider of the policy. */
  providers: P;
  /** Where sticky sessions are kept. In memory where the policy has them and none is given. */
  sticky?: StickyStore | undefined;
  /** How long a call may take in all, attempts and waits together. */
  deadline?: Duration | undefined;
  /** How many attempts a call may make in all (20). */
  maxAttempts?: number | undefined;
  /** Bounds the retries of all calls that share it. Without tokens a call goes to the fallback at once. */
  budget?: Budget | undefined;
  /** True: do not wait for a retry while another provider may be tried at once (false). */
  skipWaits?: boolean | undefined;
  /** Start the fallback of a timeout beside an attempt that has not answered after this long. The first answer wins. */
  hedgeAfter?: Duration | undefined;
  /** A provider that asks for a longer wait than this is not waited for: the call goes to the fallback, or ends (60 s). */
  maxRetryAfter?: Duration | undefined;
  /** A pause that a provider asks for with a rate limit is cut to this (1 h). */
  maxCooldown?: Duration | undefined;
  /** The status of an error in your words; undefined leaves it to Redrive. */
  statusOf?: ((error: unknown, failure: Failure) => string | number | undefined) | undefined;
  /** The status of a value that is a failure, such as a response with an error status; undefined accepts it. */
  refuse?: ((value: OutputOf<P>) => string | number | undefined) | undefined;
  /**
   * Whether the work may be done again after this failure, by the same provider or another one. False ends the call with
   * `NOT_REPEATED`. For work that must not be executed twice. Without it every failure may be followed by another attempt.
   */
  mayRepeat?: ((failed: FailedAttempt<InputOf<P>, OutputOf<P>>) => boolean) | undefined;
  /**
   * The router that this one replaces, after a change of its policy. Providers of the same name keep their breaker, pause
   * and outcomes, where the settings of the breaker are the same.
   */
  continueFrom?: Router<never, unknown> | undefined;
  /** Treat async iterables and web streams as streaming answers. */
  stream?: (StreamOptions & { idleTimeout?: Duration | undefined }) | undefined;
  /** How much explanations tell (`detailed`). */
  detailLevel?: DetailLevel | undefined;
  /**
   * Gets an audit event for every decision, and one for the policy at its first use and after every hour. `replayAudit`
   * makes the decisions again. One that throws or rejects never breaks a call.
   */
  audit?: ((entry: AuditEntry) => unknown) | undefined;
  /** A listener that throws or rejects never breaks a call. */
  on?: ((event: RouteEvent) => unknown) | undefined;
  clock?: Clock | undefined;
  /** Where the seed of the router comes from. */
  random?: Random | undefined;
  /** Waits and timeouts do not keep the process alive. */
  unref?: boolean | undefined;
}

/** Options after their check. */
export interface RouterSettings {
  policy: RoutingPolicy;
  providers: ReadonlyMap<string, RouteProvider<unknown>>;
  timeoutMs: number;
  deadlineMs: number;
  maxAttempts: number;
  skipWaits: boolean;
  hedgeAfterMs: number | undefined;
  maxRetryAfterMs: number;
  maxCooldownMs: number;
  streamIdleMs: number;
  budget: Budget | undefined;
  stream: StreamOptions | undefined;
  statusOf: RouterOptions<RouteProviders>['statusOf'];
  refuse: ((value: unknown) => string | number | undefined) | undefined;
  mayRepeat: ((failed: FailedAttempt<unknown, unknown>) => boolean) | undefined;
  detailLevel: DetailLevel;
  audit: ((entry: AuditEntry) => unknown) | undefined;
  on: ((event: RouteEvent) => unknown) | undefined;
  clock: Clock;
  random: Random;
  unref: boolean | undefined;
}

const optionFields = {
  deadline: { kind: 'duration', min: 1 },
  maxAttempts: { kind: 'integer', min: 1, max: 1000, default: 20 },
  skipWaits: { kind: 'boolean', default: false },
  hedgeAfter: { kind: 'duration', min: 0 },
  maxRetryAfter: { kind: 'duration', min: 0, default: 60_000 },
  maxCooldown: { kind: 'duration', min: 0, default: 3_600_000 },
  detailLevel: { kind: 'choice', of: ['minimal', 'detailed', 'verbose'], default: 'detailed' },
} as const satisfies Fields;

const otherNames =
  'providers sticky budget statusOf refuse mayRepeat stream audit on clock random unref continueFrom'.split(
    ' ',
  );

const streamFields = { idleTimeout: { kind: 'duration', min: 1 } } as const satisfies Fields;

/** Checks the options of a router, all faults at once. */
export function readRouterOptions(
  policy: RoutingPolicy,
  options: RouterOptions<RouteProviders>,
): RouterSettings {
  const {
    providers,
    sticky,
    budget,
    statusOf,
    refuse,
    mayRepeat,
    stream,
    audit,
    on,
    clock,
    random,
    unref,
    continueFrom: _,
    ...data
  } = Object(options) as RouterOptions<RouteProviders>;
  const faults: Fault[] = [];
  const values = read(data, optionFields, '', faults, otherNames);
  const { isContent, isEnd, ...streamData } = stream ?? {};
  const streamValues = read(streamData, streamFields, 'stream', faults, ['isContent', 'isEnd']);
  const functions = {
    statusOf,
    refuse,
    mayRepeat,
    audit,
    on,
    random,
    'stream.isContent': isContent,
    'stream.isEnd': isEnd,
  };
  for (const [path, value] of Object.entries(functions)) {
    if (value !== undefined && typeof value !== 'function') {
      faults.push({ path, code: 'INVALID_VALUE', message: 'This must be a function.' });
    }
  }
  checkParts({ sticky, budget, clock }, faults);
  const functionsByName = readProviders(policy, providers, faults);
  if (faults.length > 0) throw new ConfigError('INVALID_CONFIG', 'The router has faults:', faults);
  return {
    policy,
    providers: functionsByName,
    timeoutMs: policy.timeoutMs ?? Infinity,
    deadlineMs: (values['deadline'] as number | undefined) ?? Infinity,
    maxAttempts: values['maxAttempts'] as number,
    skipWaits: values['skipWaits'] as boolean,
    hedgeAfterMs: values['hedgeAfter'] as number | undefined,
    maxRetryAfterMs: values['maxRetryAfter'] as number,
    maxCooldownMs: values['maxCooldown'] as number,
    streamIdleMs: (streamValues['idleTimeout'] as number | undefined) ?? Infinity,
    detailLevel: values['detailLevel'] as DetailLevel,
    budget,
    stream: stream && { isContent, isEnd },
    statusOf,
    refuse,
    mayRepeat: mayRepeat as RouterSettings['mayRepeat'],
    audit,
    on,
    clock: clock ?? systemClock,
    random: random ?? systemRandom,
    unref,
  };
}

/** `others` are no data, and stand here for "did you mean". */
function read(
  data: object,
  fields: Fields,
  path: string,
  faults: Fault[],
  others: readonly string[],
): Values {
  const values = readFields(data, fields, [...Object.keys(fields), ...others], path, faults);
  for (const [name, field] of Object.entries(fields)) values[name] ??= defaultOf(field);
  return values;
}

const methods = {
  sticky: ['get', 'set', 'delete'],
  budget: ['spend', 'success'],
  clock: ['setTimer', 'monotonic', 'now'],
};

function checkParts(parts: Values, faults: Fault[]): void {
  for (const [path, names] of Object.entries(methods)) {
    const part = parts[path] as Values | undefined;
    if (part === undefined) continue;
    if (part !== null && names.every((name) => typeof part[name] === 'function')) continue;
    const message = `This must be an object with the methods ${names.join(', ')}.`;
    faults.push({ path, code: 'INVALID_VALUE', message });
  }
}

function readProviders(
  policy: RoutingPolicy,
  given: unknown,
  faults: Fault[],
): ReadonlyMap<string, RouteProvider<unknown>> {
  const found = new Map<string, RouteProvider<unknown>>();
  const functions = new Map(Object.entries((given ?? {}) as Values));
  for (const { name } of policy.providers) {
    const call = functions.get(name);
    functions.delete(name);
    if (typeof call === 'function') found.set(name, call as RouteProvider<unknown>);
    else {
      const message = `The policy has the provider '${name}'. Give a function that calls it.`;
      faults.push({ path: `providers.${name}`, code: 'NOT_A_FUNCTION', message });
    }
  }
  const names = policy.providers.map(({ name }) => name);
  for (const name of functions.keys()) {
    const near = nearest(name, names);
    const hint = near === undefined ? '' : ` Did you mean '${near}'?`;
    const message = `The policy has no such provider. It has: ${names.slice(0, 20).join(', ')}.${hint}`;
    faults.push({ path: `providers.${name}`, code: 'UNKNOWN_PROVIDER', message });
  }
  return found;
}
