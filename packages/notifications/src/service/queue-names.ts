import { NotificationError } from '../errors.ts';
import type { Lane } from '../model/retry-config.ts';

/** The names of the queues of both lanes, on each kind of server. */
export interface QueueNames {
  /** The `name` of a queue on the engine's store. */
  store: Readonly<Record<Lane, string>>;
  /** The `prefix` of a queue in Redis: of its keys, and of the channel of its wake-ups. */
  redis: Readonly<Record<Lane, string>>;
  /** The `prefix` of a queue on Kafka: of its topics, and its consumer group. */
  kafka: Readonly<Record<Lane, string>>;
}

const PREFIX = /^[\w.-]{1,80}$/;

/** Deployments that share one Redis or one Kafka need a prefix each: otherwise they take each other's wake-ups. */
export function queueNames(prefix = 'notifications'): QueueNames {
  if (typeof prefix !== 'string' || !PREFIX.test(prefix)) {
    const message = `The prefix of the notification queues is ${JSON.stringify(prefix)}. Allowed: 1 to 80 letters, digits, dots, dashes and underscores.`;
    throw new NotificationError('INVALID_NOTIFICATIONS', message);
  }
  const of = (nameOf: (lane: Lane) => string) => ({
    urgent: nameOf('urgent'),
    bulk: nameOf('bulk'),
  });
  return {
    store: of((lane) => `${prefix}.${lane}`),
    redis: of((lane) => `redrive:${prefix}:${lane}:`),
    kafka: of((lane) => `redrive.${prefix}.${lane}`),
  };
}
