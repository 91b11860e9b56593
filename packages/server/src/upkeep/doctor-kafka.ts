/** A look at Kafka: whether it lets us in, and whether the topics that are configured exist. */
import { withoutCredentials } from '../observe/log/redact.ts';
import type { Settings } from '../settings/settings.ts';
import { type Finding, findingsAbout } from './finding.ts';
import { missingTopic, topicsOf } from './kafka-topics.ts';

const finding = findingsAbout('kafka');

const CONNECT_MS = 5000;
const quiet = () => undefined;
export const silent = { debug: quiet, info: quiet, warn: quiet, error: quiet };

/** Makes nothing: topics are looked for. Those of the delay queue are made by the next start. */
export async function examineKafka(settings: Settings): Promise<Finding[]> {
  const { kafkaBrokers } = settings;
  if (kafkaBrokers === undefined) return [];
  const at = kafkaBrokers.join(', ');
  const [{ kafka }, { kafkaConnection }] = await Promise.all([
    import('@redrive/engine/kafka'),
    import('../kafka-wiring.ts'),
  ]);
  const connection = await kafkaConnection(settings);
  const broker = kafka({ ...connection, connectTimeout: CONNECT_MS, log: silent });
  try {
    await broker.open();
    const { state, why = '' } = broker.state;
    if (state !== 'connected') return [notWell(at, why)];
    const findings = [finding('fine', `Kafka at ${at} lets us in.`)];
    for (const [topic, use] of topicsOf(settings)) {
      findings.push(
        (await broker.hasTopic(topic))
          ? finding('fine', `The topic ${topic} is there.`)
          : missingTopic(topic, use, kafkaBrokers[0] ?? ''),
      );
    }
    return findings;
  } finally {
    await broker.close();
  }
}

function notWell(at: string, why: string): Finding {
  return finding(
    'broken',
    `Kafka at ${at} is not usable. ${withoutCredentials(why)}`,
    'Is it running, and are KAFKA_BROKERS, the TLS files and the user right? Tasks for topics wait until it is back; nothing is lost.',
  );
}
