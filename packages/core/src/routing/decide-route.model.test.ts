/**
 * A model of the decision, written from the contract and not from the code: it works on the plain document, looks everything
 * up anew each time, and shares only the random numbers. Both must agree on 100 000 random histories.
 */
import { describe, expect, it } from 'vitest';
import { seededRandom, unitRandom } from '../policy/random.ts';
import { decideRoute } from './decide-route.ts';
import type { RouteContext } from './route-context.ts';
import { parseRoutingPolicy } from './routing-policy.ts';

const HISTORIES = 100_000;
const HISTORIES_PER_POLICY = 200;
const NOW = 1_800_000_000_000;

interface Rule {
  when: Record<string, string | number | (string | number)[]>;
  to: string;
  retry?: number;
  backoff?: { strategy?: string; base_ms?: number; max_ms?: number; jitter?: boolean };
}

interface ModelPolicy {
  version: string;
  providers: { name: string; weight: number }[];
  fallbacks: Rule[];
  sticky?: { enabled: boolean; ttl_seconds?: number };
}

interface Answer {
  result: string;
  provider?: string;
  error?: string;
  reason: string;
  backoff?: number;
  attempt?: number;
  context: Record<string, unknown>;
}

function model(policy: ModelPolicy, ids: string[], context: RouteContext, seed: number): Answer {
  const names = policy.providers.map(({ name }) => name);
  for (const { to } of policy.fallbacks) if (!names.includes(to)) names.push(to);
  const exhausted = [...(context.exhausted_providers ?? [])];
  const open = context.open_providers ?? [];
  const left = names.filter((name) => !exhausted.includes(name) && !open.includes(name));
  const { status, skip_retry: skip, ...kept } = context;
  const key = String(context.request_id);

  if (status == null) {
    const session = policy.sticky?.enabled ? context.sticky : undefined;
    if (session && session.expires_at_ms > NOW && left.includes(session.provider)) {
      const { provider } = session;
      return {
        result: 'ok',
        provider,
        reason: 'sticky',
        context: { ...kept, current_provider: provider },
      };
    }
    const weightOf = (name: string) =>
      policy.providers.find((each) => each.name === name)?.weight ?? 0;
    const tickets = left.flatMap((name) => Array<string>(weightOf(name)).fill(name));
    const provider = tickets[Math.floor(unitRandom(seed, key, 0) * tickets.length)];
    if (provider === undefined) {
      return { result: 'error', error: 'no_providers', reason: 'no_providers', context: kept };
    }
    return {
      result: 'ok',
      provider,
      reason: 'weighted',
      context: { ...kept, current_provider: provider },
    };
  }

  const current = String(context.current_provider);
  const found = policy.fallbacks
    .map((rule, index) => ({ rule, id: ids[index] as string }))
    .filter(({ rule }) => applies(rule, context));
  const [first] = found;
  if (!first)
    return { result: 'error', error: 'no_fallback', reason: 'no_fallback', context: kept };
  const counter = `retry_attempts_${first.id}`;
  const used = Number(context[counter] ?? 0);
  const target = found.map(({ rule }) => rule.to).find((to) => to !== current && left.includes(to));
  const retries = first.rule.retry ?? 1;
  if (left.includes(current) && used < retries && !(skip && target !== undefined)) {
    const backoff = wait(first.rule, used + 1, seed, `${key}/${first.id}`, context.retry_after_ms);
    return {
      result: 'retry',
      provider: current,
      reason: 'retry',
      backoff,
      attempt: used + 1,
      context: { ...kept, [counter]: used + 1 },
    };
  }
  if (target === undefined) {
    return { result: 'error', error: 'no_fallback', reason: 'no_fallback', context: kept };
  }
  if (!exhausted.includes(current)) exhausted.push(current);
  return {
    result: 'ok',
    provider: target,
    reason: open.includes(current) ? 'circuit_breaker_fallback' : 'fallback',
    backoff: 0,
    attempt: Math.min(used, retries),
    context: {
      ...kept,
      current_provider: target,
      exhausted_providers: exhausted,
      ...(context.retry_after_ms == null ? {} : { retry_after_ms: null }),
    },
  };
}

function applies(rule: Rule, context: RouteContext): boolean {
  for (const key of Object.keys(rule.when)) {
    const wanted = [rule.when[key]].flat().map(String);
    if (!(key in context)) return false;
    const actual = String(context[key]);
    const names = [actual];
    if (key === 'status') {
      if (actual === 'rate_limit') names.push('429', '4xx');
      if (actual === '429') names.push('rate_limit');
      if (/^[45]\d\d$/.test(actual)) names.push(`${actual.charAt(0)}xx`);
    }
    if (!wanted.some((each) => names.includes(each))) return false;
  }
  return true;
}

function wait(rule: Rule, n: number, seed: number, key: string, asked: unknown): number {
  const {
    strategy = 'exponential',
    base_ms: base = 100,
    max_ms: max = 5000,
    jitter = true,
  } = rule.backoff ?? {};
  const raw = { exponential: base * 2 ** (n - 1), linear: base * n, fixed: base }[strategy] ?? NaN;
  const capped = Math.min(raw, max);
  const spread = jitter ? 0.1 * capped * unitRandom(seed, key, n) : 0;
  const own = Math.floor(Math.min(capped + spread, max));
  const floor = typeof asked === 'number' ? Math.ceil(asked) : 0;
  return floor > own ? Math.floor(floor + unitRandom(seed, key, -n) * 0.1 * floor) : own;
}

