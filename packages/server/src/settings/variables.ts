/**
 * The one table of what may be set: the types, the checks, `.env.example` and docs/reference/configuration.md come from it.
 * The key is the name in redrive.config, `env` that of the environment.
 */
import { auditVariables } from './audit-variables.ts';
import { criterionVariables } from './criterion-variables.ts';
import { routingVariables } from './routing-variables.ts';
import { kafkaVariables } from './kafka-variables.ts';
import { natsVariables } from './nats-variables.ts';
import { notificationVariables } from './notification-variables.ts';

export type Variable = {
  readonly env: string;
  /** What it does, for the reference. */
  readonly about: string;
  /** The default in words, where it is not one value. */
  readonly usual?: string;
  /** Something that works, for `.env.example` and for faults. */
  readonly example?: string;
} & Kind;

export type Kind =
  | {
      readonly kind: 'text';
      readonly maxBytes: number;
      readonly pattern?: RegExp;
      /** What the pattern allows, in words. */
      readonly takes?: string;
      readonly default?: string;
    }
  | {
      readonly kind: 'integer';
      readonly min: number;
      readonly max: number;
      readonly default?: number;
    }
  | {
      /** `above`: the lower limit itself is not allowed. */
      readonly kind: 'number';
      readonly min?: number;
      readonly above?: number;
      readonly max: number;
    }
  | { readonly kind: 'boolean'; readonly default?: boolean }
  | { readonly kind: 'choice'; readonly of: readonly string[]; readonly default?: string }
  | { readonly kind: 'list'; readonly default?: readonly string[] }
  /** `hide`: the part that nobody may see in a log, beside a password in front of the host. */
  | { readonly kind: 'url'; readonly protocols: readonly string[]; readonly hide?: 'path' }
  /** One or several. */
  | { readonly kind: 'urls'; readonly protocols: readonly string[] }
  /** A text that is never shown. */
  | { readonly kind: 'secret'; readonly maxBytes: number }
  | { readonly kind: 'tokens' };

const MiB = 1024 * 1024;
const DAY_MS = 86_400_000;

/** What RabbitMQ takes as a name, but for those it keeps to itself. */
const queueName = {
  kind: 'text',
  maxBytes: 255,
  pattern: /^(?!amq\.)/,
  takes: "a name of 1 to 255 bytes that does not begin with 'amq.'",
} as const;

