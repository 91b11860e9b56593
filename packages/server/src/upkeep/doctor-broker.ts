/** A look at RabbitMQ: whether it lets us in, what is there, what waits and who listens. */
import type { ChannelModel, Channel } from 'amqplib';
import { OVERSIZED_QUEUE, topologyOf } from '../scheduler/queues.ts';
import { hiddenUrl } from '../settings/hide.ts';
import type { Settings } from '../settings/settings.ts';
import { countOf, type Finding, findingsAbout } from './finding.ts';

const finding = findingsAbout('broker');

const CONNECT_MS = 5000;
const NOT_FOUND = 404;

export async function examineBroker(
  settings: Pick<
    Settings,
    'rabbitmqUrl' | 'natsUrl' | 'kafkaBrokers' | keyof Parameters<typeof topologyOf>[0]
  >,
): Promise<Finding[]> {
  const { rabbitmqUrl: url } = settings;
  if (url === undefined) {
    // Who has another broker need not be told of RabbitMQ.
    if (settings.natsUrl !== undefined || settings.kafkaBrokers !== undefined) return [];
    const what = 'There is none: RABBITMQ_URL is not set, so only HTTP goes in and out.';
    return [finding('note', what)];
  }
  const { default: amqp } = await import('amqplib');
  let model: ChannelModel;
  try {
    model = await amqp.connect(url, { timeout: CONNECT_MS });
  } catch (error) {
    return [notLetIn(url, error)];
  }
  // Whatever ends it while it is looked at ends the look as well, which says so.
  model.on('error', () => undefined);
  try {
    return await look(model, settings);
  } catch (error) {
    return [
      finding(
        'broken',
        `The look at RabbitMQ was cut off: ${textOf(error)}`,
        'Look again, and at its log.',
      ),
    ];
  } finally {
    // Rejects where it is closed already.
    await model.close().catch(() => undefined);
  }
}

async function look(
  model: ChannelModel,
  settings: Parameters<typeof topologyOf>[0] & Pick<Settings, 'rabbitmqUrl'>,
): Promise<Finding[]> {
  const { version } = model.connection.serverProperties as { version?: unknown };
  const { queues, exchanges } = topologyOf(settings);
  const findings = [
    finding(
      'fine',
      `RabbitMQ ${String(version)} at ${hiddenUrl(settings.rabbitmqUrl!)} lets us in.`,
    ),
  ];
  for (const { name } of exchanges) {
    const found = await ask(model, (channel) => channel.checkExchange(name));
    if (found === undefined) findings.push(missing(`The exchange ${name}`));
  }
  for (const { name, onDemand } of queues) {
    const found = await ask(model, (channel) => channel.checkQueue(name));
    if (found !== undefined) findings.push(...queueFindings(name, found, settings));
    else if (!onDemand) findings.push(missing(`The queue ${name}`));
  }
  return findings;
}

interface QueueCounts {
  messageCount: number;
  consumerCount: number;
}

function queueFindings(
  name: string,
  found: QueueCounts,
  { manualReviewQueue }: Pick<Settings, 'manualReviewQueue'>,
): Finding[] {
  if (name === OVERSIZED_QUEUE) return oversizedQueue(found);
  return [name === manualReviewQueue ? reviewQueue(name, found) : intakeQueue(name, found)];
}

/** Nothing takes messages out of there but people. */
function oversizedQueue({ messageCount }: QueueCounts): Finding[] {
  if (messageCount === 0) return [];
  return [
    finding(
      'warning',
      `${OVERSIZED_QUEUE} has ${countOf(messageCount, 'message')} over 16 MiB, which Redrive does not store or retry.`,
      'Take them out: docs/guides/operating.md says how. Find out who publishes them by their header x-redrive-source.',
    ),
  ];
}

/** Redrive itself listens there. */
function intakeQueue(name: string, { messageCount, consumerCount }: QueueCounts): Finding {
  const said = `${name} has ${countOf(messageCount, 'message')} ready and ${countOf(consumerCount, 'consumer')}`;
  if (consumerCount > 0) return finding('fine', `${said}.`);
  if (messageCount === 0) return finding('note', `${said}: no instance takes in from there now.`);
  const advice =
    'Start an instance with this RABBITMQ_URL: redrive serve. If one runs, look at its /health/ready.';
  return finding('warning', `${said}: what comes in waits.`, advice);
}

/** Somebody else listens there, or nobody: the inbox has it all the same. */
function reviewQueue(name: string, { messageCount, consumerCount }: QueueCounts): Finding {
  const said = `${name} has ${countOf(messageCount, 'message')} ready and ${countOf(consumerCount, 'consumer')}.`;
  if (consumerCount > 0 || messageCount < MANY) return finding('fine', said);
  return finding(
    'warning',
    said,
    'Nobody reads it, and it grows. Give it a consumer or a limit (a policy with max-length); everything in it lies in the inbox as well.',
  );
}

const MANY = 10_000;

/** Each on a channel of its own: the broker closes it when it says no. Undefined: it is not there. */
async function ask<T>(
  model: ChannelModel,
  question: (channel: Channel) => Promise<T>,
): Promise<T | undefined> {
  const channel = await model.createChannel();
  channel.on('error', () => undefined);
  try {
    const answer = await question(channel);
    await channel.close();
    return answer;
  } catch (error) {
    if ((error as { code?: unknown }).code === NOT_FOUND) return undefined;
    throw error;
  }
}

function missing(what: string): Finding {
  return finding('note', `${what} is not there yet.`, 'The next redrive serve makes it.');
}

function notLetIn(url: string, error: unknown): Finding {
  const { code } = error as { code?: unknown };
  const text = textOf(error);
  const at = hiddenUrl(url);
  // Where the virtual host is missing, the broker closes the connection instead of opening it.
  if (/Expected ConnectionOpenOk/i.test(text)) {
    return finding(
      'broken',
      `RabbitMQ at ${at} refuses the virtual host.`,
      'Check the virtual host in RABBITMQ_URL, and the permissions of the user there.',
    );
  }
  if (/ACCESS[_-]REFUSED|Handshake terminated/i.test(text)) {
    return finding(
      'broken',
      `RabbitMQ at ${at} refuses the user or the password.`,
      'Check both in RABBITMQ_URL.',
    );
  }
  const why = typeof code === 'string' ? code : text;
  return finding(
    'broken',
    `RabbitMQ at ${at} cannot be reached (${why}).`,
    'Is it running, and is RABBITMQ_URL right? Tasks for queues wait until it is back; nothing is lost.',
  );
}

/** What amqplib says may quote the URL. */
function textOf(error: unknown): string {
  const { message } = error as { message?: unknown };
  const text = typeof message === 'string' && message !== '' ? message : String(error);
  return text.replace(/\/\/[^@/\s]*@/g, '//***@').slice(0, MAX_TEXT);
}

const MAX_TEXT = 300;
