/** Lanes, simulations, the audit trail, health: what is not a message. */
import { laneStates } from '@redrive/engine';
import { Type } from 'typebox';
import { choice, GivenTime, listOf, name, page, ref, Uuid } from './common.ts';
import { examples } from './examples.ts';

export const Lane = Type.Object(
  {
    lane: Type.String(),
    state: choice(laneStates, {
      description:
        'Of its breaker: `closed` lets everything through. `NO_HANDLER`: this instance cannot deliver there.',
    }),
    running: Type.Integer({ description: 'Deliveries under way in this instance.' }),
    next_in_ms: Type.Optional(
      Type.Number({ description: 'Until the first of what waits is due; absent: nothing waits.' }),
    ),
    blocked: Type.Optional(
      Type.Integer({
        description:
          'Tasks that wait behind an open item of the inbox with the same ordering key. Absent: none.',
      }),
    ),
    blocked_by: Type.Optional(
      Type.Integer({
        description: 'How many items they wait behind. Replay, resolve or discard these items.',
      }),
    ),
    paused_by: Type.Optional(Type.String()),
    probe_in_ms: Type.Optional(
      Type.Number({ description: 'Of an open one: until it is tried whether it works again.' }),
    ),
    limits: Type.Optional(
      Type.Object({
        concurrency: Type.Integer(),
        timeout_ms: Type.Number(),
        failures: Type.Integer({
          description: 'So many in a row open the breaker of a lane that works otherwise.',
        }),
        rate_per_second: Type.Optional(Type.Number()),
      }),
    ),
  },
  {
    $id: 'Lane',
    description: 'Everything that goes to one queue or one HTTP origin.',
    examples: [examples.lane],
  },
);

export const LaneFilter = Type.Object(
  {
    state: Type.Optional(choice(laneStates)),
    kind: Type.Optional(
      Type.String({
        pattern: '^[a-z][a-z0-9_-]*$',
        maxLength: 32,
        description: '`queue`, `http` (also https), `handler`.',
      }),
    ),
    prefix: Type.Optional(name(512)),
    blocked: Type.Optional(
      Type.Boolean({ description: 'Only lanes in which tasks wait behind an item of the inbox.' }),
    ),
    counts: Type.Optional(
      Type.Boolean({ description: 'With the number of lanes by state, up to 5 s old.' }),
    ),
    ...page(1000, 100),
  },
  { additionalProperties: false },
);

export const LaneList = Type.Interface(
  [listOf(ref('Lane'), 'Lanes.')],
  {
    counts: Type.Optional(
      Type.Object(
        Object.fromEntries([...laneStates, 'blocked'].map((state) => [state, Type.Integer()])),
        {
          description:
            'All lanes by state, and those with blocked tasks, whatever the filter says.',
        },
      ),
    ),
  },
  { description: 'Lanes, by name.' },
);

export const LanePath = Type.Object({ lane: name(512) });

export const LaneChange = Type.Object(
  {
    lane: Type.String(),
    paused: Type.Boolean(),
    known: Type.Optional(
      Type.Boolean({
        description:
          'False where nothing waits in that lane and nothing was delivered there lately. It is paused or resumed all the same; its name may be misspelt.',
      }),
    ),
    was_paused: Type.Optional(
      Type.Boolean({
        description: 'Of a resume: whether the lane was paused. False: nothing has changed.',
      }),
    ),
  },
  { description: 'How it is now.' },
);

const duration = Type.Optional(
  Type.Unsafe<number | string>({
    type: ['number', 'string'],
    description: "Ms, or a text such as '5s'.",
  }),
);

export const SimulationRequest = Type.Object(
  {
    policy: Type.Optional(
      Type.Union(
        [
          Type.String({ minLength: 1, maxLength: 200 }),
          Type.Unsafe<Record<string, unknown>>({ type: 'object' }),
        ],
        { description: 'The name of a policy, or a policy; that of the service unless given.' },
      ),
    ),
    clients: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000, default: 1000 })),
    spread: duration,
    outage_start: duration,
    outage: duration,
    capacity: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000, default: 500 })),
    queue: duration,
    latency: duration,
    retry_after: duration,
    horizon: duration,
    seed: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  },
  {
    additionalProperties: false,
    examples: [{ policy: { maxAttempts: 6, jitter: 'full' }, clients: 1000, outage: '5s' }],
  },
);

const outcomes = {
  served: Type.Integer(),
  down: Type.Integer(),
  overloaded: Type.Integer(),
  timed_out: Type.Integer(),
};

export const Simulation = Type.Object(
  {
    succeeded: Type.Integer(),
    gave_up: Type.Unsafe<Record<string, number>>({
      type: 'object',
      additionalProperties: { type: 'integer' },
      description: 'By reason.',
    }),
    unfinished: Type.Integer(),
    attempts: Type.Integer(),
    outcomes: Type.Object(outcomes),
    wasted: Type.Integer(),
    peak_per_second: Type.Integer(),
    peak_after_outage: Type.Integer(),
    recovery_ms: Type.Unsafe<number | null>({
      type: ['number', 'null'],
      description: 'Null: those that had failed never got through.',
    }),
    overloaded_ms: Type.Number(),
    completion_ms: Type.Optional(
      Type.Object({
        p50: Type.Number(),
        p90: Type.Number(),
        p99: Type.Number(),
        max: Type.Number(),
      }),
    ),
    ended_ms: Type.Number(),
    ended_by: choice(['done', 'horizon', 'limit']),
    bucket_ms: Type.Number(),
    load: Type.Array(Type.Object({ at_ms: Type.Number(), attempts: Type.Integer(), ...outcomes })),
  },
  { description: 'What the policy did to a service that went down and came back.' },
);

export const AuditFilter = Type.Object(
  {
    type: Type.Optional(name(100)),
    message_id: Type.Optional(Uuid),
    from: Type.Optional(GivenTime),
    to: Type.Optional(GivenTime),
    ...page(1000, 100),
  },
  { additionalProperties: false },
);

export const AuditEntry = Type.Object({
  id: Type.Integer(),
  event: Type.Unsafe<Readonly<Record<string, unknown>>>({
    type: 'object',
    additionalProperties: true,
    description: 'A decision, or what an operator did, as the trail has it.',
  }),
});

export const Live = Type.Object({ status: choice(['ok']) }, { description: 'The process runs.' });

export const Ready = Type.Object({
  ready: Type.Boolean(),
  checks: Type.Array(
    Type.Object({
      name: Type.String(),
      ok: Type.Boolean(),
      detail: Type.Optional(Type.String({ description: 'What is wrong, and what to do.' })),
    }),
  ),
});

export const Root = Type.Object(
  {
    name: Type.String(),
    version: Type.Optional(Type.String()),
    instance: Type.Optional(Type.String()),
    links: Type.Unsafe<Record<string, string>>({
      type: 'object',
      additionalProperties: { type: 'string' },
    }),
  },
  { description: 'What this is, and where to go.' },
);
