import { delayFor } from '../policy/backoff.ts';
import { ConfigError } from '../errors.ts';
import { unitRandom } from '../policy/random.ts';
import { wholeMs } from '../failure/retry-after.ts';
import { systemClock, systemRandom } from '../system.ts';
import {
  explanationOf,
  type DetailLevel,
  detailLevels,
  type Outcome,
  type RouteExplanation,
} from './explain-route.ts';
import {
  type ContextWarning,
  type ReadContext,
  readContext,
  type RouteContext,
  type StickySession,
} from './route-context.ts';
import type { RoutingPolicyDocument } from './routing-fields.ts';
import { parseRoutingPolicy, RoutingPolicy, type RoutingRule } from './routing-policy.ts';
import { statusText } from './rule-match.ts';
import { checkNames } from '../options/check-options.ts';

export interface RouteOptions {
  /** Where the random numbers of the decision come from. One is drawn where none is given, and returned. */
  seed?: number | undefined;
  /** How much the explanation tells (`detailed`). */
  detailLevel?: DetailLevel | undefined;
  /** The wall clock in ms, compared with the expiry of the session. */
  nowMs?: number | undefined;
}

const optionNames = ['seed', 'detailLevel', 'nowMs'];

/** What a caller should know about a retry or a fallback. Absent on a first choice. */
export interface RetryInfo {
  fallback_rule_id: string;
  /** The number of this retry, or of the retries that were used before a fallback. */
  retry_attempt: number;
  retry_max: number;
  backoff_ms: number;
  /** True: wait `backoff_ms` before the call. */
  backoff_applied: boolean;
}

interface Decided {
  explanation: RouteExplanation;
  seed: number;
  /** Hand this back with the next question; after a failure with `status`. */
  context: RouteContext;
  warnings: readonly ContextWarning[];
}

export type RouteDecision =
  | (Decided & { result: 'ok'; provider: string; retryInfo?: RetryInfo })
  | (Decided & { result: 'retry'; provider: string; retryInfo: RetryInfo })
  | (Decided & { result: 'error'; error: 'no_fallback' | 'no_providers' });

/**
 * Which provider to call: the first choice, the same one again, or the next one. Pure: the same policy, context, seed and
 * time always give the same decision. Throws a `ConfigError` for a policy or a context that is invalid.
 *
 * @example
 * let { provider, context, seed } = decideRoute(policy, { request_id: 'r1' });
 * // The call of the provider timed out:
 * const next = decideRoute(policy, { ...context, status: 'timeout' }, { seed });
 */
export function decideRoute(
  policy: RoutingPolicy | RoutingPolicyDocument,
  context: RouteContext,
  options: RouteOptions = {},
): RouteDecision {
  const given = policy instanceof RoutingPolicy ? policy : parseRoutingPolicy(policy);
  checkNames('The options of decideRoute', options, optionNames);
  const { seed: wished, detailLevel = 'detailed', nowMs } = options;
  if (!detailLevels.includes(detailLevel)) refuseLevel(detailLevel);
  const seed = Number.isFinite(wished)
    ? (wished as number)
    : Math.floor(systemRandom() * Number.MAX_SAFE_INTEGER);
  const read = readContext(given, context);
  const status = read.current === undefined ? undefined : statusText(context.status);
  const outcome =
    status === undefined
      ? choose(given, read, seed, nowMs)
      : afterFailure(given, read, status, seed);
  const explanation = explanationOf(given, read, outcome, seed, detailLevel);
  return withResult(read, outcome, explanation, seed);
}

/** The first choice: the session's provider, else a weighted draw. */
function choose(
  policy: RoutingPolicy,
  read: ReadContext,
  seed: number,
  nowMs: number | undefined,
): Outcome {
  const { sticky } = policy;
  const session = sticky.enabled ? read.context.sticky : undefined;
  if (session && isUsable(policy, read, session, nowMs)) {
    return { reason: 'sticky', provider: session.provider };
  }
  let total = 0;
  let count = 0;
  for (const { name, weight } of policy.providers) {
    if (isOut(read, name)) continue;
    total += weight;
    count += 1;
  }
  if (total === 0) return { reason: 'no_providers', count };
  let point = unitRandom(seed, read.requestId, 0) * total;
  let provider = '';
  for (const { name, weight } of policy.providers) {
    if (weight === 0 || isOut(read, name)) continue;
    provider = name;
    point -= weight;
    // Rounding may leave a rest of nothing: then the last one stays chosen.
    if (point < 0) break;
  }
  return { reason: 'weighted', provider, count, total };
}

function isUsable(
  policy: RoutingPolicy,
  read: ReadContext,
  { provider, expires_at_ms: until }: StickySession,
  nowMs: number | undefined,
): boolean {
  if (!policy.hasProvider(provider) || isOut(read, provider)) return false;
  return until > (nowMs ?? systemClock.now());
}

