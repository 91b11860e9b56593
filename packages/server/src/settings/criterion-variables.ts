/** The settings of the criteria and of the Cyoda member, a part of the table in variables.ts. */
import type { Variable } from './variables.ts';

const YEAR_S = 365 * 86_400;

const webhook = {
  kind: 'url',
  protocols: ['http:', 'https:'],
  hide: 'path',
} as const;

const oneCause =
  'at most once a minute for each criterion and code. Its host has to be in `REDRIVE_HTTP_ALLOW`.';

/**
 * A name with a dot stands inside an object of the file: `criteria.enableJitter` is `criteria: { enableJitter }`.
 * None of these has a default here: core has the defaults, and a profile changes them.
 */
export const criterionVariables = {
  'criteria.profile': {
    env: 'CRITERION_PROFILE',
    kind: 'choice',
    of: ['development', 'production'],
    usual: '`production`',
    about: 'The defaults of the criteria: `development` has shorter delays.',
    example: 'production',
  },
  'criteria.defaultRetryDelaySeconds': {
    env: 'CRITERION_DEFAULT_RETRY_DELAY_SECONDS',
    kind: 'integer',
    min: 0,
    max: YEAR_S,
    usual: '60, or 5 with the profile `development`',
    about: 'The delay of an entity without a valid `retryDelaySeconds`.',
    example: '60',
  },
  'criteria.defaultBackoffMultiplier': {
    env: 'CRITERION_DEFAULT_BACKOFF_MULTIPLIER',
    kind: 'number',
    above: 0,
    max: 1000,
    usual: '`2`',
    about: 'The multiplier of an entity without a valid `backoffMultiplier`.',
    example: '2',
  },
  'criteria.defaultMaxDelaySeconds': {
    env: 'CRITERION_DEFAULT_MAX_DELAY_SECONDS',
    kind: 'integer',
    min: 1,
    max: YEAR_S,
    usual: '3600, or 60 with the profile `development`',
    about:
      'The longest delay of an entity without a valid `maxDelaySeconds`. It counts with exponential backoff only.',
    example: '3600',
  },
  'criteria.enableExponentialBackoff': {
    env: 'CRITERION_ENABLE_EXPONENTIAL_BACKOFF',
    kind: 'boolean',
    usual: '`true`',
    about: 'Exponential backoff for entities without `exponentialBackoff`.',
    example: 'true',
  },
  'criteria.enableJitter': {
    env: 'CRITERION_ENABLE_JITTER',
    kind: 'boolean',
    usual: '`true`',
    about: 'Jitter for entities without `jitterEnabled`.',
    example: 'true',
  },
  'criteria.jitterPercentage': {
    env: 'CRITERION_JITTER_PERCENTAGE',
    kind: 'number',
    min: 0,
    max: 1,
    usual: '`0.1`',
    about: 'The largest jitter as a share of the delay: 0.1 adds up to a tenth.',
    example: '0.1',
  },
  'criteria.responseTimeoutMs': {
    env: 'CRITERION_RESPONSE_TIMEOUT_MS',
    kind: 'integer',
    min: 1,
    max: 600_000,
    usual: '`2000`',
    about: 'An evaluation that took longer answers false with `EVALUATION_TIMEOUT`.',
    example: '2000',
  },
  'criteria.calculationNodesTags': {
    env: 'CRITERION_CALCULATION_NODES_TAGS',
    kind: 'text',
    maxBytes: 1024,
    usual: '`retry-timing`',
    about: 'The tags that workflows name, separated by commas: the default of `CYODA_TAGS`.',
    example: 'retry-timing',
  },
  'criteria.context': {
    env: 'CRITERION_CONTEXT',
    kind: 'text',
    maxBytes: 1024,
    usual: '`retry-delay-check`',
    about: 'The context that workflows name in a criterion.',
    example: 'retry-delay-check',
  },
  'criteria.attachEntity': {
    env: 'CRITERION_ATTACH_ENTITY',
    kind: 'boolean',
    usual: '`true`',
    about: 'Whether workflows attach the entity. Without it an evaluation has no data.',
    example: 'true',
  },
  criterionRateLimit: {
    env: 'CRITERION_RATE_LIMIT',
    kind: 'integer',
    min: 1,
    max: 1_000_000,
    default: 100_000,
    about:
      'Requests to the criteria per second and client. They do not count towards `REDRIVE_RATE_LIMIT`.',
  },
  criterionReview: {
    env: 'CRITERION_REVIEW',
    kind: 'boolean',
    default: true,
    about: 'Puts failed evaluations into the inbox, with the reason `EVALUATION_FAILED`.',
  },
  criterionOperationsWebhookUrl: {
    env: 'CRITERION_OPERATIONS_WEBHOOK',
    ...webhook,
    about: `Gets a POST when evaluations fail by time or by missing data (\`DATA_UNAVAILABLE\`, \`INVALID_TIME\`, \`EVALUATION_TIMEOUT\`), ${oneCause}`,
    example: 'https://hooks.example.com/operations',
  },
  criterionDevelopmentWebhookUrl: {
    env: 'CRITERION_DEVELOPMENT_WEBHOOK',
    ...webhook,
    about: `Gets a POST when evaluations fail by their calculation (\`CALCULATION_ERROR\`, \`OVERFLOW_ERROR\`), ${oneCause}`,
    example: 'https://hooks.example.com/development',
  },
  cyodaUrl: {
    env: 'CYODA_URL',
    kind: 'url',
    protocols: ['grpc:', 'grpcs:'],
    about:
      'The Cyoda server that this service joins as a calculation member. Off unless given. Port 9090 unless the URL has one.',
    example: 'grpcs://cyoda.example.com:9090',
  },
  cyodaToken: {
    env: 'CYODA_TOKEN',
    kind: 'secret',
    maxBytes: 65_536,
    about: 'The token for that server. Give this one or `CYODA_TOKEN_FILE`.',
  },
  cyodaTokenFile: {
    env: 'CYODA_TOKEN_FILE',
    kind: 'text',
    maxBytes: 4096,
    about: 'A file that holds the token. It is read again on every join.',
    example: '/run/secrets/cyoda-token',
  },
  cyodaTags: {
    env: 'CYODA_TAGS',
    kind: 'list',
    usual: '`retry-timing`, by `CRITERION_CALCULATION_NODES_TAGS`',
    about: 'The tags that the member joins with. Workflows find it by them.',
    example: 'retry-timing',
  },
  cyodaLegalEntity: {
    env: 'CYODA_LEGAL_ENTITY',
    kind: 'text',
    maxBytes: 255,
    about: 'The legal entity (tenant) to join. It must be that of the token.',
    example: 'acme',
  },
} as const satisfies Record<string, Variable>;
