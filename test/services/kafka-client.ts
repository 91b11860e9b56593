/** A plain client for tests: makes topics of their own, and looks at Kafka from outside. */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Admin, Consumer, type Message } from '@platformatic/kafka';

export interface TopicOptions {
  readonly partitions?: number;
  readonly replicas?: number;
  readonly configs?: Readonly<Record<string, string>>;
}

export interface KafkaClient extends AsyncDisposable {
  readonly admin: Admin;
  /** A name that nobody has. Topics whose names begin with it go away with this client. */
  name(): string;
  /** A new topic, of one partition unless told otherwise. */
  topic(options?: TopicOptions): Promise<string>;
  /** All records of a topic, as another consumer would read them. */
  records(topic: string): Promise<Message[]>;
  /** How many offsets its logs span. */
  span(topic: string): Promise<number>;
  /** What a group has committed of a topic, by partition. */
  committed(groupId: string, topic: string): Promise<Map<number, bigint>>;
  close(): Promise<void>;
}

const POLL_MS = 50;
const KNOWN_MS = 20_000;
/** For longer than another leader takes to be elected: a killed broker is missed after 5 s. */
const PATIENCE = { retries: 80, retryDelay: 250 };

export async function kafkaClient(addresses: string | readonly string[]): Promise<KafkaClient> {
  const bootstrapBrokers = [addresses].flat().map((one) => one.replace(/^kafka:\/\//, ''));
  const options = { clientId: 'test', bootstrapBrokers, autocreateTopics: false };
  const admin = new Admin({ ...options, ...PATIENCE });
  const names: string[] = [];
  const name = () => {
    const fresh = `test-${randomBytes(8).toString('hex')}`;
    names.push(fresh);
    return fresh;
  };
  const close = async () => {
    const all = (await admin.listTopics()).filter((one) =>
      names.some((own) => one.startsWith(own)),
    );
    if (all.length > 0) await admin.deleteTopics({ topics: all });
    await admin.close();
  };
  return {
    admin,
    name,
    async topic({ partitions = 1, replicas = 1, configs = {} } = {}) {
      const fresh = name();
      await admin.createTopics({
        topics: [fresh],
        partitions,
        replicas,
        configs: Object.entries(configs).map(([key, value]) => ({ name: key, value })),
      });
      await untilKnown(admin, fresh);
      return fresh;
    },
    records: (topic) => readAll(options, topic),
    span: (topic) => spanOf(options, topic),
    async committed(groupId, topic) {
      const groups = await admin.listConsumerGroupOffsets({ groups: [groupId] });
      const all = groups.flatMap((group) => group.topics).find(({ name: one }) => one === topic);
      const list = all?.partitions ?? [];
      return new Map(list.map((one) => [one.partitionIndex, one.committedOffset]));
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** A busy broker takes a while to know what its controller has made. */
async function untilKnown(admin: Admin, topic: string): Promise<void> {
  const endMs = performance.now() + KNOWN_MS;
  while (!(await admin.listTopics()).includes(topic)) {
    if (performance.now() > endMs) throw new Error(`${topic} is not known after ${KNOWN_MS} ms`);
    await sleep(POLL_MS);
  }
}

async function spanOf(
  options: { clientId: string; bootstrapBrokers: string[] },
  topic: string,
): Promise<number> {
  const consumer = new Consumer({ ...options, ...PATIENCE, groupId: 'test' });
  try {
    const ends = (await consumer.listOffsets({ topics: [topic] })).get(topic)!;
    const starts = (await consumer.listOffsets({ topics: [topic], timestamp: -2n })).get(topic)!;
    return ends.reduce((sum, end, partition) => sum + Number(end - starts[partition]!), 0);
  } finally {
    await consumer.close();
  }
}

async function readAll(
  options: { clientId: string; bootstrapBrokers: string[] },
  topic: string,
): Promise<Message[]> {
  const groupId = `test-${randomBytes(8).toString('hex')}`;
  const consumer = new Consumer({ ...options, ...PATIENCE, groupId });
  try {
    const ends = (await consumer.listOffsets({ topics: [topic] })).get(topic)!;
    const starts = (await consumer.listOffsets({ topics: [topic], timestamp: -2n })).get(topic)!;
    const open = new Set(
      [...ends.keys()].filter((partition) => ends[partition]! > starts[partition]!),
    );
    const got: Message[] = [];
    if (open.size === 0) return got;
    const stream = await consumer.consume({
      topics: [topic],
      mode: 'earliest',
      autocommit: false,
      maxWaitTime: POLL_MS,
    });
    for await (const message of stream) {
      got.push(message);
      if (message.offset + 1n >= ends[message.partition]!) open.delete(message.partition);
      if (open.size === 0) break;
    }
    await stream.close();
    return got;
  } finally {
    await consumer.close(true);
  }
}
