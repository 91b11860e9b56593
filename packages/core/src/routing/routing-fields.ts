import type { Field } from '../options/fields.ts';

/** What one field of a routing policy takes: a field of core's, or one of these. */
export type RoutingField = (
  | Exclude<Field, { kind: 'duration' | 'durations' | 'names' | 'objects' }>
  | { kind: 'text'; pattern: string; maxLength: number; default?: string }
  | { kind: 'object' | 'list'; of: RoutingFields; max?: number; default?: undefined }
  | { kind: 'weights'; max: number }
  | { kind: 'conditions'; max: number; maxValues: number }
  | { kind: 'texts'; max: number }
  | { kind: 'anything' }
) & { required?: boolean };

export type RoutingFields = Readonly<Record<string, RoutingField>>;

const NAME = '^[a-z0-9_]+$';
const MAX_NAME = 100;

export const providerFields = {
  /** The name by which rules and contexts refer to the provider. */
  name: { kind: 'text', pattern: NAME, maxLength: MAX_NAME, required: true },
  /** The share of first choices, in proportion to the other weights. A provider of weight 0 is only a fallback. */
  weight: { kind: 'integer', min: 0, max: 100, required: true },
  /** Accepted for compatibility. It changes nothing. */
  priority: { kind: 'number', min: -1_000_000_000, max: 1_000_000_000 },
} as const satisfies RoutingFields;

export const backoffFields = {
  /** How the wait grows with the retry n: base_ms * 2^(n-1), base_ms * n, or base_ms. */
  strategy: { kind: 'choice', of: ['exponential', 'linear', 'fixed'], default: 'exponential' },
  /** The wait before the first retry. */
  base_ms: { kind: 'integer', min: 1, max: 10_000, default: 100 },
  /** The wait never exceeds this, jitter included. */
  max_ms: { kind: 'integer', min: 1, max: 60_000, default: 5000 },
  /** Adds up to 10 % to the wait, so that callers do not move in step. */
  jitter: { kind: 'boolean', default: true },
} as const satisfies RoutingFields;

export const ruleFields = {
  /** The conditions: context keys with the values that match. All keys must match; `{}` always matches. */
  when: { kind: 'conditions', max: 20, maxValues: 100, required: true },
  /** The provider to go to once the retries are used up. */
  to: { kind: 'text', pattern: NAME, maxLength: MAX_NAME, required: true },
  /** Retries of the failed provider before the fallback. */
  retry: { kind: 'integer', min: 0, max: 10, default: 1 },
  /** The waits before the retries. */
  backoff: { kind: 'object', of: backoffFields },
} as const satisfies RoutingFields;

export const legacyFallbackFields = {
  /** The provider to go to. */
  provider: { kind: 'text', pattern: NAME, maxLength: MAX_NAME, required: true },
  /** The statuses that match. Without any the rule never matches. */
  conditions: { kind: 'texts', max: 100 },
} as const satisfies RoutingFields;

export const stickyFields = {
  /** Whether a session keeps the provider that answered it last. */
  enabled: { kind: 'boolean', default: false },
  /** The context key that identifies a session. */
  session_key: { kind: 'text', pattern: '^.+$', maxLength: 200, default: 'session_id' },
  /** How long a session lasts after its last success, as a text: `30s`, `15m`, `1h`. Exclusive with `ttl_seconds`. */
  ttl: { kind: 'text', pattern: '^[0-9]+[smh]$', maxLength: 8 },
  /** The same in seconds. Without either a session lasts 3600 s. */
  ttl_seconds: { kind: 'integer', min: 1, max: 86_400 },
} as const satisfies RoutingFields;

export const breakerFields = {
  /** Whether each provider has a circuit breaker. */
  enabled: { kind: 'boolean', default: false },
  /** Consecutive failures that open the breaker. */
  failure_threshold: { kind: 'integer', min: 1, max: 1_000_000, default: 5 },
  /** Successful calls that close a half-open breaker. */
  success_threshold: { kind: 'integer', min: 1, max: 1000, default: 2 },
  /** How long the breaker stays open before it lets calls through again. */
  timeout_ms: { kind: 'integer', min: 1, max: 86_400_000, default: 60_000 },
  /** Calls that a half-open breaker lets through at once. */
  half_open_max_calls: { kind: 'integer', min: 1, max: 1000, default: 3 },
} as const satisfies RoutingFields;

/**
 * The one source of what a routing policy is: its types, its validation, its JSON Schema and its reference page come from
 * this table. The comments are the descriptions that the schema and the page show.
 */
export const routingFields = {
  /** The version of the document, which explanations repeat. */
  version: { kind: 'text', pattern: '^\\d+\\.\\d+$', maxLength: 20, required: true },
  /** The providers. Either these or `weights` must name at least one. */
  providers: { kind: 'list', of: providerFields, max: 1000 },
  /** Legacy form of `providers`: weights by name. */
  weights: { kind: 'weights', max: 1000 },
  /** The rules for failures. The first that matches decides. */
  fallbacks: { kind: 'list', of: ruleFields, max: 1000 },
  /** Legacy form of one rule. It becomes the last of `fallbacks`. */
  fallback: { kind: 'object', of: legacyFallbackFields },
  /** Sticky sessions. */
  sticky: { kind: 'object', of: stickyFields },
  /** The circuit breaker of each provider. */
  circuit_breaker: { kind: 'object', of: breakerFields },
  /** How long one attempt may take. Without it an attempt has no limit of its own. */
  timeout_ms: { kind: 'integer', min: 1, max: 300_000 },
  /** Accepted for the reader. It changes nothing. */
  metadata: { kind: 'anything' },
} as const satisfies RoutingFields;

export const DEFAULT_TTL_SECONDS = 3600;

/** A routing policy as one writes it, in TypeScript or as JSON. */
export type RoutingPolicyDocument = { readonly $schema?: string } & Document<typeof routingFields>;

/** A value that a condition compares with. Everything is compared as a text. */
export type ConditionValue = string | number | boolean;

type Document<F extends RoutingFields> = {
  readonly [K in keyof F as F[K] extends { required: true } ? K : never]: Written<F[K]>;
} & {
  readonly [K in keyof F as F[K] extends { required: true } ? never : K]?:
    | Written<F[K]>
    | undefined;
};

type Written<F> = F extends { kind: 'integer' | 'number' }
  ? number
  : F extends { kind: 'boolean' }
    ? boolean
    : F extends { kind: 'choice'; of: readonly (infer C)[] }
      ? C
      : F extends { kind: 'text' }
        ? string
        : F extends { kind: 'list'; of: infer O extends RoutingFields }
          ? readonly Document<O>[]
          : F extends { kind: 'object'; of: infer O extends RoutingFields }
            ? Document<O>
            : F extends { kind: 'weights' }
              ? Readonly<Record<string, number>>
              : F extends { kind: 'conditions' }
                ? Readonly<Record<string, ConditionValue | readonly ConditionValue[]>>
                : F extends { kind: 'texts' }
                  ? readonly ConditionValue[]
                  : unknown;
