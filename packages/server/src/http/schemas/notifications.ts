/** The schemas of notifications and of the reports about them. */
import { deliveryStates, failureReasons, priorities, statuses } from '@redrive/notifications';
import { Type } from 'typebox';
import { choice, GivenTime, name, page, Time } from './common.ts';
import { examples } from './examples.ts';

const MAX_REPORTS = 1000;
const MAX_DEVICES = 1000;

const anything = Type.Unknown({ description: 'What the push service answered, as it was.' });

export const GivenQuietHours = Type.Object(
  {
    from: Type.String({ description: 'A local time such as 22:00.' }),
    to: Type.String({
      description: 'A local time such as 08:00: the end, which may be on the next day.',
    }),
    time_zone: Type.String({ maxLength: 64, description: 'A name such as Europe/Berlin.' }),
  },
  {
    additionalProperties: false,
    description: 'When nothing is sent. Retries are deferred to the end.',
  },
);

const GivenRecipient = Type.Object(
  {
    user_id: name(255),
    device_ids: Type.Optional(Type.Array(name(255), { minItems: 1, maxItems: MAX_DEVICES })),
    quiet_hours: Type.Optional(GivenQuietHours),
  },
  { additionalProperties: false },
);

const Content = Type.Object(
  { title: Type.String(), body: Type.String() },
  { additionalProperties: true, description: 'What the user sees.' },
);

const Data = Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true });

/** Which priorities there are the service says, with a code of its own. */
const GivenPriority = Type.String({ description: `One of ${priorities.join(', ')}.` });

export const NotificationItem = Type.Object(
  {
    id: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description: 'An id of your own; a UUID unless given.',
      }),
    ),
    recipient: GivenRecipient,
    priority: GivenPriority,
    notification: Content,
    data: Type.Optional(Data),
    source: Type.Optional(name(255)),
    idempotency_key: Type.Optional(name(255)),
    ttl: Type.Optional(
      Type.Integer({
        minimum: 1,
        description: 'In seconds, as push services have it. 24 h unless given.',
      }),
    ),
    ttl_ms: Type.Optional(Type.Integer({ minimum: 1, description: 'The same in ms.' })),
    expires_at: Type.Optional(GivenTime),
    scheduled_at: Type.Optional(GivenTime),
    quiet_hours: Type.Optional(GivenQuietHours),
  },
  {
    $id: 'NotificationItem',
    additionalProperties: false,
    description: 'A notification whose failed deliveries are to be retried.',
    examples: [examples.notificationItem],
  },
);

const report = {
  device_id: name(255),
  attempt_number: Type.Integer({
    minimum: 1,
    maximum: 1_000_000,
    description: '1 is the first delivery.',
  }),
  platform_response: Type.Optional(anything),
  attempted_at: Type.Optional(GivenTime),
};

const failure = {
  ...report,
  error_code: Type.Optional(Type.String({ maxLength: 255 })),
  error_message: Type.Optional(Type.String({ maxLength: 8192 })),
  retry_after_ms: Type.Optional(
    Type.Number({
      minimum: 0,
      description: 'The push service asked not to come back before this.',
    }),
  ),
};

export const SuccessBody = Type.Object(report, { additionalProperties: false });
export const FailureBody = Type.Object(failure, {
  additionalProperties: false,
  examples: [examples.failureReport],
});
export const SuccessItem = Type.Object(
  { notification_id: name(255), ...report },
  { additionalProperties: false },
);
export const FailureItem = Type.Object(
  { notification_id: name(255), ...failure },
  { additionalProperties: false },
);

const items = { items: Type.Array(Type.Unknown(), { minItems: 1, maxItems: MAX_REPORTS }) };
/** Items are checked one by one, so that a faulty one does not spoil the others. */
export const Many = Type.Object(items, { additionalProperties: false });

const Recipient = Type.Object({
  user_id: Type.String(),
  device_ids: Type.Optional(Type.Array(Type.String())),
  quiet_hours: Type.Optional(GivenQuietHours),
});

