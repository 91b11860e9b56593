/** What a person sees who has just started it: where everything is, and what to try. */
import { relative } from 'node:path';
import { databaseFile } from '../../settings/data-dir.ts';
import { hiddenUrl } from '../../settings/hide.ts';
import type { Settings } from '../../settings/settings.ts';
import type { Io } from '../command.ts';
import { version } from '../version.ts';
import { storeText } from '../settings.ts';
import { terminalOf } from './terminal.ts';

export async function banner(settings: Settings, url: string, io: Io): Promise<string> {
  const { paint } = terminalOf({ isTTY: io.isTty, columns: io.columns }, io.env);
  const { tokens, only } = settings;
  const facts: [string, string][] = [
    ['API', `${url}  ${paint('dim', tokensText(settings))}`],
    ['Inbox', `${url}/api/v1/review`],
    ['Store', storeText(settings, shortPath(databaseFile(settings), io.cwd))],
    ...brokerTexts(settings, (text) => paint('dim', text)).map((text): [string, string] => [
      'Broker',
      text,
    ]),
    ...(settings.routingGateway === 'on' && settings.routingDir !== undefined
      ? [['Gateway', `${url}/gateway/<policy_id>`] as [string, string]]
      : []),
    ...(settings.notifications === 'on' ? [notificationFact(settings, url)] : []),
    ...(only === undefined ? [] : [['Part', `only ${only}`] as [string, string]]),
  ];
  const auth = tokens.length > 0 ? ` -H "authorization: Bearer $REDRIVE_TOKEN"` : '';
  const tries: [string, string][] = [
    [
      'nobody listens on 9000 yet: see it wait and try again',
      `curl -X POST ${url}/api/v1/retries${auth} -H 'content-type: application/json' -d '{"destination":"http://127.0.0.1:9000/orders","payload":{"order":1}}'`,
    ],
    ['what there is', `curl ${url}/api/v1/retries${auth}`],
    ['what happens, as it happens', `curl -N ${url}/api/v1/events${auth}`],
  ];
  const lines = [
    '',
    `  ${paint('bold', `Redrive ${await version()}`)}  ${paint('dim', settings.serviceName)}`,
    '',
    ...facts.map(([name, text]) => `  ${paint('dim', name.padEnd(7))} ${text}`),
    '',
    '  Try',
    ...tries.flatMap(([why, line]) => [`    ${paint('dim', `# ${why}`)}`, `    ${line}`]),
    '',
  ];
  return `${lines.join('\n')}\n`;
}

function notificationFact({ notificationDelivery: to }: Settings, url: string): [string, string] {
  const where = to === undefined ? 'nowhere: NOTIFICATION_DELIVERY is not set' : hiddenUrl(to);
  return ['Notify', `${url}/api/v1/notifications, retries go to ${where}`];
}

/** One for each, or what would bring one. */
function brokerTexts(settings: Settings, dim: (text: string) => string): string[] {
  const { rabbitmqUrl, retryQueue, deadLetterExchange } = settings;
  const { natsUrl, natsRetrySubject, natsDeadLetterStreams } = settings;
  const texts: string[] = [];
  if (rabbitmqUrl !== undefined) {
    const dead =
      deadLetterExchange === undefined ? '' : ` and dead letters of ${deadLetterExchange}`;
    texts.push(`RabbitMQ, ${hiddenUrl(rabbitmqUrl)}, takes in ${retryQueue}${dead}`);
  }
  if (natsUrl !== undefined) {
    const dead =
      natsDeadLetterStreams.length === 0
        ? ''
        : ` and dead letters of ${natsDeadLetterStreams.join(', ')}`;
    const at = natsUrl.map((url) => hiddenUrl(url)).join(', ');
    texts.push(`NATS, ${at}, takes in ${natsRetrySubject}${dead}`);
  }
  const { kafkaBrokers, kafkaRetryTopic } = settings;
  if (kafkaBrokers !== undefined) {
    const takes = kafkaRetryTopic === undefined ? '' : `, takes in ${kafkaRetryTopic}`;
    texts.push(`Kafka, ${kafkaBrokers.join(', ')}${takes}`);
  }
  return texts.length > 0 ? texts : [dim(`none: RABBITMQ_URL lets it take in ${retryQueue}`)];
}

function tokensText({ tokens }: Settings): string {
  if (tokens.length === 0) return '(no tokens: for this machine only)';
  return `(${tokens.length} ${tokens.length === 1 ? 'token' : 'tokens'}: ${tokens.map(({ name }) => name).join(', ')})`;
}

/** As one would type it. */
function shortPath(path: string, cwd: string): string {
  const short = relative(cwd, path);
  return short.startsWith('..') ? path : `./${short}`;
}
