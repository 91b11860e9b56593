/** The topics of a delay queue: made where they are missing, checked where they are there. */
import { EngineError } from '../../../errors.ts';
import type { Cluster } from '../client/cluster.ts';
import { Code, KafkaError, nameOf } from '../client/errors.ts';
import type { KafkaDelayQueueSettings } from './options.ts';
import { Tiers } from './tiers.ts';
import { ConfigResourceTypes, createTopicsV7, describeConfigsV4 } from '../client/library.ts';

export class Topics {
  readonly tiers: Tiers;
  readonly clock: string;
  readonly unreadable: string;
  readonly #settings: KafkaDelayQueueSettings;

  constructor(settings: KafkaDelayQueueSettings) {
    const { prefix, tierMs, tiers } = settings;
    this.#settings = settings;
    this.tiers = new Tiers(prefix, tierMs, tiers);
    this.clock = `${prefix}.clock`;
    this.unreadable = `${prefix}.unreadable`;
  }

  /** Throws where entries could be lost or come early. Warns of what is only weaker than it could be. */
  async prepare(cluster: Cluster): Promise<void> {
    const names = [...this.tiers.topics, this.unreadable, this.clock];
    const infos = await cluster.topics(names, true);
    const missing = names.filter((name) => infos.get(name)!.state !== 'found');
    const made = missing.length > 0 ? await this.#make(cluster, missing) : [];
    const there = names.filter((name) => !made.includes(name));
    if (there.length > 0) await this.#check(cluster, there);
  }

  /** Those that it has made: somebody else may have been faster. */
  async #make(cluster: Cluster, names: readonly string[]): Promise<string[]> {
    const brokers = cluster.nodeIds;
    const replicas = this.#settings.replicas ?? Math.min(3, brokers.length);
    const topics = names.map((name) =>
      name === this.clock ? clockTopic(name, brokers) : this.#waitingTopic(name, replicas),
    );
    const { topics: answers } = await cluster.callAny(createTopicsV7.api, topics, MAKE_MS, false);
    const made: string[] = [];
    for (const { name, errorCode, errorMessage } of answers) {
      if (errorCode === Code.none) made.push(name);
      if (errorCode === Code.none || errorCode === Code.topicExists) continue;
      if (errorCode === Code.requestTimedOut) throw new KafkaError(errorCode, `making ${name}`);
      const why = `${nameOf(errorCode)}${errorMessage ? `: ${errorMessage}` : ''}`;
      const message = `Topic ${name} is missing and could not be made (${why}). Make it: ${this.#command(name, replicas)}`;
      throw new EngineError('TOPIC_UNFIT', message);
    }
    await this.#untilLed(cluster, names);
    return made;
  }

  /** A topic that was just made has no leaders for a moment. */
  async #untilLed(cluster: Cluster, names: readonly string[]): Promise<void> {
    const { clock } = this.#settings.host;
    const endMs = clock.monotonic() + MAKE_MS;
    for (;;) {
      const infos = await cluster.topics(names, true);
      const isLed = [...infos.values()].every(
        (info) =>
          info.state === 'found' && info.partitions.every(({ leader }) => leader !== undefined),
      );
      if (isLed) return;
      if (clock.monotonic() > endMs) throw new KafkaError(Code.leaderNotAvailable, 'making topics');
      await new Promise<void>((resolve) => {
        clock.setTimer(resolve, LOOK_MS);
      });
    }
  }

  #waitingTopic(name: string, replicas: number) {
    const configs = Object.entries({ ...mustBe, ...shouldBe(replicas), ...MADE });
    return {
      name,
      numPartitions: this.#settings.partitions,
      replicationFactor: replicas,
      assignments: [],
      configs: configs.map(([key, value]) => ({ name: key, value })),
    };
  }

  #command(name: string, replicas: number): string {
    const configs = Object.entries(
      name === this.clock ? CLOCK : { ...mustBe, ...shouldBe(replicas) },
    );
    const options = configs.map(([key, value]) => `--config ${key}=${value}`).join(' ');
    return `kafka-topics.sh --create --topic ${name} --partitions ${this.#settings.partitions} --replication-factor ${replicas} ${options}`;
  }

  async #check(cluster: Cluster, names: readonly string[]): Promise<void> {
    const { log } = this.#settings.host;
    const resources = names.map((resourceName) => ({
      resourceType: ConfigResourceTypes.TOPIC,
      resourceName,
      configurationKeys: null,
    }));
    const { results } = await cluster.callAny(describeConfigsV4.api, resources, false, false);
    const infos = await cluster.topics(names);
    const wanted = Math.min(3, cluster.nodeIds.length);
    for (const { resourceName: topic, errorCode, configs } of results) {
      if (errorCode !== Code.none) {
        log.warn(
          { topic, why: nameOf(errorCode) },
          'Kafka: the settings of a topic cannot be checked',
        );
        continue;
      }
      const settings = new Map(configs.map(({ name, value }) => [name, value ?? '']));
      const musts = topic === this.clock ? { 'message.timestamp.type': 'LogAppendTime' } : mustBe;
      const wrong = differences(musts, settings);
      if (wrong.length > 0) {
        const message = `Topic ${topic} has ${wrong.map(([name, is]) => `${name}=${is}`).join(', ')}, with which entries could be lost or come early. Change it: ${alteration(topic, wrong)}`;
        throw new EngineError('TOPIC_UNFIT', message);
      }
      if (topic === this.clock) continue;
      const weak = differences(shouldBe(wanted), settings);
      if (weak.length > 0) {
        const how = alteration(topic, weak);
        log.warn({ topic, how }, 'Kafka: a topic may lose entries when a broker does; change it');
      }
      const info = infos.get(topic)!;
      const copies = info.state === 'found' ? (info.partitions[0]?.replicas.length ?? 0) : wanted;
      if (copies < wanted) {
        const how = 'kafka-reassign-partitions.sh';
        log.warn(
          { topic, copies, wanted, how },
          'Kafka: a topic has fewer copies than it could have',
        );
      }
    }
  }
}

