/** The delay queue on Kafka beside the client library alone, on the same broker, turn by turn. */
import { randomBytes } from 'node:crypto';
import { Admin, Consumer, Producer } from '@platformatic/kafka';
import { kafkaDelayQueue } from '@redrive/engine/kafka';
import { startKafka } from '@redrive/services';
import { cpuMs } from '../engine/cpu.ts';
import { type Effort, median } from '../harness.ts';
import type { Case, Result } from '../result.ts';

const PAYLOAD = randomBytes(200);
const BATCH = 500;
/** Batches on their way to the broker at once. */
const SIDES = 4;
const DAY_MINUTES = 1440;

interface Turn {
  perSecond: number;
  cpuUs: number;
  /** Of the broker. */
  serverCpuUs: number;
}

type OwnTurn = Omit<Turn, 'serverCpuUs'>;

interface Contestant {
  name: string;
  turn(count: number): Promise<OwnTurn>;
  close(): Promise<void>;
}

export const kafkaCase: Case = {
  name: 'kafka',
  about: 'entries that are due at once: scheduled, handed over, answered for; one partition',
  async run(effort) {
    await using server = await startKafka();
    const all = [await redrive(server.address, 1), await bare(server.address, 1)];
    try {
      const found = await race(all, effort, server.pid!);
      const [own, limit] = [found['redrive']!, found['bare']!];
      const share = own.perSecond / limit.perSecond;
      return {
        ...resultOf(found),
        verdicts: [
          {
            target: 'at least 35 % of bare at one hop',
            measured: `${(share * 100).toFixed(0)} %`,
            met: share >= 0.35,
          },
        ],
        notes: [
          `CPU of an entry in µs, own process + broker: redrive ${cpuOf(own)}, bare ${cpuOf(limit)}`,
          `log: ${await logBytes(server.address)} bytes per entry and hop, of which ${PAYLOAD.length} are its payload`,
          hopsNote(),
          'bare: the producer and the consumer stream of @platformatic/kafka, acks of all, nothing committed',
        ],
      };
    } finally {
      for (const one of all) await one.close();
    }
  },
};

export const kafkaPartitionsCase: Case = {
  name: 'kafka-partitions',
  about: 'the same on two partitions against one, in one process',
  async run(effort) {
    await using server = await startKafka();
    const [two, one] = [await redrive(server.address, 2), await redrive(server.address, 1)];
    const all = [two, { ...one, name: 'one-partition' }];
    try {
      const found = await race(all, effort, server.pid!);
      const notes = ['one process and one broker: two cores are all there is for both'];
      return { ...resultOf(found), notes };
    } finally {
      for (const contestant of all) await contestant.close();
    }
  },
};

function cpuOf({ cpuUs, serverCpuUs }: Turn): string {
  return `${cpuUs.toFixed(1)} + ${serverCpuUs.toFixed(1)}`;
}

async function race(
  all: readonly Contestant[],
  effort: Effort,
  serverPid: number,
): Promise<Record<string, Turn>> {
  const turns = all.map((): Turn[] => []);
  for (const one of all) await one.turn(Math.min(effort.tasks, 10_000));
  for (let round = 0; round < effort.turns; round++) {
    for (let i = 0; i < all.length; i++) {
      const at = (round + i) % all.length;
      const serverMs = cpuMs(serverPid);
      const turn = await all[at]!.turn(effort.tasks);
      const serverCpuUs = ((cpuMs(serverPid) - serverMs) * 1000) / effort.tasks;
      turns[at]!.push({ ...turn, serverCpuUs });
    }
  }
  return Object.fromEntries(
    all.map(({ name }, i) => [
      name,
      {
        perSecond: median(turns[i]!.map(({ perSecond }) => perSecond)),
        cpuUs: median(turns[i]!.map(({ cpuUs }) => cpuUs)),
        serverCpuUs: median(turns[i]!.map(({ serverCpuUs }) => serverCpuUs)),
      },
    ]),
  );
}

function resultOf(found: Readonly<Record<string, Turn>>): Result {
  const peers = Object.entries(found).filter(([name]) => name !== 'redrive');
  return {
    metric: 'ops/s',
    redrive: found['redrive']!.perSecond,
    peers: Object.fromEntries(peers.map(([name, { perSecond }]) => [name, perSecond])),
  };
}

