import { Type } from 'typebox';
import {
  Attempt,
  choice,
  Destination,
  DestinationText,
  Failure,
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

const MAX_ITEMS = 1000;
const MAX_COUNT = 999_999_999;

export const classifications = ['TRANSIENT', 'BUSINESS', 'TECHNICAL', 'UNKNOWN'] as const;

/** One message to be delivered, or to be retried. */
export const RetryItem = Type.Object(
  {
    message_id: Type.Optional(
      Type.String({
        format: 'uuid',
        description: 'With the destination it says which message this is. Made up unless given.',
      }),
    ),
    destination: GivenDestination,
    payload: Type.Optional(
      Type.Unknown({ description: 'Any JSON. This or `payload_base64`, never both.' }),
    ),
    payload_base64: Type.Optional(Type.String({ description: 'Any bytes.' })),
    headers: Type.Optional(GivenHeaders),
    content_type: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
    method: Type.Optional(
      choice(['POST', 'PUT', 'PATCH', 'DELETE', 'GET', 'HEAD'], {
        description: 'Of a delivery by HTTP; POST unless given.',
      }),
    ),
    secret: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 256,
        description: 'Credentials of a delivery by HTTP, by their name in the configuration.',
      }),
    ),
    retry_count: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_COUNT,
        description:
          'Retries that it had before it failed now. Given: an execution failed, and it waits before the next. Absent: fresh work, due now.',
      }),
    ),
    max_retries: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_COUNT })),
    policy: Type.Optional(
      Type.Union(
        [
          Type.String({ minLength: 1, maxLength: 200 }),
          Type.Unsafe<Record<string, unknown>>({ type: 'object' }),
        ],
        { description: 'The name of a policy, or a policy.' },
      ),
    ),
    due_at: Type.Optional(GivenTime),
    delay: Type.Optional(
      Type.Unsafe<number | string>({
        type: ['string', 'number'],
        description:
          "How long to wait before the first attempt: a text such as '90s' or '1h', or a number of ms. Give this or `due_at`.",
      }),
    ),
    expires_at: Type.Optional(GivenTime),
    ordering_key: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 500,
        description: 'Messages of one destination and one key go one after the other.',
      }),
    ),
    on_dead: Type.Optional(
      choice(['block', 'release'], {
        description:
          'Whether those behind it wait while it lies in the inbox; `block` unless given.',
      }),
    ),
    on_conflict: Type.Optional(
      choice(['duplicate', 'reject'], {
        description:
          'What becomes of another payload for a known message: 422, or `duplicate`. `reject` unless given, where an Idempotency-Key makes the message_id; `duplicate` for a message_id of your own.',
      }),
    ),
    error_reason: Type.Optional(
      Type.String({ description: 'Why it failed. Only with `retry_count`.' }),
    ),
    classification: Type.Optional(
      choice(classifications, {
        description:
          'What kind of failure it was; TRANSIENT unless given. Anything else goes straight to review. Only with `retry_count`.',
      }),
    ),
  },
  {
    additionalProperties: false,
    dependentRequired: { error_reason: ['retry_count'], classification: ['retry_count'] },
  },
);

/** As the document shows it: a request says one of the two kinds of payload, which the code checks. */
export const ShownItem = Type.Unsafe<unknown>({
  ...RetryItem,
  $id: 'RetryItem',
  examples: [examples.item],
  oneOf: [{ required: ['payload'] }, { required: ['payload_base64'] }],
});

const RetryItems = Type.Object(
  {
    items: Type.Array(Type.Unsafe<unknown>({ oneOf: [ref('RetryItem'), ref('RetryMessage')] }), {
      minItems: 1,
      maxItems: MAX_ITEMS,
    }),
  },
  { additionalProperties: false },
);

export const RetryRequest = Type.Unsafe<unknown>({
  oneOf: [ref('RetryItem'), ref('RetryMessage'), RetryItems],
  examples: [
    { destination: 'http://127.0.0.1:9000/orders', payload: { order: 7 } },
    {
      destination: 'queue:orders',
      payload: { order: 7 },
      retry_count: 0,
      max_retries: 5,
      error_reason: 'connection refused',
    },
    { items: [{ destination: 'queue:orders', payload_base64: 'AAEC' }] },
  ],
});

/** What the envelope of many is held to; its items are checked one by one. */
export const Envelope = Type.Object(
  { items: Type.Array(Type.Unknown(), { minItems: 1, maxItems: MAX_ITEMS }) },
  { additionalProperties: false },
);

export const IdempotencyKey = Type.Object({
  'idempotency-key': Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      description:
        'Makes the message_id where none is given: the same key and destination again is the same message. The same key with another payload is refused.',
    }),
  ),
});

