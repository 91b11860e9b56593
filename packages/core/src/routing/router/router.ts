import type { AuditEntry } from '../../audit/audit-events.ts';
import type { Clock } from '../../clock.ts';
import { ConfigError } from '../../errors.ts';
import { notify } from '../../run/notify.ts';
import type { RouteDecision } from '../decide-route.ts';
import type { DetailLevel, RouteExplanation } from '../explain-route.ts';
import { scalarText } from '../read-document.ts';
import { type RouteDecided, routeEntry, routingPolicyEntry } from '../route-audit.ts';
import type { RouteContext } from '../route-context.ts';
import type { RoutingPolicyDocument } from '../routing-fields.ts';
import { parseRoutingPolicy, type RoutingPolicy } from '../routing-policy.ts';
import { type ProviderHealth, ProviderState } from './provider-health.ts';
import { Decider, type RouterParts } from './decider.ts';
import { decideExternally, type RouteReport, takeReport } from './external-calls.ts';
import { RouteCall } from './route-call.ts';
import type { RouteAttemptRecord, RouteError } from './route-error.ts';
import {
  type InputOf,
  type OutputOf,
  readRouterOptions,
  type RouteProviders,
  type RouterOptions,
} from './router-options.ts';
import { memorySticky } from './sticky-store.ts';
import { checkNames } from '../../options/check-options.ts';

export interface RouteCallOptions {
  /** Ends the call at once, in an attempt or in a wait. */
  signal?: AbortSignal | undefined;
  /** The seed of this call's random numbers instead of the router's. */
  seed?: number | undefined;
}

export interface RouteDecideOptions {
  /** The seed that came with the last decision of this request. The router's own where none is given. */
  seed?: number | undefined;
  /** How much the explanation tells. */
  detailLevel?: DetailLevel | undefined;
}

/** What a call came to. */
export interface RouteResult<Output> {
  value: Output;
  /** The provider that answered. */
  provider: string;
  /** Why that provider was called. */
  explanation: RouteExplanation;
  /** Every attempt, in the order of their start, with timings and the decision that led to each. */
  attempts: readonly RouteAttemptRecord[];
  requestId: string;
  seed: number;
}

export interface Router<Input, Output> {
  readonly policy: RoutingPolicy;
  /** Calls providers until one answers. Rejects with a `RouteError` where none does. */
  call(
    input: Input,
    context?: RouteContext,
    options?: RouteCallOptions,
  ): Promise<RouteResult<Output>>;
  /**
   * Which provider a caller should call itself, by the state that `call` uses: sessions, breakers, pauses. Hand back the
   * context and the seed after a failure, with `status`; tell the end of each call by `report`.
   */
  decide(context?: RouteContext, options?: RouteDecideOptions): Promise<RouteDecision>;
  /**
   * How a call ended that the caller made itself. Feeds breaker, pause, session, rates and latencies. While the breaker is
   * open it learns nothing from a report; half open, the report counts as a probe. Resolves when the session is written.
   */
  report(report: RouteReport): Promise<void>;
  /** The state, the rates and the latencies of each provider. */
  health(): Record<string, ProviderHealth>;
}

/** What a router tells of. Every decision comes with all that it was made of. */
export type RouteEvent = { requestId: string; seed: number } & (
  | {
      type: 'decision';
      policy: RoutingPolicy;
      context: RouteContext;
      nowMs: number;
      decision: RouteDecision;
    }
  | { type: 'attempt'; provider: string; attempt: number }
  | { type: 'success'; provider: string; attempts: number }
  | { type: 'failure'; record: RouteAttemptRecord }
  | { type: 'giveUp'; error: RouteError }
);

/**
 * Calls providers by a routing policy: retries, waits, fallbacks, breakers, sticky sessions.
 *
 * @example
 * const router = createRouter(policy, {
 *   providers: { primary: (order: Order, { signal }) => pay(order, signal), backup: payElsewhere },
 *   deadline: '10s',
 * });
 * const { value, provider, attempts } = await router.call(order);
 */
export function createRouter<P extends RouteProviders>(
  policy: RoutingPolicy | RoutingPolicyDocument,
  options: RouterOptions<P>,
): Router<InputOf<P>, OutputOf<P>> {
  const parsed = parseRoutingPolicy(policy);
  const settings = readRouterOptions(parsed, options as unknown as RouterOptions<RouteProviders>);
  const { clock } = settings;
  const before = options.continueFrom && statesOf.get(options.continueFrom);
  const states = new Map(
    parsed.providers.map(({ name }) => {
      const state = before?.get(name);
      return [name, state?.suits(parsed, clock) ? state : new ProviderState(parsed, clock)];
    }),
  );
  const parts: RouterParts = {
    settings,
    states,
    sticky: parsed.sticky.enabled
      ? (options.sticky ?? memorySticky({ now: () => clock.now() }))
      : undefined,
    audit: settings.audit && auditor(settings.audit, clock),
  };
  const seed = Math.floor(settings.random() * Number.MAX_SAFE_INTEGER);
  const prefix = `${seed.toString(36)}-`;
  let calls = 0;
  const requestIdOf = (context: RouteContext) => scalarText(context.request_id) ?? prefix + ++calls;
  const router: Router<InputOf<P>, OutputOf<P>> = {
    policy: parsed,
    async call(input, context = {}, callOptions = {}) {
      const fault = faultOf(context, 'The second argument of call');
      if (fault) throw fault;
      checkNames('The options of call', callOptions, ['signal', 'seed']);
      const { seed: wished = seed, signal } = callOptions;
      const requestId = requestIdOf(context);
      const call = new RouteCall(parts, input, context, requestId, wished, signal);
      return call.run() as Promise<RouteResult<OutputOf<P>>>;
    },
    async decide(context = {}, decideOptions = {}) {
      const fault = faultOf(context, 'The first argument of decide');
      if (fault) throw fault;
      checkNames('The options of decide', decideOptions, ['seed', 'detailLevel']);
      const { seed: wished = seed, detailLevel } = decideOptions;
      const level = detailLevel ?? settings.detailLevel;
      const decider = new Decider(parts, context, requestIdOf(context), wished, level);
      return decideExternally(parts, context, decider);
    },
    async report(report) {
      await takeReport(parts, report);
    },
    health() {
      return Object.fromEntries(Array.from(states, ([name, state]) => [name, state.report()]));
    },
  };
  statesOf.set(router, states);
  return router;
}

/** What each router knows of its providers, for the router that replaces it. */
const statesOf = new WeakMap<object, ReadonlyMap<string, ProviderState>>();

function faultOf(context: unknown, what: string): ConfigError | undefined {
  if (typeof context === 'object' && context !== null) return undefined;
  return new ConfigError('INVALID_CONTEXT', `${what} must be a routing context, an object.`);
}

const REGISTERED_FOR_MS = 3_600_000;

/** Writes the policy before its first decision and once an hour, so that a trail whose start was cut off replays alone. */
function auditor(
  audit: (entry: AuditEntry) => unknown,
  clock: Clock,
): (decided: RouteDecided) => void {
  let registeredUntil = -Infinity;
  return (decided) => {
    if (clock.monotonic() >= registeredUntil) {
      registeredUntil = clock.monotonic() + REGISTERED_FOR_MS;
      notify('an audit of routing', audit, routingPolicyEntry(decided.policy));
    }
    notify('an audit of routing', audit, routeEntry(decided));
  };
}