/** Until all that is sent has come. */
async function timed(count: number, work: (seen: () => void) => Promise<void>): Promise<OwnTurn> {
  const [startMs, cpu] = [performance.now(), process.cpuUsage()];
  const all = Promise.withResolvers<void>();
  let left = count;
  await work(() => {
    left -= 1;
    if (left === 0) all.resolve();
  });
  await all.promise;
  const { user, system } = process.cpuUsage(cpu);
  const seconds = (performance.now() - startMs) / 1000;
  return { perSecond: count / seconds, cpuUs: (user + system) / count };
}

/** Sends in batches, some at once. */
async function inBatches(count: number, send: (size: number) => Promise<unknown>): Promise<void> {
  let left = count;
  const side = async () => {
    while (left > 0) {
      const size = Math.min(BATCH, left);
      left -= size;
      await send(size);
    }
  };
  await Promise.all(Array.from({ length: SIDES }, side));
}

let last = 0;
const nextId = () => `notification-${(last += 1)}:device-1:2`;

async function redrive(brokers: string, partitions: number): Promise<Contestant> {
  const queue = kafkaDelayQueue({ brokers, prefix: `redrive-${partitions}`, partitions, tiers: 1 });
  await queue.open();
  let seen = () => {};
  await queue.consume(
    async (batch) => {
      for (const _ of batch) seen();
      return batch.map(() => ({ type: 'done' }));
    },
    { maxBatch: BATCH },
  );
  return {
    name: 'redrive',
    turn: (count) =>
      timed(count, async (counted) => {
        seen = counted;
        await inBatches(count, (size) =>
          queue.schedule(
            Array.from({ length: size }, () => ({ id: nextId(), delayMs: 0, payload: PAYLOAD })),
          ),
        );
      }),
    close: () => queue.close(),
  };
}

async function bare(address: string, partitions: number): Promise<Contestant> {
  const options = { clientId: 'bare', bootstrapBrokers: [address] };
  const admin = new Admin(options);
  const topic = `bare-${partitions}`;
  await admin.createTopics({ topics: [topic], partitions, replicas: 1 });
  const producer = new Producer({ ...options, idempotent: false });
  const consumer = new Consumer({ ...options, groupId: 'bare' });
  const stream = await consumer.consume({ topics: [topic], mode: 'earliest', autocommit: false });
  let seen = () => {};
  stream.on('data', () => seen());
  return {
    name: 'bare',
    turn: (count) =>
      timed(count, async (counted) => {
        seen = counted;
        await inBatches(count, (size) =>
          producer.send({
            acks: -1,
            messages: Array.from({ length: size }, () => ({
              topic,
              key: Buffer.from(nextId()),
              value: PAYLOAD,
            })),
          }),
        );
      }),
    async close() {
      await stream.close();
      await consumer.close(true);
      await producer.close();
      await admin.close();
    },
  };
}

/** What the broker has written for an entry. */
async function logBytes(address: string): Promise<number> {
  const admin = new Admin({ clientId: 'bench', bootstrapBrokers: [address] });
  const topic = 'redrive-1.due';
  const consumer = new Consumer({
    clientId: 'bench',
    bootstrapBrokers: [address],
    groupId: 'bench',
  });
  try {
    const [[end = 1n] = []] = [...(await consumer.listOffsets({ topics: [topic] })).values()];
    const logs = await admin.describeLogDirs({ topics: [{ name: topic, partitions: [0] }] });
    const sizes = logs.flatMap(({ results }) =>
      results.flatMap(({ topics }) => topics.flatMap(({ partitions }) => partitions)),
    );
    const bytes = sizes.reduce((sum, { partitionSize }) => sum + Number(partitionSize), 0);
    return Math.round(bytes / Number(end));
  } finally {
    await consumer.close();
    await admin.close();
  }
}

/** Delays spread evenly over a day, and the longest. */
function hopsNote(): string {
  const queue = kafkaDelayQueue({ brokers: 'localhost' });
  const minutes = Array.from(
    { length: DAY_MINUTES },
    (_, i) => queue.writesOf((i + 0.5) * 60_000) - 1,
  );
  const mean = minutes.reduce((a, b) => a + b) / DAY_MINUTES;
  const [minute, hour, day] = [60_000, 3_600_000, 86_400_000].map((ms) => queue.writesOf(ms) - 1);
  return `hops after the first write: ${minute} for a minute, ${hour} for an hour, ${day} for a day, ${mean.toFixed(1)} on average over a day, ${queue.writesOf(366 * 86_400_000) - 1} for 366 days`;
}
