/** Routing: what is asked and reported, and what is answered. */
import type { RouteContext, RoutingPolicyDocument } from 'redrive';
import { Type } from 'typebox';
import { choice, ref, Time } from './common.ts';
import { examples } from './examples.ts';

const MAX_CONTEXT_KEYS = 1000;

const PolicyId = Type.String({
  minLength: 1,
  maxLength: 100,
  description: 'A policy of ROUTING_DIR: the name of its file without `.json`.',
});

const Context = Type.Unsafe<RouteContext>({
  type: 'object',
  maxProperties: MAX_CONTEXT_KEYS,
  description:
    'The context: for a new request a `request_id`, and what rules compare; then the context of the last answer, after a failure with `status`.',
});

const TextOrNumber = (description: string) =>
  Type.Unsafe<string | number>({
    anyOf: [{ type: 'string', minLength: 1, maxLength: 1024 }, { type: 'number' }],
    description,
  });

/** Whether there is one of `policy_id` and `policy` is said by the route. */
export const DecideRequest = Type.Object(
  {
    policy_id: Type.Optional(PolicyId),
    policy: Type.Optional(
      Type.Unsafe<RoutingPolicyDocument>({
        type: 'object',
        description:
          'A policy of your own. The decision is pure then: it knows no sessions, breakers or pauses.',
      }),
    ),
    context: Context,
    seed: Type.Optional(
      Type.Number({ description: 'The seed of the last answer. One is drawn for a new request.' }),
    ),
    detail_level: Type.Optional(choice(['minimal', 'detailed', 'verbose'])),
  },
  {
    additionalProperties: false,
    description: 'Exactly one of `policy_id` and `policy`.',
    examples: [examples.decideRequest],
  },
);

const RetryInfo = Type.Object(
  {
    fallback_rule_id: Type.String(),
    retry_attempt: Type.Integer({
      description: 'The number of this retry, or of the retries before a fallback.',
    }),
    retry_max: Type.Integer(),
    backoff_ms: Type.Integer(),
    backoff_applied: Type.Boolean({ description: 'True: wait `backoff_ms` before the call.' }),
  },
  { description: 'Absent on a first choice.' },
);

const Note = Type.Object({ code: Type.String(), path: Type.String(), message: Type.String() });

export const Decision = Type.Object(
  {
    result: choice(['ok', 'retry', 'error'], {
      description: 'ok: call `provider`. retry: call it again after the backoff. error: none left.',
    }),
    provider: Type.Optional(Type.String()),
    error: Type.Optional(choice(['no_fallback', 'no_providers'])),
    retry_info: Type.Optional(RetryInfo),
    explanation: Type.Unsafe<object>({
      type: 'object',
      additionalProperties: true,
      description: 'Why: reason, provider_id, policy, priority, steps and context.',
    }),
    seed: Type.Number(),
    context: Type.Unsafe<object>({
      type: 'object',
      additionalProperties: true,
      description: 'Hand this back with the next question; after a failure with `status`.',
    }),
    warnings: Type.Array(Note, { description: 'What was ignored in the context.' }),
  },
  { $id: 'RouteDecision', description: 'Which provider to call.', examples: [examples.decision] },
);

export const OutcomeRequest = Type.Object(
  {
    policy_id: PolicyId,
    provider: Type.String({ minLength: 1, maxLength: 256 }),
    status: TextOrNumber(
      '`ok`, or what the call failed with: `timeout`, `connection_error`, `rate_limit`, `503`. A number from 200 to 299 is a success.',
    ),
    latency_ms: Type.Optional(
      Type.Number({ minimum: 0, maximum: 86_400_000, description: 'How long the call took.' }),
    ),
    retry_after_ms: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 86_400_000,
        description: 'With a rate limit: the pause that the provider asked for.',
      }),
    ),
    session: Type.Optional(
      TextOrNumber(
        "The value of the session: what the context has under the policy's session_key.",
      ),
    ),
    tenant_id: Type.Optional(TextOrNumber('Sessions of different tenants are apart.')),
  },
  { additionalProperties: false, examples: [examples.outcomeRequest] },
);

const nullable = (type: string, description: string) =>
  Type.Unsafe<never>({ type: [type, 'null'], description });

export const Provider = Type.Object(
  {
    policy_id: Type.String(),
    provider: Type.String(),
    weight: Type.Integer(),
    state: choice(['closed', 'open', 'half_open', 'cooling'], {
      description: 'cooling: it asked for a pause.',
    }),
    out_until: Type.Unsafe<string | null>({
      type: ['string', 'null'],
      format: 'date-time',
      description: 'It is not called before this.',
    }),
    in_flight: Type.Integer({ description: 'Calls that this instance makes now.' }),
    calls: Type.Integer({ description: 'Since the start of this instance.' }),
    failures: Type.Integer(),
    failure_rate: Type.Number({ description: 'Of the last 256 calls, 0 to 1.' }),
    latency_ms: Type.Unsafe<object | null>({
      type: ['object', 'null'],
      properties: { p50: { type: 'number' }, p95: { type: 'number' }, p99: { type: 'number' } },
      description: 'Percentiles of the last 256 calls, where they are known.',
    }),
  },
  {
    $id: 'RouteProvider',
    description: 'What this instance knows of a provider.',
    examples: [examples.routeProvider],
  },
);

export const ProvidersQuery = Type.Object({ policy_id: Type.Optional(PolicyId) });

export const ProviderList = Type.Object({
  items: Type.Array(ref('RouteProvider')),
  truncated: Type.Boolean({
    description: 'True: there are more than 1000. Ask for one policy at a time.',
  }),
});

const Fault = Type.Object(
  { code: Type.String(), message: Type.String(), faults: Type.Array(Note) },
  { description: 'What is wrong with the file as it is now, with the path of each fault.' },
);

export const PolicyList = Type.Object({
  items: Type.Array(
    Type.Object({
      policy_id: Type.String(),
      version: nullable('string', 'Of the policy in force; null: none of it was ever good.'),
      fingerprint: nullable('string', 'Equal for equal policies, however they were written.'),
      loaded_at: Type.Unsafe<string | null>({ ...Time, type: ['string', 'null'] }),
      providers: Type.Array(Type.String(), { description: 'Their names.' }),
      notes: Type.Array(Note, { description: 'What was converted from legacy forms.' }),
      warnings: Type.Array(Note, { description: 'What is allowed and probably not meant.' }),
      fault: Type.Optional(Fault),
    }),
  ),
  fault: Type.Optional(Fault),
});
