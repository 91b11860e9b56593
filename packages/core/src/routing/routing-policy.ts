import { ConfigError, type Fault } from '../errors.ts';
import type { Values } from '../options/fields.ts';
import { type DefinedPolicy, definePolicy } from '../policy/policy.ts';
import type { Policy } from '../policy/policy-fields.ts';
import { presets } from '../policy/presets.ts';
import { hash64 } from '../policy/random.ts';
import { lintPolicy, type PolicyNote } from './lint-policy.ts';
import { add, type Conditions, readDocument } from './read-document.ts';
import {
  DEFAULT_TTL_SECONDS,
  routingFields,
  type RoutingPolicyDocument,
} from './routing-fields.ts';
import { type Matcher, matcherOf } from './rule-match.ts';
import { checkNames } from '../options/check-options.ts';

export interface RoutingPolicyOptions {
  /** The name that explanations show as `policy_id` (`default`). */
  id?: string | undefined;
}

export interface RoutingProvider {
  readonly name: string;
  readonly weight: number;
}

/** One rule, ready to decide with. */
export interface RoutingRule {
  /** A hash of the content and of the ordinal among equal rules. It survives a reload and another order of the rules. */
  readonly id: string;
  /** The key of the context that counts the retries of this rule. */
  readonly counter: string;
  readonly when: Conditions;
  readonly matches: Matcher;
  readonly to: string;
  readonly retry: number;
  /** The waits before the retries, as a policy of Redrive's own. */
  readonly backoff: DefinedPolicy;
}

interface StickySettings {
  readonly enabled: boolean;
  readonly sessionKey: string;
  readonly ttlMs: number;
}

interface RoutingBreakerSettings {
  readonly enabled: boolean;
  readonly failureThreshold: number;
  readonly successThreshold: number;
  readonly timeoutMs: number;
  readonly halfOpenMaxCalls: number;
}

/** The prefix of the counters in a context. */
export const COUNTER_PREFIX = 'retry_attempts_';

/**
 * A routing policy that was checked: legacy forms converted, defaults filled in, frozen. As JSON it is a routing policy
 * again, with the same fingerprint.
 */
export class RoutingPolicy {
  readonly id: string;
  readonly version: string;
  /** In the order of the document, then the targets of rules that it does not list, with weight 0. */
  readonly providers: readonly RoutingProvider[];
  readonly rules: readonly RoutingRule[];
  readonly sticky: StickySettings;
  readonly breaker: RoutingBreakerSettings;
  readonly timeoutMs: number | undefined;
  /** Equal for equal policies, however they were written. */
  readonly fingerprint: string;
  /** What was converted from a legacy form. */
  readonly notes: readonly PolicyNote[];
  /** What is allowed and probably not meant. */
  readonly warnings: readonly PolicyNote[];
  readonly #names: ReadonlySet<string>;
  readonly #counters: ReadonlySet<string>;
  readonly #document: object;

