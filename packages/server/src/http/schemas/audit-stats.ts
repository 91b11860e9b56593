/** What the audit trail adds up to, per category. */
import { Type } from 'typebox';
import { choice, GivenTime, Time } from './common.ts';

const nullable = (description: string) =>
  Type.Unsafe<number | null>({ type: ['number', 'null'], description });

export const AuditStatsFilter = Type.Object(
  {
    from: Type.Optional(GivenTime),
    to: Type.Optional(GivenTime),
    by: Type.Optional(
      choice(['category', 'operation'], {
        default: 'category',
        description: 'What events are grouped by. The operation of a task is its lane.',
      }),
    ),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1000,
        default: 100,
        description: 'Categories at most, those with the most retries first.',
      }),
    ),
  },
  { additionalProperties: false },
);

const AttemptStats = Type.Object({
  attempt: Type.Integer({ description: '64 stands for all later ones too.' }),
  executed: nullable('How often it was made; null: unknown, since successes are not written.'),
  failed: Type.Integer(),
  helped: Type.Integer({ description: 'How often it succeeded after failures.' }),
  mean_delay_ms: Type.Number({ description: 'The mean wait after it failed.' }),
  waited_ms: Type.Number({ description: 'The mean of all waits before it.' }),
});

const CategoryStats = Type.Object({
  category: Type.String(),
  attempts: Type.Integer({ description: 'Executions that the trail tells of.' }),
  failures: Type.Integer(),
  retries: Type.Integer({ description: 'Failures that another attempt follows.' }),
  succeeded: nullable('Null: the trail has no `retry_succeeded` of this category.'),
  success_rate: nullable('Of the work that ended. Null: unknown, since successes are not written.'),
  recovery_rate: nullable('Of the retryable work that failed at least once and ended.'),
  mean_attempts: nullable('For a piece of work that ended.'),
  mean_attempts_of: choice(['all', 'failed'], {
    description:
      'Whether that mean is about all work, or only about work that failed at least once.',
  }),
  exhausted: Type.Integer(),
  ends: Type.Array(Type.Object({ reason: Type.String(), count: Type.Integer() }), {
    description: 'How work ended without success.',
  }),
  waiting: Type.Integer(),
  postponed: Type.Integer(),
  retries_per_minute: Type.Number(),
  peak_retries_per_minute: Type.Number(),
  errors: Type.Array(Type.Object({ type: Type.String(), count: Type.Integer() })),
  recovered_within_ms: Type.Unsafe<{ p50: number; p90: number; p99: number } | null>({
    type: ['object', 'null'],
    description: 'For how long work had waited when it recovered: p50, p90, p99.',
    properties: { p50: { type: 'number' }, p90: { type: 'number' }, p99: { type: 'number' } },
  }),
  by_attempt: Type.Array(AttemptStats),
  load: Type.Array(Type.Integer(), { description: 'Retries in each step of time.' }),
  max_attempts: Type.Integer({ description: '0: no event says it.' }),
  policy: Type.Unsafe<Readonly<Record<string, unknown>> | null>({
    type: ['object', 'null'],
    additionalProperties: true,
    description: 'The policy of most decisions; null: it is not in the part that was read.',
  }),
});

export const AuditStats = Type.Object({
  events: Type.Integer(),
  unreadable: Type.Integer(),
  dropped: Type.Integer({ description: 'As the writers said themselves.' }),
  complete: Type.Boolean({
    description:
      'False: the trail is longer than what can be read at once. The newest part was read.',
  }),
  first_at: Type.Union([Time, Type.Null()]),
  last_at: Type.Union([Time, Type.Null()]),
  load_from: Time,
  step_ms: Type.Integer({ description: 'How long a step of `load` is.' }),
  categories: Type.Array(CategoryStats),
});