const random = seededRandom(20_261_116);
const int = (max: number) => Math.floor(random() * max);
const pick = <T>(list: readonly T[]): T => list[int(list.length)] as T;
const chance = (share: number) => random() < share;

const providerNames = ['a', 'b', 'c', 'd', 'e'];
const statuses = [
  'timeout',
  '5xx',
  '4xx',
  'rate_limit',
  'connection_error',
  429,
  '503',
  500,
  404,
  'odd',
];

function randomRule(): Rule {
  const when: Rule['when'] = {};
  if (chance(0.8)) {
    when['status'] = chance(0.5)
      ? pick(statuses)
      : Array.from({ length: int(4) }, () => pick(statuses));
  }
  if (chance(0.2)) when['tenant_id'] = pick(['t1', 't2']);
  if (chance(0.3)) when['current_provider'] = [pick(providerNames), pick(providerNames)];
  const rule: Rule = { when, to: pick([...providerNames, 'extra']) };
  if (chance(0.8)) rule.retry = int(4);
  if (chance(0.6)) {
    rule.backoff = { base_ms: 1 + int(900), max_ms: 1 + int(3000), jitter: chance(0.5) };
    if (chance(0.8)) rule.backoff.strategy = pick(['exponential', 'linear', 'fixed']);
  }
  return rule;
}

function randomPolicy(): ModelPolicy {
  const count = 1 + int(providerNames.length);
  const policy: ModelPolicy = {
    version: '1.0',
    providers: providerNames
      .slice(0, count)
      .map((name) => ({ name, weight: chance(0.2) ? 0 : int(101) })),
    fallbacks: Array.from({ length: int(6) }, randomRule),
  };
  // Rules that are there twice must not share a counter.
  if (policy.fallbacks.length > 0 && chance(0.2)) policy.fallbacks.push(pick(policy.fallbacks));
  if (chance(0.5)) policy.sticky = { enabled: chance(0.8), ttl_seconds: 60 };
  return policy;
}

/** What the world does between two decisions. */
function afterwards(context: RouteContext, names: string[]): RouteContext {
  const next = { ...context };
  if (chance(0.9)) next.status = pick(statuses);
  if (chance(0.2)) next.retry_after_ms = chance(0.3) ? null : random() * 9000;
  if (chance(0.3)) next.open_providers = names.filter(() => chance(0.3));
  if (chance(0.1)) next.skip_retry = chance(0.7);
  return next;
}

describe('the decision', () => {
  it(`is that of the model in ${HISTORIES} random histories`, { timeout: 300_000 }, () => {
    const reasons: Record<string, number> = {};
    for (let p = 0; p < HISTORIES / HISTORIES_PER_POLICY; p++) {
      const document = randomPolicy();
      const policy = parseRoutingPolicy(document);
      const ids = policy.rules.map(({ id }) => id);
      const names = policy.providers.map(({ name }) => name);
      for (let h = 0; h < HISTORIES_PER_POLICY; h++) {
        const seed = int(1e9);
        let context: RouteContext = { request_id: `r${p}-${h}` };
        if (chance(0.3)) context['tenant_id'] = pick(['t1', 't2', 't3']);
        if (chance(0.2)) context.open_providers = names.filter(() => chance(0.3));
        if (chance(0.4)) {
          context.sticky = { provider: pick([...names, 'gone']), expires_at_ms: NOW - 1 + int(3) };
        }
        for (let step = 0; step < 60; step++) {
          const decision = decideRoute(policy, context, { seed, nowMs: NOW });
          const wanted = model(document, ids, context, seed);
          reasons[wanted.reason] = (reasons[wanted.reason] ?? 0) + 1;
          const got: Answer = {
            result: decision.result,
            reason: decision.explanation.reason,
            context: decision.context,
            ...(decision.result === 'error'
              ? { error: decision.error }
              : { provider: decision.provider }),
          };
          if (decision.result !== 'error' && decision.retryInfo) {
            got.backoff = decision.retryInfo.backoff_ms;
            got.attempt = decision.retryInfo.retry_attempt;
          }
          // A deep comparison by the library for each of a million decisions would take minutes.
          if (canonical(got) !== canonical(wanted)) {
            assertSame({ document, context, seed, got }, wanted);
          }
          if (decision.result === 'error') break;
          context = afterwards(decision.context, names);
        }
      }
    }
    const all = [
      'sticky',
      'weighted',
      'retry',
      'fallback',
      'circuit_breaker_fallback',
      'no_fallback',
      'no_providers',
    ];
    for (const reason of all) expect(reasons[reason], reason).toBeGreaterThan(1000);
  });
});

function assertSame(asked: Record<string, unknown>, wanted: Answer): void {
  expect(asked).toEqual({ ...asked, got: wanted });
}

function canonical(answer: Answer): string {
  const context = Object.keys(answer.context)
    .sort()
    .map((key) => [key, answer.context[key]]);
  const { result, provider, error, reason, backoff, attempt } = answer;
  return JSON.stringify([result, provider, error, reason, backoff, attempt, context]);
}
