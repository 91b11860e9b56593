/** Criteria: what is asked, and what is answered. */
import { criterionNames, type CriterionSettings } from 'redrive';
import { type TSchema, Type } from 'typebox';
import { choice, ref, Time } from './common.ts';
import { examples } from './examples.ts';

const MAX_ENTITIES = 10_000;

const codes = [
  'DATA_UNAVAILABLE',
  'INVALID_TIME',
  'CALCULATION_ERROR',
  'OVERFLOW_ERROR',
  'EVALUATION_TIMEOUT',
] as const;

export const CriterionPath = Type.Object({
  name: Type.String({ maxLength: 256, description: `One of ${criterionNames.join(', ')}.` }),
});

/** Whether there is one of `entity` and `entities`, and whether the settings can be used, is said by the route. */
export const CriterionRequest = Type.Object(
  {
    entity: Type.Optional(
      Type.Unknown({
        description: 'The entity, with the field names of the workflow (camelCase).',
      }),
    ),
    entities: Type.Optional(
      Type.Array(Type.Unknown(), {
        maxItems: MAX_ENTITIES,
        description: 'Many entities, answered in order. The jitter of each is keyed by its own id.',
      }),
    ),
    entity_id: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 512,
        description: "The jitter's key, instead of the entity's own id. Beside `entity` only.",
      }),
    ),
    context: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 256,
        description: 'Chooses a named set of settings where `operationType` names none.',
      }),
    ),
    settings: Type.Optional(
      Type.Unsafe<CriterionSettings>({
        type: 'object',
        description:
          'Override the configured settings of the same names (camelCase), in named sets too.',
      }),
    ),
  },
  {
    additionalProperties: false,
    description: 'Exactly one of `entity` and `entities`.',
    examples: [examples.criterionRequest],
  },
);

const note = (description: string, code: TSchema = Type.String()) =>
  Type.Array(Type.Object({ code, message: Type.String() }), { description });

const common = {
  matches: Type.Boolean({ description: 'The answer. False for a failed evaluation.' }),
  reason: Type.String({ description: 'One word for why.' }),
};

const notes = {
  errors: note('Why there is no proper answer. Empty: there is one.', choice(codes)),
  warnings: note('What was noticed on the way.'),
};

const number = (description: string) =>
  Type.Unsafe<number | null>({ type: ['number', 'null'], description });

const delayFields = {
  delay_ms: number('How long the entity has to wait; null: not known.'),
  elapsed_ms: number('How long it has waited.'),
  due_at: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    format: 'date-time',
    description: 'When the answer becomes true.',
  }),
};

const limitFields = {
  attempt_count: number('The attempts that counted.'),
  limit: number('The limit that counted.'),
};

export const DelayAnswer = Type.Object(
  { ...common, ...delayFields, ...notes },
  {
    $id: 'DelayAnswer',
    description: 'The answer of `isRetryDelayElapsed`.',
    examples: [examples.delayAnswer],
  },
);

export const LimitAnswer = Type.Object(
  {
    ...common,
    matches: Type.Boolean({
      description:
        'The answer. Of a failed evaluation: true for `isMaxRetriesExceeded`, false for `hasRetriesAvailable`.',
    }),
    ...limitFields,
    ...notes,
  },
  {
    $id: 'LimitAnswer',
    description: 'The answer of `isMaxRetriesExceeded` and `hasRetriesAvailable`.',
    examples: [examples.limitAnswer],
  },
);

export const AnswerList = Type.Object(
  { items: Type.Array(Type.Unknown({ description: 'A DelayAnswer or a LimitAnswer.' })) },
  { $id: 'AnswerList', description: 'One answer for each entity, in order.' },
);

/** Written by the route as one text: a serializer of three forms is slower than that. The document shows the forms. */
export const CriterionAnswer = Type.Unsafe<string>({
  description: 'One entity: its answer. Many: the answers in order.',
  'x-forms': [ref('DelayAnswer'), ref('LimitAnswer'), ref('AnswerList')],
});

const Settings = Type.Unsafe<object>({
  type: 'object',
  additionalProperties: true,
  description: 'The settings in force, by the names of the document.',
});

export const CriterionList = Type.Object(
  {
    items: Type.Array(Type.Object({ name: choice(criterionNames) })),
    profile: choice(['development', 'production']),
    settings: Settings,
    sets: Type.Unsafe<object>({
      type: 'object',
      additionalProperties: Settings,
      description: 'Named sets per operation type, each with all settings that it results in.',
    }),
    review: Type.Boolean({ description: 'Whether failed evaluations become items of review.' }),
  },
  { description: 'The criteria, and the settings in force.' },
);

export const RecentList = Type.Object(
  {
    items: Type.Array(
      Type.Object({
        at: Time,
        entity_id: Type.Unsafe<string | null>({ type: ['string', 'null'] }),
        explanation: Type.String({ description: 'The answer as a sentence.' }),
        ...common,
        delay_ms: Type.Optional(delayFields.delay_ms),
        elapsed_ms: Type.Optional(delayFields.elapsed_ms),
        due_at: Type.Optional(delayFields.due_at),
        attempt_count: Type.Optional(limitFields.attempt_count),
        limit: Type.Optional(limitFields.limit),
        ...notes,
      }),
    ),
  },
  { description: 'The last answers of this instance, at most 100, the newest first.' },
);
