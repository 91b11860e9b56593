/** For callers that call the providers themselves, in any language: decisions by the router's state, and reports that feed it. */
import { ConfigError, type Fault } from '../../errors.ts';
import { show } from '../../options/faults.ts';
import type { RouteDecision } from '../decide-route.ts';
import { scalarText } from '../read-document.ts';
import { refuseProvider, type RouteContext } from '../route-context.ts';
import { CallSession } from './call-session.ts';
import type { Decider, RouterParts } from './decider.ts';
import { isSuccess } from './failure-status.ts';
import type { RouterSettings } from './router-options.ts';
import { checkNames } from '../../options/check-options.ts';

/** How a call of a provider ended that the caller made. */
export interface RouteReport {
  provider: string;
  /** `ok`, or what the call failed with: `timeout`, `connection_error`, `rate_limit`, `503`. A 2xx number is a success. */
  status: string | number;
  /** How long the call took. Without it the call has no part in the percentiles. */
  latencyMs?: number | undefined;
  /** The pause that the provider asked for. It counts with a rate limit only. */
  retryAfterMs?: number | undefined;
  /** The context of the request, for its session: the field that the policy names, and `tenant_id`. */
  context?: RouteContext | undefined;
}

/** A decision with the session and the state of the providers. A half-open provider is given to as many as may probe it. */
export async function decideExternally(
  parts: RouterParts,
  given: RouteContext,
  decider: Decider,
): Promise<RouteDecision> {
  const { settings, states, sticky } = parts;
  let context: RouteContext = { ...given, request_id: given.request_id ?? decider.requestId };
  const isFirst = given.status == null || given.current_provider == null;
  const session = isFirst && sticky ? CallSession.of(sticky, settings, given) : undefined;
  if (session) context = await session.addTo(context, runtimeOf(settings));
  const { decision } = decider.decide(context, (name) => states.get(name)?.lend() === true);
  return { ...decision, context: withGivenOpen(decision.context, given) };
}

/** The router adds who is open with every decision. Handed back, its names would stay open for the whole request. */
function withGivenOpen(context: RouteContext, given: RouteContext): RouteContext {
  const { open_providers: _, ...rest } = context;
  return given.open_providers == null ? rest : { ...rest, open_providers: given.open_providers };
}

/** Feeds breaker, pause, rates, latencies and session. Resolves when the session is written, or could not be. */
export async function takeReport(parts: RouterParts, report: RouteReport): Promise<void> {
  const { settings, states, sticky } = parts;
  const { provider, status, latencyMs, retryAfterMs, context = {} } = checked(report);
  const state = states.get(provider);
  if (!state) return refuseProvider(settings.policy, 'provider', provider);
  const text = scalarText(status) as string;
  state.reported(text, latencyMs);
  state.cool(text, retryAfterMs, settings.maxCooldownMs);
  const session = sticky && CallSession.of(sticky, settings, context);
  if (!session) return;
  const runtime = runtimeOf(settings);
  if (isSuccess(text)) await session.save(provider, runtime);
  else await session.dropAfter(text, provider, runtime);
}

function runtimeOf({ clock, unref }: RouterSettings) {
  return { clock, unref, key: '' };
}

const reportNames = ['provider', 'status', 'latencyMs', 'retryAfterMs', 'context'];

function checked(report: RouteReport): RouteReport {
  checkNames('The fields of a report', report, reportNames);
  const { provider, status, latencyMs, retryAfterMs, context } = report;
  const faults: Fault[] = [];
  const expect = (isGood: boolean, path: string, value: unknown, wanted: string) => {
    if (isGood) return;
    faults.push({ path, code: 'INVALID_VALUE', message: `${show(value)} is not ${wanted}.` });
  };
  const isTime = (value: unknown) =>
    value === undefined || (typeof value === 'number' && Number.isFinite(value) && value >= 0);
  expect(typeof provider === 'string', 'provider', provider, 'the name of a provider');
  const isStatus = typeof status === 'number' || (typeof status === 'string' && status !== '');
  expect(isStatus, 'status', status, 'ok, or the status of a failure');
  expect(isTime(latencyMs), 'latencyMs', latencyMs, 'a number of ms of at least 0');
  expect(isTime(retryAfterMs), 'retryAfterMs', retryAfterMs, 'a number of ms of at least 0');
  const isContext = context === undefined || (typeof context === 'object' && context !== null);
  expect(isContext, 'context', context, 'a routing context');
  if (faults.length > 0) throw new ConfigError('INVALID_CONFIG', 'The report has faults:', faults);
  return { provider, status, latencyMs, retryAfterMs, context };
}