  /** @internal Use `parseRoutingPolicy`. */
  constructor(values: Values, options: RoutingPolicyOptions, notes: readonly PolicyNote[]) {
    const listed = values['providers'] as readonly RoutingProvider[];
    const rules = namedRules(values['fallbacks'] as readonly WrittenRule[]);
    const names = new Set(listed.map(({ name }) => name));
    const implied = [...new Set(rules.map(({ to }) => to))].filter((name) => !names.has(name));
    this.id = options.id ?? 'default';
    this.version = values['version'] as string;
    this.providers = Object.freeze(
      [...listed, ...implied.map((name) => ({ name, weight: 0 }))].map((each) =>
        Object.freeze(each),
      ),
    );
    this.rules = rules;
    this.sticky = stickySettings(values['sticky'] as Values);
    this.breaker = breakerSettings(values['circuit_breaker'] as Values);
    this.timeoutMs = values['timeout_ms'] as number | undefined;
    this.#names = new Set(this.providers.map(({ name }) => name));
    this.#counters = new Set(rules.map(({ counter }) => counter));
    this.#document = documentOf(this, listed);
    this.fingerprint = hash64(JSON.stringify(this.#document));
    this.notes = notes;
    this.warnings = Object.freeze(lintPolicy(this, listed));
    Object.freeze(this);
  }

  hasProvider(name: string): boolean {
    return this.#names.has(name);
  }

  hasCounter(key: string): boolean {
    return this.#counters.has(key);
  }

  /** The canonical document. */
  toJSON(): RoutingPolicyDocument {
    return this.#document as RoutingPolicyDocument;
  }
}

/**
 * Checks a routing policy that is written in TypeScript. Throws one `ConfigError` that lists every fault with its path.
 *
 * @example
 * const policy = defineRoutingPolicy({
 *   version: '1.0',
 *   providers: [{ name: 'primary', weight: 100 }, { name: 'backup', weight: 0 }],
 *   fallbacks: [{ when: { status: ['timeout', '5xx'] }, to: 'backup', retry: 2 }],
 * });
 */
export function defineRoutingPolicy(
  policy: RoutingPolicyDocument,
  options?: RoutingPolicyOptions,
): RoutingPolicy {
  return parseRoutingPolicy(policy, options);
}

/** `defineRoutingPolicy` for what came from a file or a wire. */
export function parseRoutingPolicy(
  data: unknown,
  options: RoutingPolicyOptions = {},
): RoutingPolicy {
  checkNames('The options of a routing policy', options, ['id']);
  if (data instanceof RoutingPolicy) {
    return options.id === undefined || options.id === data.id
      ? data
      : parseRoutingPolicy(data.toJSON(), options);
  }
  const faults: Fault[] = [];
  const notes: PolicyNote[] = [];
  const values = readDocument(data, routingFields, '', faults);
  if (faults.length === 0) checkWhole(values, faults);
  if (faults.length > 0) {
    throw new ConfigError('INVALID_POLICY', 'The routing policy has faults:', faults);
  }
  return new RoutingPolicy(convertLegacy(values, notes), options, Object.freeze(notes));
}

/** A rule as it was read, with its defaults. */
interface WrittenRule {
  when: Conditions;
  to: string;
  retry: number;
  backoff?: Values | undefined;
}

/** What no single field can tell. */
function checkWhole(values: Values, faults: Fault[]): void {
  const providers = (values['providers'] ?? []) as RoutingProvider[];
  const weights = (values['weights'] ?? []) as unknown[];
  if (providers.length + weights.length === 0) {
    const message = 'No provider is named. List at least one here, or in weights.';
    add(faults, 'providers', 'INVALID_VALUE', message);
  }
  const seen = new Set<string>();
  providers.forEach(({ name }, i) => {
    if (seen.has(name)) {
      const message = `The provider '${name}' is listed twice. Keep one entry.`;
      add(faults, `providers.${i}.name`, 'INVALID_VALUE', message);
    }
    seen.add(name);
  });
  const { ttl, ttl_seconds: seconds } = (values['sticky'] ?? {}) as Values;
  if (ttl !== undefined && seconds !== undefined) {
    add(faults, 'sticky.ttl', 'INVALID_VALUE', 'Write either ttl or ttl_seconds, not both.');
  }
}

/** `weights` become providers, and `fallback` the last rule. */
function convertLegacy(values: Values, notes: PolicyNote[]): Values {
  const providers = [...((values['providers'] ?? []) as RoutingProvider[])].map(
    ({ name, weight }) => ({ name, weight }),
  );
  const rules = [...((values['fallbacks'] ?? []) as WrittenRule[])];
  const weights = values['weights'] as [string, number][] | undefined;
  if (weights) {
    const ignored: string[] = [];
    for (const [name, weight] of weights) {
      if (providers.some((each) => each.name === name)) ignored.push(name);
      else providers.push({ name, weight });
    }
    const but = ignored.length > 0 ? ` providers already lists ${ignored.join(', ')}.` : '';
    const message = `The legacy form weights was converted to providers.${but}`;
    notes.push({ code: 'LEGACY_WEIGHTS', path: 'weights', message });
  }
  const legacy = values['fallback'] as { provider: string; conditions?: string[] } | undefined;
  if (legacy) {
    rules.push({ when: [['status', legacy.conditions ?? []]], to: legacy.provider, retry: 1 });
    const message = `The legacy form fallback was converted to fallbacks.${rules.length - 1}.`;
    notes.push({ code: 'LEGACY_FALLBACK', path: 'fallback', message });
  }
  return { ...values, providers, fallbacks: rules };
}

/** Rules with their ids. Equal rules have the same content, so their ordinal tells them apart. */
function namedRules(written: readonly WrittenRule[]): readonly RoutingRule[] {
  const ordinals = new Map<string, number>();
  const rules = written.map(({ when, to, retry, backoff: waits }): RoutingRule => {
    const sorted = [...when].sort(([a], [b]) => (a < b ? -1 : 1));
    const canonical = sorted.map(([key, values]) => [key, [...values].sort()] as const);
    const backoff = backoffPolicy(waits ?? {}, retry);
    const content = JSON.stringify([canonical, to, retry, backoff.fingerprint]);
    const ordinal = ordinals.get(content) ?? 0;
    ordinals.set(content, ordinal + 1);
    const id = hash64(`${content}#${ordinal}`);
    const matches = matcherOf(canonical);
    return Object.freeze({
      id,
      counter: COUNTER_PREFIX + id,
      when: canonical,
      matches,
      to,
      retry,
      backoff,
    });
  });
  return Object.freeze(rules);
}

/** The preset `fallback` with what the rule says otherwise. */
function backoffPolicy(waits: Values, retry: number): DefinedPolicy {
  const { fallback } = presets;
  const { strategy, base_ms: base, max_ms: cap, jitter } = waits;
  return definePolicy({
    ...(fallback as Policy),
    maxAttempts: retry + 1,
    strategy: (strategy as 'exponential' | undefined) ?? fallback.strategy,
    base: (base as number | undefined) ?? fallback.base,
    cap: (cap as number | undefined) ?? fallback.cap,
    jitter: jitter === false ? 'none' : fallback.jitter,
  });
}

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 };

function stickySettings(given: Values | undefined): StickySettings {
  const { enabled = false, session_key: sessionKey = 'session_id', ttl, ttl_seconds } = given ?? {};
  let seconds = (ttl_seconds as number | undefined) ?? DEFAULT_TTL_SECONDS;
  if (typeof ttl === 'string') {
    seconds = Number(ttl.slice(0, -1)) * (unitSeconds[ttl.slice(-1)] as number);
  }
  return Object.freeze({ enabled, sessionKey, ttlMs: seconds * 1000 } as StickySettings);
}

function breakerSettings(given: Values | undefined): RoutingBreakerSettings {
  const values = given ?? readDocument({}, routingFields.circuit_breaker.of, '', []);
  return Object.freeze({
    enabled: values['enabled'] as boolean,
    failureThreshold: values['failure_threshold'] as number,
    successThreshold: values['success_threshold'] as number,
    timeoutMs: values['timeout_ms'] as number,
    halfOpenMaxCalls: values['half_open_max_calls'] as number,
  });
}

/** Every field in one order and in one form, so that equal policies have equal JSON. */
function documentOf(policy: RoutingPolicy, listed: readonly RoutingProvider[]): object {
  const { version, rules, sticky, breaker, timeoutMs } = policy;
  return Object.freeze({
    version,
    providers: listed.map(({ name, weight }) => ({ name, weight })),
    fallbacks: rules.map(({ when, to, retry, backoff }) => ({
      when: Object.fromEntries(when),
      to,
      retry,
      backoff: {
        strategy: backoff.strategy,
        base_ms: backoff.base,
        max_ms: backoff.cap,
        jitter: backoff.jitter !== 'none',
      },
    })),
    sticky: {
      enabled: sticky.enabled,
      session_key: sticky.sessionKey,
      ...ttlDocument(sticky.ttlMs / 1000),
    },
    circuit_breaker: {
      enabled: breaker.enabled,
      failure_threshold: breaker.failureThreshold,
      success_threshold: breaker.successThreshold,
      timeout_ms: breaker.timeoutMs,
      half_open_max_calls: breaker.halfOpenMaxCalls,
    },
    ...(timeoutMs === undefined ? {} : { timeout_ms: timeoutMs }),
  });
}

/** As seconds where `ttl_seconds` takes them, else in the largest unit that divides them. */
function ttlDocument(seconds: number): { ttl_seconds: number } | { ttl: string } {
  const { min, max } = routingFields.sticky.of.ttl_seconds;
  if (seconds >= min && seconds <= max) return { ttl_seconds: seconds };
  for (const unit of ['h', 'm']) {
    const size = unitSeconds[unit] as number;
    if (seconds % size === 0) return { ttl: `${seconds / size}${unit}` };
  }
  return { ttl: `${seconds}s` };
}
