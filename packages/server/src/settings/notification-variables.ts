/** The settings of notifications, a part of the table in variables.ts. */
import type { Variable } from './variables.ts';

const place = {
  kind: 'text',
  maxBytes: 255,
  pattern: /^(queue|nats|kafka):./,
  takes: '`queue:NAME`, `nats:SUBJECT` or `kafka:TOPIC`',
} as const;

export const notificationVariables = {
  notifications: {
    env: 'NOTIFICATIONS',
    kind: 'choice',
    of: ['off', 'on'],
    default: 'off',
    about:
      'The retry service of notifications, at `/api/v1/notifications`. Its records are kept in `MONGODB_URL`, else in PostgreSQL or in the data folder.',
  },
  notificationPrefix: {
    env: 'NOTIFICATION_PREFIX',
    kind: 'text',
    maxBytes: 80,
    pattern: /^[\w.-]+$/,
    takes: '1 to 80 letters, digits, dots, dashes and underscores',
    default: 'notifications',
    about:
      'Part of the names of the notification queues: rows of the store, keys in Redis, topics and consumer groups of Kafka. Deployments that share one Redis or one Kafka need different prefixes. All instances of one deployment need the same prefix.',
  },
  notificationDelivery: {
    env: 'NOTIFICATION_DELIVERY',
    kind: 'text',
    maxBytes: 2200,
    pattern: /^(https?:\/\/|(queue|nats|kafka):.)/,
    takes: 'a URL, `queue:NAME`, `nats:SUBJECT` or `kafka:TOPIC`',
    about:
      'The destination of due retries. A URL answers with the outcome of the delivery. The consumer of a queue, a subject or a topic has to report the outcome. Without this setting retries wait until their notification expires.',
    example: 'https://push.example.com/deliver',
  },
  notificationDeadLetters: {
    env: 'NOTIFICATION_DEAD_LETTERS',
    ...place,
    default: 'kafka:notifications.dead-letter',
    about:
      'Where permanent failures are published, beside the inbox. The default needs `KAFKA_BROKERS`.',
  },
  notificationEvents: {
    env: 'NOTIFICATION_EVENTS',
    ...place,
    default: 'kafka:notification-events',
    about: 'Where events of notifications are published. The default needs `KAFKA_BROKERS`.',
  },
  notificationReports: {
    env: 'NOTIFICATION_REPORTS',
    ...place,
    default: 'kafka:notification-reports',
    about:
      'Where failures and successes are taken in, beside the API. The default needs `KAFKA_BROKERS`.',
  },
  notificationExisting: {
    env: 'NOTIFICATION_EXISTING',
    kind: 'choice',
    of: ['return', 'conflict'],
    default: 'return',
    about:
      'What a known `idempotency_key` is answered with: the notification that is there, or 409.',
  },
  notificationConcurrency: {
    env: 'NOTIFICATION_CONCURRENCY',
    kind: 'integer',
    min: 1,
    max: 10_000,
    default: 100,
    about: 'Deliveries of notifications at once in each of the two lanes of this instance.',
  },
  notificationRetentionDays: {
    env: 'NOTIFICATION_RETENTION_DAYS',
    kind: 'integer',
    min: 0,
    max: 3650,
    default: 7,
    about: 'For how long notifications are kept after their last change. 0 means for ever.',
  },
  deviceServiceUrl: {
    env: 'DEVICE_SERVICE_URL',
    kind: 'url',
    protocols: ['http:', 'https:'],
    about:
      'The device service: `GET {url}/devices/{id}` gives `{active, platform, last_seen}`. While it is away no device counts as inactive.',
    example: 'http://devices.internal:8080',
  },
  mongodbUrl: {
    env: 'MONGODB_URL',
    kind: 'url',
    protocols: ['mongodb:', 'mongodb+srv:'],
    about: 'MongoDB for the records of notifications.',
    example: 'mongodb://localhost:27017/redrive',
  },
} as const satisfies Record<string, Variable>;
