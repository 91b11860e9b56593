import { reasons } from '@redrive/engine';
import { Type } from 'typebox';
import {
  Attempt,
  choice,
  Destination,
  Failure,
  failureClasses,
  GivenDestination,
  GivenHeaders,
  GivenTime,
  Headers,
  name,
  page,
  ref,
  shownPayload,
  Time,
  Uuid,
} from './common.ts';

import { examples } from './examples.ts';

const states = ['open', 'replayed', 'resolved', 'discarded', 'erased'] as const;
const lane = Type.Optional(name(512));
const queue = Type.Optional(name(255));

/** What items can be told apart by; a query adds the state. */
const filters = {
  reason: Type.Optional(choice(reasons)),
  lane,
  queue,
  group: Type.Optional(
    Type.String({ minLength: 1, maxLength: 500, description: 'The fingerprint of a cause.' }),
  ),
  class: Type.Optional(choice(failureClasses)),
  text: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 500,
      description: 'In the message or the code of the error.',
    }),
  ),
  from: Type.Optional(GivenTime),
  to: Type.Optional(GivenTime),
  key: Type.Optional(
    Type.String({ minLength: 1, maxLength: 500, description: 'The ordering key.' }),
  ),
  message_id: Type.Optional(Uuid),
};

export const ItemFilter = Type.Object(
  {
    state: Type.Optional(choice([...states, 'all'], { default: 'open' })),
    ...filters,
    ...page(100, 50),
  },
  { additionalProperties: false },
);

const item = {
  id: Type.Integer(),
  message_id: Type.String(),
  reason: choice(reasons),
  state: choice(states),
  error: Failure,
  fingerprint: Type.String({ description: 'Items of one cause have the same.' }),
  destination: Destination,
  queue: Type.Optional(Type.String()),
  lane: Type.String(),
  retry_count: Type.Integer(),
  max_retries: Type.Integer(),
  generation: Type.Integer(),
  ordering_key: Type.Optional(Type.String()),
  occurrences: Type.Integer(),
  first_seen_at: Time,
  last_seen_at: Time,
  closed_at: Type.Optional(Time),
  closed_by: Type.Optional(Type.String()),
  job: Type.Optional(Type.Integer({ description: 'The bulk job whose replay came back as this.' })),
  edited: Type.Boolean({
    description: 'A change waits for its next replay, or was sent by the last.',
  }),
};

export const Item = Type.Object(item, {
  $id: 'Item',
  description: 'A message in review: it did not work, and somebody has to look at it.',
  examples: [examples.reviewItem],
});

const detail = {
  ...item,
  ...shownPayload,
  headers: Type.Optional(Headers),
  content_type: Type.Optional(Type.String()),
  attempts: Type.Array(Attempt, { description: 'Every execution that failed, oldest first.' }),
  edit: Type.Optional(
    Type.Object({
      ...shownPayload,
      headers: Type.Optional(Headers),
      destination: Type.Optional(Destination),
      by: Type.Optional(Type.String()),
    }),
  ),
  difference: Type.Optional(
    Type.Array(
      Type.Object({
        path: Type.String({ description: 'A JSON pointer into the message.' }),
        before: Type.Optional(Type.Unknown()),
        after: Type.Optional(Type.Unknown()),
      }),
      { description: 'What the edit changes.' },
    ),
  ),
};

export const ItemDetail = Type.Object(detail, {
  $id: 'ItemDetail',
  description: 'An item with its payload, its executions and its edit.',
  examples: [examples.reviewDetail],
});

export const ErasedItem = Type.Object(
  {
    ...detail,
    not_reached: Type.Array(
      Type.Object({
        what: Type.String({ description: 'A word for programs, such as `backups`.' }),
        why: Type.String({ description: 'Why it is not reached.' }),
        todo: Type.String({ description: 'What can be done about it.' }),
      }),
      { description: 'Where something of the message may still be.' },
    ),
  },
  {
    $id: 'ErasedItem',
    description: 'What is left of an item, and where something of its message may still be.',
  },
);

export const ItemPath = Type.Object({
  id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
});

const changes = {
  payload: Type.Optional(Type.Unknown({ description: 'Any JSON. This or `payload_base64`.' })),
  payload_base64: Type.Optional(Type.String({ description: 'Any bytes.' })),
  headers: Type.Optional(GivenHeaders),
  destination: Type.Optional(GivenDestination),
};

/** What an operator changes; what is absent stays as it was. */
export const Changes = Type.Object(changes, {
  additionalProperties: false,
  examples: [{ payload: { order: 7, currency: 'EUR' } }],
});

export const Edit = Type.Object(changes, {
  additionalProperties: false,
  minProperties: 1,
  examples: [{ destination: 'queue:orders.v2' }],
});

/** No body, or an empty object. */
export const Nothing = Type.Object({}, { additionalProperties: false });

export const Group = Type.Object(
  {
    fingerprint: Type.String(),
    lane: Type.String(),
    reason: choice(reasons),
    error: Failure,
    open: Type.Integer({ description: 'Items that are open.' }),
    first_seen_at: Time,
    last_seen_at: Time,
    note: Type.Optional(Type.String()),
    owner: Type.Optional(Type.String()),
  },
  { $id: 'Group', description: 'Items of one cause.', examples: [examples.group] },
);

export const GroupFilter = Type.Object(
  {
    lane,
    queue,
    all: Type.Optional(Type.Boolean({ description: 'Also those without open items.' })),
    ...page(1000, 100),
  },
  { additionalProperties: false },
);

export const GroupPath = Type.Object({
  fingerprint: Type.String({ minLength: 1, maxLength: 500 }),
});

export const Notes = Type.Object(
  {
    note: Type.Optional(
      Type.String({ maxLength: 10_000, description: 'Empty: takes it away. Absent: stays.' }),
    ),
    owner: Type.Optional(Type.String({ maxLength: 10_000 })),
  },
  { additionalProperties: false, minProperties: 1, examples: [{ owner: 'payments' }] },
);

/** Which items a bulk job takes: one of the three. */
export const selection = {
  filter: Type.Optional(Type.Object(filters, { additionalProperties: false })),
  ids: Type.Optional(
    Type.Array(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), {
      minItems: 1,
      maxItems: 10_000,
    }),
  ),
  all: Type.Optional(
    Type.Unsafe<true>({ type: 'boolean', const: true, description: 'Everything that is open.' }),
  ),
};

export const Selection = Type.Object(selection, {
  additionalProperties: false,
  examples: [{ filter: { lane: 'queue:orders', class: 'transient' } }],
});

export const Preview = Type.Object(
  {
    count: Type.Integer({ description: 'Exactly.' }),
    sample: Type.Array(ref('Item'), { description: 'The newest ten.' }),
  },
  { description: 'What a bulk job would take.' },
);
