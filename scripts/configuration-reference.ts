import { takes } from '../packages/server/src/settings/values.ts';
import {
  otherNames,
  type Variable,
  type VariableName,
  variables,
} from '../packages/server/src/settings/variables.ts';

/** What belongs together on the page and in `.env.example`. */
const chapters: readonly (readonly [string, readonly VariableName[]])[] = [
  ['The API', ['host', 'port', 'tokens', 'maxRequestBytes', 'requestTimeoutMs', 'rateLimit']],
  ['The store', ['dataDir', 'databaseUrl', 'pollMs']],
  [
    'RabbitMQ',
    [
      ...(['rabbitmqUrl', 'retryQueue', 'manualReviewQueue', 'queueType'] as const),
      ...(['deadLetterExchange', 'deadLetterBindings', 'unclassifiedAs'] as const),
    ],
  ],
  [
    'NATS',
    [
      ...(['natsUrl', 'natsCredsFile', 'natsToken', 'natsTlsCaFile'] as const),
      ...(['natsTlsCertFile', 'natsTlsKeyFile', 'natsRetrySubject'] as const),
      ...(['natsDeadLetterStreams', 'natsReplicas', 'natsRouting', 'natsRoutingSubject'] as const),
    ],
  ],
  [
    'Kafka',
    [
      ...(['kafkaBrokers', 'kafkaRetryTopic', 'kafkaTls', 'kafkaTlsCaFile'] as const),
      ...(['kafkaTlsCertFile', 'kafkaTlsKeyFile', 'kafkaSaslMechanism'] as const),
      ...(['kafkaUsername', 'kafkaPassword'] as const),
    ],
  ],
  [
    'Notifications',
    [
      ...(['notifications', 'notificationPrefix', 'notificationDelivery'] as const),
      ...(['deviceServiceUrl', 'mongodbUrl'] as const),
      ...(['notificationDeadLetters', 'notificationEvents'] as const),
      ...(['notificationReports', 'notificationExisting', 'notificationConcurrency'] as const),
      'notificationRetentionDays',
    ],
  ],
  ['Retries', ['defaultMaxRetries', 'baseDelayMs', 'maxDelayMs', 'concurrency', 'maxPayloadBytes']],
  ['Deliveries to URLs', ['httpAllow']],
  [
    'Criteria',
    [
      ...(['criteria.profile', 'criteria.defaultRetryDelaySeconds'] as const),
      ...(['criteria.defaultBackoffMultiplier', 'criteria.defaultMaxDelaySeconds'] as const),
      ...(['criteria.enableExponentialBackoff', 'criteria.enableJitter'] as const),
      ...(['criteria.jitterPercentage', 'criteria.responseTimeoutMs'] as const),
      ...(['criteria.calculationNodesTags', 'criteria.context', 'criteria.attachEntity'] as const),
      ...(['criterionRateLimit', 'criterionReview'] as const),
      ...(['criterionOperationsWebhookUrl', 'criterionDevelopmentWebhookUrl'] as const),
    ],
  ],
  [
    'Routing',
    [
      'routingDir',
      'redisUrl',
      'routingGateway',
      'routingGatewayMaxBodyBytes',
      'routingGatewayIdleMs',
      'routingGatewayConcurrency',
    ],
  ],
  ['Cyoda', ['cyodaUrl', 'cyodaToken', 'cyodaTokenFile', 'cyodaTags', 'cyodaLegalEntity']],
  ['Audit trail', ['audit', 'auditSink', 'auditSubject', 'auditRetentionDays']],
  [
    'Operation',
    [
      'serviceName',
      'instance',
      'logLevel',
      'logFormat',
      'inboxRetentionDays',
      'inboxMaxItems',
      'inboxWebhookUrl',
      'retryRateAlert',
      'retryRateWebhookUrl',
    ],
  ],
];

/** The tables of the reference page, one per chapter. */
export function configurationTables(): string {
  const named = chapters.flatMap(([, names]) => names);
  const missing = Object.keys(variables).filter((name) => !named.includes(name as VariableName));
  if (missing.length > 0) throw new Error(`No chapter names ${missing.join(', ')}.`);
  return chapters
    .map(([heading, names]) =>
      [
        `### ${heading}`,
        '',
        '| variable | in the file | takes | default | what it does |',
        '|---|---|---|---|---|',
        ...names.map((name) => row(name, variables[name])),
        '',
      ].join('\n'),
    )
    .join('\n');
}

/** The variables that are not settings of the service. */
export function otherTable(): string {
  const rows = Object.entries(otherNames).map(([name, about]) => `| \`${name}\` | ${about} |`);
  return ['| variable | what it does |', '|---|---|', ...rows, ''].join('\n');
}

/** Everything that can be set, with its default, to be copied to `.env`. */
export function dotenvExample(): string {
  const lines = [
    '# Copy this to .env, where the service starts, and take away the # of what you change.',
    '# A variable of the environment goes before one that stands here. `redrive config check` shows what is used.',
  ];
  for (const [heading, names] of chapters) {
    lines.push('', `# --- ${heading} ---`);
    for (const name of names) {
      const variable: Variable = variables[name];
      lines.push('', ...wrapped(plain(variable.about)), `#${variable.env}=${written(variable)}`);
    }
  }
  return `${lines.join('\n')}\n`;
}

function row(name: string, variable: Variable): string {
  const cells = [
    `\`${variable.env}\``,
    `\`${name}\``,
    takes(variable).replaceAll('|', '\\|'),
    usualOf(variable),
    variable.about,
  ];
  return `| ${cells.join(' | ')} |`;
}

function usualOf(variable: Variable): string {
  if (variable.usual !== undefined) return variable.usual;
  const usual = 'default' in variable ? variable.default : undefined;
  const text = [usual ?? []].flat().join(',');
  return text === '' ? '' : `\`${text}\``;
}

function written(variable: Variable): string {
  const usual = 'default' in variable ? [variable.default ?? []].flat().join(',') : '';
  const text = usual === '' ? (variable.example ?? '') : usual;
  // Behind an unquoted # a comment would begin.
  return /[\s#<>"]/.test(text) ? `'${text}'` : text;
}

function plain(text: string): string {
  return text.replaceAll('`', '');
}

function wrapped(text: string): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length > 98) lines.push(`# ${word}`);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