export const variables = {
  serviceName: {
    env: 'SERVICE_NAME',
    kind: 'text',
    maxBytes: 64,
    default: 'retry-scheduler',
    about: 'The name of the service in logs, traces and connections.',
  },
  port: {
    env: 'HTTP_PORT',
    kind: 'integer',
    min: 0,
    max: 65_535,
    default: 8086,
    about: 'Where the API listens; 0 takes any free port.',
  },
  host: {
    env: 'REDRIVE_HOST',
    kind: 'text',
    maxBytes: 255,
    pattern: /^[\w.:%-]+$/,
    takes: 'an address or a host name without port',
    default: '127.0.0.1',
    about: 'The address it listens on. Beyond this machine only with `REDRIVE_TOKENS`.',
    example: '0.0.0.0',
  },
  tokens: {
    env: 'REDRIVE_TOKENS',
    kind: 'tokens',
    about:
      'Who may ask, separated by commas: name, role (`reader`, `operator`, `admin`) and hash of each token. `redrive token` makes them.',
    example: 'ops:operator:<sha256 of the token>',
  },
  dataDir: {
    env: 'REDRIVE_DATA_DIR',
    kind: 'text',
    maxBytes: 4096,
    default: './redrive-data',
    about: 'The folder of the SQLite file, where there is no `DATABASE_URL`.',
  },
  databaseUrl: {
    env: 'DATABASE_URL',
    kind: 'url',
    protocols: ['postgres:', 'postgresql:'],
    about: 'PostgreSQL 13 or later, for several instances. Without it: SQLite in the data folder.',
    example: 'postgres://redrive:secret@localhost:5432/redrive',
  },
  pollMs: {
    env: 'RETRY_POLL_INTERVAL_MS',
    kind: 'integer',
    min: 100,
    max: DAY_MS,
    default: 10_000,
    about: 'How often the store is looked at without a reason: only the safety net.',
  },
  rabbitmqUrl: {
    env: 'RABBITMQ_URL',
    kind: 'url',
    protocols: ['amqp:', 'amqps:'],
    about: 'RabbitMQ. Without it nothing is consumed or published; HTTP works.',
    example: 'amqp://guest:guest@localhost:5672',
  },
  queueType: {
    env: 'RABBITMQ_QUEUE_TYPE',
    kind: 'choice',
    of: ['classic', 'quorum'],
    default: 'classic',
    about: 'The type of queues that have to be made. One that is there is used as it is.',
  },
  retryQueue: {
    env: 'RETRY_QUEUE',
    ...queueName,
    default: 'retry.scheduled',
    about: 'Where messages that failed come in.',
  },
  manualReviewQueue: {
    env: 'MANUAL_REVIEW_QUEUE',
    ...queueName,
    default: 'manual-review.pending',
    about: 'Where what goes into the inbox is told.',
  },
  deadLetterExchange: {
    env: 'DEAD_LETTER_EXCHANGE',
    kind: 'text',
    maxBytes: 255,
    about: 'The exchange whose dead letters are taken in. Off unless given.',
    example: 'dlx',
  },
  deadLetterBindings: {
    env: 'DEAD_LETTER_BINDINGS',
    kind: 'list',
    default: ['#'],
    about: 'Which of its dead letters, as routing patterns.',
  },
  unclassifiedAs: {
    env: 'UNCLASSIFIED_AS',
    kind: 'choice',
    of: ['transient', 'business', 'technical', 'unknown'],
    default: 'transient',
    about: 'What a dead letter counts as that says nothing about its error.',
  },
  defaultMaxRetries: {
    env: 'DEFAULT_MAX_RETRIES',
    kind: 'integer',
    min: 0,
    max: 1_000_000,
    default: 3,
    about: 'Retries of a message that does not say how many.',
  },
  baseDelayMs: {
    env: 'BASE_DELAY_MS',
    kind: 'integer',
    min: 0,
    max: 365 * DAY_MS,
    default: 2000,
    about: 'The delay before the first retry; each further one is twice as long.',
  },
  maxDelayMs: {
    env: 'MAX_DELAY_MS',
    kind: 'integer',
    min: 0,
    max: 365 * DAY_MS,
    default: 60_000,
    about: 'No delay is longer, but for its jitter of up to a second.',
  },
  concurrency: {
    env: 'REDRIVE_CONCURRENCY',
    kind: 'integer',
    min: 1,
    max: 10_000,
    usual: '1000 for queues, 10 for others',
    about: 'Deliveries at once in one lane and instance.',
    example: '50',
  },
  maxPayloadBytes: {
    env: 'REDRIVE_MAX_PAYLOAD_BYTES',
    kind: 'integer',
    min: 1,
    max: 16 * MiB,
    default: MiB,
    about:
      'The largest payload, without the message around it. A larger one is refused by the API; from a queue it goes to the inbox. A message of the retry queue may have 5 times as many bytes and 64 KiB more, at most 16 MiB.',
  },
  maxRequestBytes: {
    env: 'REDRIVE_MAX_REQUEST_BYTES',
    kind: 'integer',
    min: 1024,
    max: 64 * MiB,
    usual: '8388608, or what the largest payload needs in base64',
    about: 'A larger request is refused.',
    example: '16777216',
  },
  requestTimeoutMs: {
    env: 'REDRIVE_REQUEST_TIMEOUT_MS',
    kind: 'integer',
    min: 1000,
    max: 600_000,
    default: 30_000,
    about: 'How long a request may take to come in, and to be answered.',
  },
  rateLimit: {
    env: 'REDRIVE_RATE_LIMIT',
    kind: 'integer',
    min: 1,
    max: 1_000_000,
    default: 10_000,
    about: 'Requests per second and client.',
  },
  httpAllow: {
    env: 'REDRIVE_HTTP_ALLOW',
    kind: 'list',
    default: [],
    usual: '`loopback` while bound to loopback',
    about:
      'What HTTP deliveries may connect to: `public`, `private`, `loopback`, ranges (`10.1.0.0/16`), hosts (`billing.internal`, `*.example.com`). Any other host is refused with `ADDRESS_REFUSED`. Link-local addresses are never allowed.',
    example: 'public,billing.internal',
  },
  inboxWebhookUrl: {
    env: 'REDRIVE_INBOX_WEBHOOK',
    kind: 'url',
    protocols: ['http:', 'https:'],
    hide: 'path',
    about:
      'Gets a POST when something enters the inbox, at most once a minute for each cause. Its host has to be in `REDRIVE_HTTP_ALLOW`.',
    example: 'https://hooks.example.com/redrive',
  },
  inboxRetentionDays: {
    env: 'REDRIVE_INBOX_RETENTION_DAYS',
    kind: 'integer',
    min: 1,
    max: 3650,
    default: 30,
    about: 'How long closed items are kept. What is open is never deleted.',
  },
  inboxMaxItems: {
    env: 'REDRIVE_INBOX_MAX_ITEMS',
    kind: 'integer',
    min: 1,
    max: 1_000_000_000,
    default: 1_000_000,
    about: 'Open items from which on the inbox is full: it warns from four fifths of them on.',
  },
  ...auditVariables,
  retryRateAlert: {
    env: 'REDRIVE_RETRY_RATE_ALERT',
    kind: 'integer',
    min: 1,
    max: 1_000_000_000,
    about:
      'An alert is raised when one category has more retries in a minute than this, in one instance: in the log, and at `REDRIVE_RETRY_RATE_WEBHOOK`. Needs `REDRIVE_AUDIT`. Off unless given.',
    example: '600',
  },
  retryRateWebhookUrl: {
    env: 'REDRIVE_RETRY_RATE_WEBHOOK',
    kind: 'url',
    protocols: ['http:', 'https:'],
    hide: 'path',
    about:
      'Gets a POST when such an alert is raised, and when it is over. Its host has to be in `REDRIVE_HTTP_ALLOW`.',
    example: 'https://hooks.example.com/retries',
  },
  instance: {
    env: 'REDRIVE_INSTANCE',
    kind: 'text',
    maxBytes: 64,
    pattern: /^[\w.-]+$/,
    takes: 'letters, digits, dots and dashes, at most 64',
    usual: 'made up at every start',
    about: 'The name of this instance. No two may share one.',
    example: 'redrive-1',
  },
  logLevel: {
    env: 'REDRIVE_LOG_LEVEL',
    kind: 'choice',
    of: ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
    default: 'info',
    about: 'What is logged, from there on.',
  },
  logFormat: {
    env: 'REDRIVE_LOG_FORMAT',
    kind: 'choice',
    of: ['pretty', 'json'],
    usual: '`pretty` on a terminal, else `json`',
    about: 'For a person, or for a machine.',
    example: 'json',
  },
  ...routingVariables,
  ...natsVariables,
  ...kafkaVariables,
  ...notificationVariables,
  ...criterionVariables,
} as const satisfies Record<string, Variable>;

export type VariableName = keyof typeof variables;

/** Names that mean something to Redrive, but are not settings of the service. */
export const otherNames = {
  REDRIVE_CONFIG: 'The configuration file, instead of `redrive.config.ts`, `.js` or `.json`.',
  REDRIVE_URL:
    'For the other commands: where the server is. Without it they ask this machine at `HTTP_PORT`, or at 8086. It is not read from `.env`.',
  REDRIVE_TOKEN: 'For the other commands: the token they show.',
} as const;