const MAKE_MS = 30_000;
const LOOK_MS = 50;

/** Without these an entry could vanish, or its time would be that of a client. */
const mustBe: Readonly<Record<string, string>> = {
  'cleanup.policy': 'delete',
  'retention.ms': '-1',
  'retention.bytes': '-1',
  'message.timestamp.type': 'LogAppendTime',
};

/** Only whole segments are deleted from a disk: with small ones what is done goes away soon. */
const MADE = { 'segment.bytes': String(64 * 1024 * 1024) };

const CLOCK = {
  'message.timestamp.type': 'LogAppendTime',
  'retention.ms': String(3_600_000),
  'segment.ms': String(3_600_000),
  'min.insync.replicas': '1',
};

function shouldBe(replicas: number): Record<string, string> {
  return {
    'min.insync.replicas': replicas >= 3 ? '2' : '1',
    'unclean.leader.election.enable': 'false',
  };
}

/** One partition on each broker, without copies: it is there to ask that broker. */
function clockTopic(name: string, brokers: readonly number[]) {
  return {
    name,
    numPartitions: -1,
    replicationFactor: -1,
    assignments: brokers.map((id, partitionIndex) => ({ partitionIndex, brokerIds: [id] })),
    configs: Object.entries(CLOCK).map(([key, value]) => ({ name: key, value })),
  };
}

type Difference = readonly [name: string, is: string, should: string];

function differences(
  wanted: Readonly<Record<string, string>>,
  settings: ReadonlyMap<string, string>,
): Difference[] {
  return Object.entries(wanted).flatMap(([name, should]): Difference[] => {
    const is = settings.get(name) ?? '';
    const isEnough = name === 'min.insync.replicas' ? Number(is) >= Number(should) : is === should;
    return isEnough ? [] : [[name, is, should]];
  });
}

function alteration(topic: string, wrong: readonly Difference[]): string {
  const configs = wrong.map(([name, , should]) => `${name}=${should}`).join(',');
  return `kafka-configs.sh --alter --topic ${topic} --add-config ${configs}`;
}
