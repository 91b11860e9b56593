/** The topics that settings name, and what it means where one is missing. */
import type { Settings } from '../settings/settings.ts';
import { type Finding, findingsAbout } from './finding.ts';

const finding = findingsAbout('kafka');

/** What Redrive does with a topic. */
type Use = 'reads' | 'writes';

export function topicsOf(
  settings: Pick<
    Settings,
    | 'kafkaRetryTopic'
    | 'notifications'
    | 'notificationDelivery'
    | 'notificationDeadLetters'
    | 'notificationEvents'
    | 'notificationReports'
  >,
): ReadonlyMap<string, Use> {
  const { kafkaRetryTopic, notifications, notificationReports } = settings;
  const { notificationDelivery = '', notificationDeadLetters, notificationEvents } = settings;
  const isOn = notifications !== 'off';
  const written = isOn ? [notificationDeadLetters, notificationEvents, notificationDelivery] : [];
  const read = isOn ? [notificationReports] : [];
  const topicsIn = (places: readonly string[]) =>
    places.flatMap((place) => /^kafka:(.+)$/s.exec(place)?.[1] ?? []);
  return new Map<string, Use>([
    ...(kafkaRetryTopic === undefined ? [] : [[kafkaRetryTopic, 'reads'] as const]),
    ...topicsIn(read).map((topic) => [topic, 'reads'] as const),
    // What is written to and read from is missed by both.
    ...topicsIn(written).map((topic) => [topic, 'writes'] as const),
  ]);
}

export function missingTopic(topic: string, use: Use, address: string): Finding {
  const effect = use === 'reads' ? 'Nothing can come in from there.' : 'What goes there waits.';
  return finding(
    'warning',
    `There is no topic ${topic}, or the user may not see it. ${effect}`,
    `Make it: kafka-topics.sh --bootstrap-server ${address} --create --topic ${topic}`,
  );
}