/** The first rule that matches decides: a retry while it has some left, then its target. */
function afterFailure(
  policy: RoutingPolicy,
  read: ReadContext,
  status: string,
  seed: number,
): Outcome {
  const { context, exhausted, open } = read;
  const current = read.current as string;
  const { rules } = policy;
  const first = matching(rules, context, status, 0);
  const rule = rules[first];
  if (!rule) return { reason: 'no_fallback' };
  const used = (context[rule.counter] ?? 0) as number;
  const isOpen = open.has(current);
  const mayRetry = used < rule.retry && !isOpen && !exhausted.has(current);
  if (mayRetry && context.skip_retry !== true) return retryOf(read, rule, used, seed);

  for (let i = first; i < rules.length; i = matching(rules, context, status, i + 1)) {
    const { to } = rules[i] as RoutingRule;
    if (to === current || isOut(read, to)) continue;
    const reason = isOpen ? 'circuit_breaker_fallback' : 'fallback';
    return { reason, provider: to, rule, used, skipped: mayRetry };
  }
  return mayRetry
    ? retryOf(read, rule, used, seed)
    : { reason: 'no_fallback', rule, used: Math.min(used, rule.retry) };
}

/** The index of the first rule from `start` on that matches; the length of the list where none does. */
function matching(
  rules: readonly RoutingRule[],
  context: RouteContext,
  status: string,
  start: number,
): number {
  let i = start;
  while (i < rules.length && !(rules[i] as RoutingRule).matches(context, status)) i += 1;
  return i;
}

function retryOf(read: ReadContext, rule: RoutingRule, used: number, seed: number): Outcome {
  const attempt = used + 1;
  // A key of the rule's own: the waits of two rules, and the draw, do not depend on each other.
  const key = `${read.requestId}/${rule.id}`;
  let backoffMs = delayFor(rule.backoff, { attempt, random: unitRandom(seed, key, attempt) });
  const askedMs = wholeMs(read.context.retry_after_ms) ?? 0;
  if (askedMs > backoffMs) {
    // Never earlier than asked, and spread, so that a crowd told "60" does not come back as one.
    backoffMs = Math.floor(askedMs + unitRandom(seed, key, -attempt) * 0.1 * askedMs);
  }
  return { reason: 'retry', provider: read.current as string, rule, used: attempt, backoffMs };
}

function isOut({ exhausted, open }: ReadContext, name: string): boolean {
  return (exhausted.size > 0 && exhausted.has(name)) || (open.size > 0 && open.has(name));
}

/** Completes the next context, and puts the outcome in the form of the contract. */
function withResult(
  { next, warnings }: ReadContext,
  outcome: Outcome,
  explanation: RouteExplanation,
  seed: number,
): RouteDecision {
  // Written out below: a spread for each decision would be a good part of its cost.
  const context: RouteContext = next;
  switch (outcome.reason) {
    case 'sticky':
    case 'weighted': {
      const { provider } = outcome;
      context.current_provider = provider;
      return { result: 'ok', provider, explanation, seed, context, warnings };
    }
    case 'retry': {
      const { provider, rule, used, backoffMs } = outcome;
      context[rule.counter] = used;
      const retryInfo = infoOf(rule, used, backoffMs);
      return { result: 'retry', provider, retryInfo, explanation, seed, context, warnings };
    }
    case 'fallback':
    case 'circuit_breaker_fallback': {
      const { provider, rule, used } = outcome;
      const left = context.current_provider as string;
      const before = context.exhausted_providers ?? [];
      context.exhausted_providers = before.includes(left) ? before : [...before, left];
      context.current_provider = provider;
      // The wait was asked for by the provider that was left.
      if (context.retry_after_ms != null) context.retry_after_ms = null;
      const retryInfo = infoOf(rule, Math.min(used, rule.retry), 0);
      return { result: 'ok', provider, retryInfo, explanation, seed, context, warnings };
    }
    case 'no_fallback':
    case 'no_providers':
      return { result: 'error', error: outcome.reason, explanation, seed, context, warnings };
  }
}

function infoOf(rule: RoutingRule, attempt: number, backoffMs: number): RetryInfo {
  return {
    fallback_rule_id: rule.id,
    retry_attempt: attempt,
    retry_max: rule.retry,
    backoff_ms: backoffMs,
    backoff_applied: backoffMs > 0,
  };
}

function refuseLevel(level: unknown): never {
  throw new ConfigError(
    'INVALID_VALUE',
    `detailLevel is ${String(level)}. It must be one of ${detailLevels.join(', ')}.`,
  );
}
