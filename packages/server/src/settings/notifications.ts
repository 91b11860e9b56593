/** What the settings of notifications need beside their kinds. */
import type { Settings } from './settings.ts';
import { variables } from './variables.ts';

const places = [
  'notificationDelivery',
  'notificationDeadLetters',
  'notificationEvents',
  'notificationReports',
] as const;

/** The setting that brings the broker of a place such as `kafka:TOPIC`, and what it says. */
export function brokerSettingOf(
  place: string,
  settings: Pick<Settings, 'rabbitmqUrl' | 'natsUrl' | 'kafkaBrokers'>,
): { env: string; isGiven: boolean } | undefined {
  const { rabbitmqUrl, natsUrl, kafkaBrokers } = settings;
  if (place.startsWith('queue:'))
    return { env: 'RABBITMQ_URL', isGiven: rabbitmqUrl !== undefined };
  if (place.startsWith('nats:')) return { env: 'NATS_URL', isGiven: natsUrl !== undefined };
  if (place.startsWith('kafka:'))
    return { env: 'KAFKA_BROKERS', isGiven: kafkaBrokers !== undefined };
  return undefined;
}

/** Where somebody has named a place that nothing goes to, or comes from. */
export function checkNotifications(settings: Settings, written: ReadonlySet<string>): string[] {
  if (settings.notifications === 'off') {
    // Whoever has written `off` knows.
    if (written.has(variables.notifications.env)) return [];
    const idle = places.map((name) => variables[name].env).filter((env) => written.has(env));
    return idle.length === 0 ? [] : [`${idle.join(', ')}: has no effect without NOTIFICATIONS=on.`];
  }
  const nowhere =
    'NOTIFICATION_DELIVERY is not set: due retries of notifications wait. Set it to the URL of a receiver.';
  const { notificationPrefix, notificationReports, kafkaBrokers } = settings;
  // Whoever needs a prefix shares a server with others.
  const isShared =
    notificationPrefix !== variables.notificationPrefix.default &&
    kafkaBrokers !== undefined &&
    !written.has(variables.notificationReports.env);
  const shared = `NOTIFICATION_REPORTS: is not set, and NOTIFICATION_PREFIX is. Deployments that share ${notificationReports} take each other's reports. Give each a topic of its own.`;
  const idle = places.flatMap((name) => {
    const { env } = variables[name];
    const broker = brokerSettingOf(settings[name] ?? '', settings);
    if (!written.has(env) || !broker || broker.isGiven) return [];
    return [`${env}: has no effect without ${broker.env}.`];
  });
  const delivery = settings.notificationDelivery === undefined ? [nowhere] : [];
  return [...delivery, ...idle, ...(isShared ? [shared] : [])];
}
