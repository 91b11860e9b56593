import type { LaneOptions } from '@redrive/engine';
import type { Secrets } from '@redrive/engine/http';
import type { ClassifyRule, CriterionSettings, Policy } from 'redrive';
import type { Variable, VariableName, variables } from './variables.ts';

export type Role = 'gateway' | 'reader' | 'operator' | 'admin';

/** Who may ask, by a token of which only the hash is known. */
export interface Token {
  name: string;
  role: Role;
  /** Hexadecimal, lower case. */
  sha256: string;
}

/** Part of the service that a process may be limited to. */
export type Part = 'api' | 'intake' | 'dispatch';

/** Everything that was set, checked, with its defaults. */
export interface Settings {
  serviceName: string;
  /** The name of this instance in leases, audit and event ids; made up unless given. */
  instance?: string;
  only?: Part;

  host: string;
  port: number;
  tokens: readonly Token[];
  maxRequestBytes: number;
  requestTimeoutMs: number;
  /** Requests per second and client. */
  rateLimit: number;

  dataDir: string;
  databaseUrl?: string;
  pollMs: number;

  rabbitmqUrl?: string;
  queueType: 'classic' | 'quorum';
  retryQueue: string;
  manualReviewQueue: string;
  deadLetterExchange?: string;
  deadLetterBindings: readonly string[];
  /** One URL, or those of a cluster. */
  natsUrl?: readonly string[];
  /** An absolute path, as those below. */
  natsCredsFile?: string;
  natsToken?: string;
  natsTlsCaFile?: string;
  natsTlsCertFile?: string;
  natsTlsKeyFile?: string;
  natsRetrySubject: string;
  natsDeadLetterStreams: readonly string[];
  natsReplicas: number;
  natsRouting: 'on' | 'off';
  natsRoutingSubject: string;
  /** `host:port` of each. */
  kafkaBrokers?: readonly string[];
  kafkaRetryTopic?: string;
  kafkaTls: 'off' | 'on';
  /** An absolute path, as those below. */
  kafkaTlsCaFile?: string;
  kafkaTlsCertFile?: string;
  kafkaTlsKeyFile?: string;
  kafkaSaslMechanism?: 'PLAIN' | 'SCRAM-SHA-256' | 'SCRAM-SHA-512';
  kafkaUsername?: string;
  kafkaPassword?: string;
  /** What a dead letter without a text counts as. */
  unclassifiedAs: 'transient' | 'business' | 'technical' | 'unknown';

  /** The scheduler's, by DEFAULT_MAX_RETRIES, BASE_DELAY_MS and MAX_DELAY_MS. */
  policy: Policy;
  policies: Readonly<Record<string, Policy>>;
  lane: LaneOptions;
  lanes: Readonly<Record<string, LaneOptions>>;
  /** Asked before what is built in, for dead letters. */
  rules: readonly ClassifyRule[];
  maxPayloadBytes: number;
  /** Deliveries at once in a lane; absent: as fits its kind. */
  concurrency?: number;

  /** What HTTP deliveries may connect to, beside loopback while bound to loopback; `public` is all public addresses. */
  httpAllow: readonly string[];
  /** Credentials of HTTP deliveries, by the names that tasks give. */
  secrets: Secrets;
  inboxWebhookUrl?: string;

  /** The settings of the criteria, with what the environment says of them. */
  criteria: CriterionSettings;
  /** Requests to the criteria per second and client. */
  criterionRateLimit: number;
  /** Failed evaluations become items of the inbox. */
  criterionReview: boolean;
  criterionOperationsWebhookUrl?: string;
  criterionDevelopmentWebhookUrl?: string;

  /** `grpc://` or `grpcs://`. Without it there is no Cyoda member. */
  cyodaUrl?: string;
  cyodaToken?: string;
  /** An absolute path; the file is read on every join. */
  cyodaTokenFile?: string;
  cyodaTags: readonly string[];
  cyodaLegalEntity?: string;

  /** An absolute path: the folder of routing policies. */
  routingDir?: string;
  routingGateway: 'off' | 'on';
  routingGatewayMaxBodyBytes: number;
  routingGatewayIdleMs: number;
  routingGatewayConcurrency: number;
  /** The environment and `.env`, for the files of the gateway. Never shown. */
  variables: Readonly<Record<string, string>>;
  /** `redis://` or `rediss://`: sticky sessions. */
  redisUrl?: string;

  notifications: 'off' | 'on';
  /** In the names of their queues. */
  notificationPrefix: string;
  /** A URL, `queue:NAME`, `nats:SUBJECT` or `kafka:TOPIC`. */
  notificationDelivery?: string;
  /** No URL, as those below. */
  notificationDeadLetters: string;
  notificationEvents: string;
  notificationReports: string;
  notificationExisting: 'return' | 'conflict';
  notificationConcurrency: number;
  /** 0: for good. */
  notificationRetentionDays: number;
  deviceServiceUrl?: string;
  mongodbUrl?: string;

  /** How long closed items are kept, and how many may be open. */
  inboxRetentionDays: number;
  inboxMaxItems: number;

  audit: boolean;
  /** 0: for good. */
  auditSink: 'store' | 'nats' | 'nats-core' | 'log' | 'opentelemetry';
  auditSubject: string;
  auditRetentionDays: number;
  /** Retries per minute and category that raise an alert. */
  retryRateAlert?: number;
  retryRateWebhookUrl?: string;
  logLevel: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';
  logFormat: 'pretty' | 'json';
}

/** What the variables say, by their names in a file. */
export type Values = {
  [Name in Defaulted]: ValueOf<(typeof variables)[Name]>;
} & {
  [Name in Exclude<VariableName, Defaulted>]?: ValueOf<(typeof variables)[Name]>;
};

type Defaulted = {
  [Name in VariableName]: (typeof variables)[Name] extends { default: unknown } ? Name : never;
}[VariableName];

type ValueOf<One extends Variable> = One extends { kind: 'integer' | 'number' }
  ? number
  : One extends { kind: 'boolean' }
    ? boolean
    : One extends { kind: 'choice'; of: readonly (infer Word)[] }
      ? Word
      : One extends { kind: 'list' | 'urls' }
        ? readonly string[]
        : One extends { kind: 'tokens' }
          ? readonly Token[]
          : string;
