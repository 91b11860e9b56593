/** Sentences of the engine, with the names that users of the service type. */
import type { Delivery, Outcome } from '@redrive/engine';
import { replaced } from './observe/wrappers/wrapped.ts';

const words: readonly (readonly [RegExp, string])[] = [
  [
    /(The host '([^']*)' .*)If it should be, name it in `allow`\./,
    '$1If it should be, add it to REDRIVE_HTTP_ALLOW, such as REDRIVE_HTTP_ALLOW=$2',
  ],
  [
    / in this engine\. Name it in the option policies\./,
    '. Add it to `policies` of the config file.',
  ],
  [/(There is no policy '[^']*') in this engine\./, '$1.'],
  [/the user or the password in the URL\./, 'the user or the password in RABBITMQ_URL.'],
  [/the virtual host of the URL:/, 'the virtual host in RABBITMQ_URL:'],
  [/(deliver to 'queue:.*)Is its broker configured\?/s, '$1Set RABBITMQ_URL in the service.'],
  [/(deliver to 'nats:.*)Is its broker configured\?/s, '$1Set NATS_URL in the service.'],
  [/(deliver to 'kafka:.*)Is its broker configured\?/s, '$1Set KAFKA_BROKERS in the service.'],
  [/^None of the 0 open items matches\..*/s, 'The inbox has no open items.'],
  [
    /^None of the (\d+) open items matches\..*/s,
    'No open item matches; $1 are open. `redrive review groups` shows them.',
  ],
  [/raise maxPayloadBytes\./, 'raise REDRIVE_MAX_PAYLOAD_BYTES.'],
  [/\borderingKey\b/, 'ordering_key'],
  [/\bcontext\.secret\b/, '`secret`'],
  [/delay or dueAt/, 'delay or due_at'],
  [/A Date or ms since the epoch is needed, at most/, 'A time is needed that is at most'],
];

export function inServiceWords(message: string): string {
  return words.reduce((text, [from, to]) => text.replace(from, to), message);
}

/** The same delivery, whose refusals name the settings of the service: they are stored with the task and shown as they are. */
export function namingSettings<T extends Delivery>(delivery: T): T {
  const check: Delivery['check'] = (destination, context) =>
    (delivery.check?.(destination, context) ?? []).map((fault) => ({
      ...fault,
      message: inServiceWords(fault.message),
    }));
  const deliver: Delivery['deliver'] = async (task, run) =>
    withWords(await delivery.deliver(task, run));
  return replaced<T>(delivery, { check, deliver } as Partial<T>);
}

function withWords(outcome: Outcome): Outcome {
  if (outcome.type !== 'failed' || outcome.failure.code !== 'ADDRESS_REFUSED') return outcome;
  const { message } = outcome.failure;
  if (message === undefined) return outcome;
  return { ...outcome, failure: { ...outcome.failure, message: inServiceWords(message) } };
}