const statuses = ['pending', 'retried', 'done', 'failed', 'cancelled'] as const;

const identity = {
  message_id: Uuid,
  destination: Destination,
  queue: Type.Optional(
    Type.String({ description: 'The name of the queue, where it goes to one.' }),
  ),
  lane: Type.String({
    description: 'An HTTP origin, `queue:NAME`, `nats:SUBJECT`, or `kafka:TOPIC`.',
  }),
  status: choice(statuses, {
    description:
      '`retried`: a broker took it over, and nothing was heard of it since; `error` is the failure before that. `done`: its destination said that it worked. `failed`: it is in review.',
  }),
};

const standing = {
  in_delivery: Type.Boolean(),
  blocked: Type.Boolean({ description: 'Waits behind another message of its ordering key.' }),
  cancelling: Type.Boolean({ description: 'Is cancelled unless the present delivery works.' }),
  retry_count: Type.Integer(),
  max_retries: Type.Integer(),
  generation: Type.Integer({ description: 'How often it was replayed.' }),
  due_at: Time,
  created_at: Time,
};

const further = {
  expires_at: Type.Optional(Time),
  finished_at: Type.Optional(Time),
  ordering_key: Type.Optional(Type.String()),
  policy: Type.Optional(Type.String({ description: 'The fingerprint of a policy of its own.' })),
  job: Type.Optional(Type.Integer({ description: 'The bulk job that replayed it last.' })),
  error: Type.Optional(Failure),
};

export const Task = Type.Object(
  { ...identity, ...standing, ...further },
  { $id: 'Task', description: 'A message in the schedule.', examples: [examples.task] },
);

export const TaskDetail = Type.Object(
  {
    ...identity,
    ...standing,
    ...further,
    ...shownPayload,
    headers: Type.Optional(Headers),
    content_type: Type.Optional(Type.String()),
    method: Type.Optional(Type.String()),
    secret: Type.Optional(Type.String({ description: 'The name of its credentials.' })),
    attempts: Type.Array(Attempt, { description: 'Every execution that failed, oldest first.' }),
  },
  {
    $id: 'TaskDetail',
    description: 'A message with its payload and its executions.',
    examples: [examples.taskDetail],
  },
);

/** What is known of a new message without asking the store again. */
export const Receipt = Type.Object(
  {
    status_of_request: choice(['accepted', 'duplicate', 'failed'], {
      description:
        '`duplicate`: it was known, and is left as it stands. `failed`: it is not retried, and lies in review.',
    }),
    ...identity,
    ...Type.Partial(Type.Object(standing)).properties,
    ...further,
    warning: Type.Optional(
      Type.String({ description: 'It is stored, but this instance cannot deliver it: why.' }),
    ),
  },
  {
    $id: 'Receipt',
    description: 'What became of the request, and the message as far as it is known.',
    examples: [examples.receipt],
  },
);

export const Receipts = Type.Object(
  {
    accepted: Type.Array(
      Type.Object({
        index: Type.Integer(),
        message_id: Type.String(),
        result: choice(['accepted', 'duplicate', 'failed']),
      }),
    ),
    rejected: Type.Array(
      Type.Object({
        index: Type.Integer(),
        code: Type.String(),
        path: Type.String({ description: 'A JSON pointer into the item.' }),
        message: Type.String(),
      }),
      { description: 'One for each fault: an item may have several.' },
    ),
  },
  { $id: 'Receipts', description: 'What became of each item.', examples: [examples.receipts] },
);

/** One serializer for both, compiled once; the document shows which two there are. */
export const Taken = Type.Unsafe<unknown>({
  type: 'object',
  description: 'One message: its receipt. Many: what became of each.',
  properties: { ...Receipt.properties, ...Receipts.properties },
  'x-forms': [ref('Receipt'), ref('Receipts')],
});

export const TaskFilter = Type.Object(
  {
    status: Type.Optional(choice(statuses)),
    lane: Type.Optional(name(512)),
    queue: Type.Optional(name(255)),
    message_id: Type.Optional(Uuid),
    ...page(100, 50),
  },
  { additionalProperties: false },
);

export const TaskPath = Type.Object({ message_id: Uuid });

/** Which one of several messages of one id. */
export const WhichTask = Type.Object(
  {
    queue: Type.Optional(name(255)),
    destination: Type.Optional(DestinationText),
  },
  { additionalProperties: false },
);

export const Acted = Type.Object(
  {
    message_id: Uuid,
    destination: Destination,
    result: choice(['cancelled', 'cancelling', 'expedited', 'in_delivery', 'done', 'pending']),
  },
  {
    $id: 'Acted',
    description: 'What became of a request to do something to a message.',
    examples: [examples.acted],
  },
);