const shown = {
  id: Type.String(),
  recipient: Recipient,
  priority: choice(priorities),
  notification: Content,
  data: Type.Optional(Data),
  source: Type.String(),
  idempotency_key: Type.String(),
  ttl: Type.Integer({ description: 'In seconds.' }),
  expires_at: Time,
  scheduled_at: Type.Optional(Time),
  quiet_hours: Type.Optional(GivenQuietHours),
  status: choice(statuses, { description: '`failed` is permanent.' }),
  retry_count: Type.Integer({ description: 'Retries that were scheduled, of all devices.' }),
  created_at: Time,
  updated_at: Time,
};

export const ShownNotification = Type.Object(shown, {
  $id: 'Notification',
  description: 'A notification.',
  examples: [examples.notification],
});

const ShownDelivery = Type.Object(
  {
    device_id: Type.String(),
    state: choice(deliveryStates),
    attempt_number: Type.Integer({
      description: 'Of the attempt that failed last, is awaited or under way.',
    }),
    retry_count: Type.Integer(),
    due_at: Type.Optional(Time),
    reason: Type.Optional(choice(failureReasons)),
    error_code: Type.Optional(Type.String()),
    error_message: Type.Optional(Type.String()),
  },
  { description: 'How it stands with one device.' },
);

export const NotificationDetail = Type.Object(
  { ...shown, deliveries: Type.Array(ShownDelivery) },
  {
    $id: 'NotificationDetail',
    description: 'A notification, with how it stands with each device.',
  },
);

const ShownAttempt = Type.Object({
  device_id: Type.String(),
  attempt_number: Type.Integer(),
  status: choice(['delivered', 'failed']),
  error_code: Type.Optional(Type.String()),
  error_message: Type.Optional(Type.String()),
  platform_response: Type.Optional(anything),
  attempted_at: Time,
});

export const ShownStatus = Type.Object({
  id: Type.String(),
  status: choice(statuses),
  retry_count: Type.Integer(),
  deliveries: Type.Array(ShownDelivery),
  attempts: Type.Array(ShownAttempt),
  next_cursor: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    description: 'Where the attempts go on; null: these were all.',
  }),
});

const decisions = ['scheduled', 'skipped', 'expired', 'failed', 'duplicate'] as const;

const answer = {
  retry_count: Type.Integer(),
  status: choice(statuses),
  explanation: Type.String({ description: 'Why, in a sentence.' }),
};

const decided = {
  decision: choice(decisions),
  lane: Type.Optional(choice(['urgent', 'bulk'])),
  due_at: Type.Optional(Time),
  delay_ms: Type.Optional(Type.Integer()),
  ...answer,
};

export const FailureDecision = Type.Object(decided, {
  $id: 'FailureDecision',
  description: 'What follows from the failure.',
  examples: [examples.failureDecision],
});

const succeeded = {
  decision: choice(['delivered', 'duplicate', 'over'], {
    description: '`over`: the delivery had ended otherwise before, and stays as it is.',
  }),
  ...answer,
};

export const SuccessDecision = Type.Object(succeeded, {
  $id: 'SuccessDecision',
  description: 'What follows from the success.',
});

const Rejected = Type.Array(
  Type.Object({
    index: Type.Integer(),
    code: Type.String(),
    path: Type.String({ description: 'A JSON pointer into the item.' }),
    message: Type.String(),
  }),
  { description: 'One for each fault: an item may have several.' },
);

const about = { index: Type.Integer(), notification_id: Type.String(), device_id: Type.String() };

export const FailureDecisions = Type.Object({
  accepted: Type.Array(Type.Object({ ...about, ...decided })),
  rejected: Rejected,
});

export const SuccessDecisions = Type.Object({
  accepted: Type.Array(Type.Object({ ...about, ...succeeded })),
  rejected: Rejected,
});

export const CreatedMany = Type.Object({
  accepted: Type.Array(
    Type.Object({
      index: Type.Integer(),
      id: Type.String(),
      result: choice(['created', 'existing']),
      status: choice(statuses),
    }),
  ),
  rejected: Rejected,
});

export const NotificationPath = Type.Object({ id: name(255) });

export const NotificationFilter = Type.Object(
  {
    status: Type.Optional(choice(statuses)),
    priority: Type.Optional(choice(priorities)),
    user_id: Type.Optional(name(255)),
    ...page(100, 50),
  },
  { additionalProperties: false },
);

export const StatusQuery = Type.Object(page(1000, 100), { additionalProperties: false });
