import { actResults } from '@redrive/engine';
import { Type } from 'typebox';
import { choice, GivenDestination, page, Time } from './common.ts';
import { examples } from './examples.ts';
import { selection } from './review.ts';

export const BulkStart = Type.Object(
  {
    action: choice(['replay', 'resolve', 'discard']),
    ...selection,
    per_second: Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: 1_000_000,
        description: 'Of a replay: its pace.',
      }),
    ),
    canary: Type.Optional(
      Type.Union(
        [
          Type.Boolean(),
          Type.Array(Type.Integer({ minimum: 1, maximum: 1_000_000 }), { maxItems: 20 }),
        ],
        {
          description:
            'Of a replay: sizes of the first steps, each of which must work before the next; true is [1, 10, 100].',
        },
      ),
    ),
    observe_ms: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 86_400_000,
        description: 'Of a replay: how long after a step nothing may have come back (30 s).',
      }),
    ),
    max_failures: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 1_000_000,
        description: 'Of a replay: it stops when more than so many came back.',
      }),
    ),
    destination: Type.Optional(GivenDestination),
  },
  {
    additionalProperties: false,
    examples: [
      { action: 'replay', filter: { lane: 'queue:orders' }, per_second: 50, canary: true },
      { action: 'discard', ids: [17, 18] },
    ],
  },
);

export const Job = Type.Object(
  {
    id: Type.Integer(),
    action: choice(['replay', 'resolve', 'discard']),
    state: choice(['freezing', 'running', 'paused', 'stopped', 'cancelled', 'finished'], {
      description:
        '`freezing`: it is found out who belongs to it; nothing has been sent. `stopped`: by itself, because too much came back.',
    }),
    why: Type.Optional(Type.String({ description: 'Why it stopped by itself.' })),
    by: Type.Optional(Type.String()),
    total: Type.Integer(),
    done: Type.Integer({ description: 'Sent, or closed.' }),
    skipped: Type.Integer({ description: 'Somebody else was faster.' }),
    failed: Type.Integer({ description: 'Not possible: see its members.' }),
    ignored: Type.Optional(
      Type.Integer({ description: 'Of the ids that were asked for, so many were not open.' }),
    ),
    left: Type.Integer(),
    underway: Type.Integer({ description: 'Sent, and not settled yet.' }),
    taken: Type.Integer({ description: 'Taken over by a queue.' }),
    back: Type.Integer({ description: 'Back in review.' }),
    canary: Type.Array(Type.Integer()),
    step: Type.Optional(
      Type.Integer({ description: 'The present step of the canary, from 1 on.' }),
    ),
    per_second: Type.Optional(Type.Number()),
    created_at: Time,
    finished_at: Type.Optional(Time),
  },
  { $id: 'Job', description: 'A bulk job, and how far it is.', examples: [examples.job] },
);

export const JobPage = Type.Object(page(1000, 100), { additionalProperties: false });

export const JobPath = Type.Object({
  id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
});

export const MemberFilter = Type.Object(
  { result: Type.Optional(choice(actResults)), ...page(1000, 100) },
  { additionalProperties: false },
);

export const Member = Type.Object({
  item_id: Type.Integer(),
  result: Type.Optional(choice(actResults, { description: 'Absent: its turn has not come yet.' })),
});
