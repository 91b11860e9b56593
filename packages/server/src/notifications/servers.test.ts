/** The whole service with NOTIFICATIONS=on, on Redis, Kafka and MongoDB: each by itself, and all together. */
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@redis/client';
import { kafka } from '@redrive/engine/kafka';
import { describeService, kafkaClient, sharedServer } from '@redrive/services/vitest';
import { MongoClient } from 'mongodb';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { at, listAt, textAt } from '../http/harness.test.ts';
import { createService, type Service } from '../service.ts';
import { readSettings } from '../settings/read.ts';
import { examineKafka } from '../upkeep/doctor-kafka.ts';
import { examineMongo, examineRedis } from '../upkeep/doctor-notifications.ts';

const MONGO = 'MongoDB (mongo-java-server)';
/** Nobody listens there. */
const AWAY = {
  redis: 'redis://u:s3cret@127.0.0.1:9',
  mongo: 'mongodb://u:s3cret@127.0.0.1:9/app',
  kafka: '127.0.0.1:9',
};
const soon = { timeout: 40_000, interval: 50 };
const fast = { base: '50ms', cap: '50ms', maxAttempts: 3 } as const;
const policies = { 'notification.critical': fast, 'notification.low': fast };

let cwd: string;
let service: Service | undefined;
let receiver: Server;
let receiverUrl: string;
let received: unknown[];
/** By device: what the receiver answers instead of 204. */
let answers: Map<string, { status: number; body: unknown }>;

beforeEach(async () => {
  cwd = mkdtempSync(join(tmpdir(), 'redrive-notification-servers-'));
  received = [];
  answers = new Map();
  receiver = createServer((request, response) => {
    let text = '';
    request.on('data', (part: Buffer) => (text += part.toString()));
    request.on('end', () => {
      const body: unknown = JSON.parse(text);
      received.push(body);
      const { status, body: answer } = answers.get(textAt(body, 'device_id')) ?? { status: 204 };
      response.writeHead(status).end(answer === undefined ? undefined : JSON.stringify(answer));
    });
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  receiverUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/deliver`;
});
afterEach(async () => {
  await service?.stop();
  service = undefined;
  receiver.close();
  rmSync(cwd, { recursive: true, force: true });
});

async function settingsOf(env: Record<string, string>) {
  const common = { HTTP_PORT: '0', REDRIVE_LOG_LEVEL: 'silent', BASE_DELAY_MS: '10' };
  const notifications = { NOTIFICATIONS: 'on', NOTIFICATION_DELIVERY: receiverUrl };
  const reading = await readSettings({ env: { ...common, ...notifications, ...env }, cwd });
  if (!reading.ok) throw new Error(JSON.stringify(reading.faults));
  return reading.settings;
}

type Ask = (path: string, body?: unknown) => Promise<unknown>;

async function started(env: Record<string, string>): Promise<Ask> {
  service = createService({ ...(await settingsOf(env)), policies });
  const { url } = await service.start();
  const ask: Ask = async (path, body) => {
    const response = await fetch(url + path, {
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
      headers: { 'content-type': 'application/json' },
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json');
    return isJson ? (JSON.parse(text) as unknown) : text;
  };
  // The topics of a delay queue are made first.
  await vi.waitFor(async () => {
    const checks = listAt(await ask('/health/ready'), 'checks');
    expect(checks.every((check) => at(check, 'ok') === true)).toBe(true);
    expect(checks).toContainEqual({ name: 'notifications', ok: true });
  }, soon);
  return ask;
}

/** A critical and a low one are reported as failed, and each comes again at its time. */
async function expectRetries(ask: Ask): Promise<string[]> {
  const ids: string[] = [];
  for (const [priority, lane] of [
    ['critical', 'urgent'],
    ['low', 'bulk'],
  ]) {
    const id = randomUUID();
    ids.push(id);
    await ask('/api/v1/notifications', item(id, priority!, 'phone'));
    const report = { device_id: 'phone', attempt_number: 1, error_code: 'E' };
    expect(await ask(`/api/v1/notifications/${id}/failures`, report)).toMatchObject({
      decision: 'scheduled',
      lane,
    });
  }
  for (const id of ids) {
    await vi.waitFor(async () => {
      const found = await ask(`/api/v1/notifications/${id}`);
      expect(found).toMatchObject({ status: 'delivered', retry_count: 1 });
    }, soon);
  }
  const delivered = received.map(
    (body) => `${textAt(body, 'notification_id')} ${String(at(body, 'attempt_number'))}`,
  );
  expect(delivered.toSorted()).toEqual(ids.map((id) => `${id} 2`).toSorted());
  return ids;
}

function item(id: string, priority: string, device: string) {
  const notification = { title: 'Hello', body: 'World' };
  return { id, recipient: { user_id: 'u1', device_ids: [device] }, priority, notification };
}

const deadToken = {
  status: 500,
  body: { error_code: 'Unregistered', platform_response: { platform: 'apns', status: 410 } },
};

async function brokersOf(): Promise<string> {
  return (await sharedServer('Kafka')).replace('kafka://', '');
}

/** Topics are the operator's: Redrive makes only those of its delay queue. */
async function topicsOf(client: Awaited<ReturnType<typeof kafkaClient>>) {
  const [letters, events, reports, retries] = [
    await client.topic(),
    await client.topic({ partitions: 3 }),
    await client.topic(),
    await client.topic(),
  ];
  const env = {
    KAFKA_BROKERS: await brokersOf(),
    NOTIFICATION_DEAD_LETTERS: `kafka:${letters}`,
    NOTIFICATION_EVENTS: `kafka:${events}`,
    NOTIFICATION_REPORTS: `kafka:${reports}`,
    KAFKA_RETRY_TOPIC: retries,
  };
  return { letters, events, reports, retries, env };
}

/** The bodies of a topic by the keys of their records. */
async function bodiesIn(client: Awaited<ReturnType<typeof kafkaClient>>, topic: string) {
  const records = await client.records(topic);
  return records.map(({ key, value }): [string, unknown] => [
    Buffer.from(key ?? '').toString(),
    JSON.parse(Buffer.from(value).toString()) as unknown,
  ]);
}

/** As another program would write it. */
async function publish(address: string, body: unknown): Promise<void> {
  const broker = kafka({ brokers: await brokersOf() });
  await broker.open();
  const payload = Buffer.from(JSON.stringify(body));
  const [published] = broker.publish([{ address, payload, headers: {} }], { timeoutMs: 10_000 });
  expect((await published!).outcome).toBe('confirmed');
  await broker.close();
}

async function mongoUrl(): Promise<string> {
  const url = new URL(await sharedServer(MONGO));
  url.pathname = `/test_${randomBytes(6).toString('hex')}`;
  return url.href;
}

async function expectInMongo(url: string, ids: readonly string[]): Promise<void> {
  const client = await new MongoClient(url).connect();
  try {
    const filter = { _id: { $in: ids as never[] } };
    const documents = await client.db().collection('notifications').find(filter).toArray();
    expect(documents.length).toBe(ids.length);
    for (const one of documents) expect(one).toMatchObject({ status: 'delivered', retry_count: 1 });
    const attempts = client.db().collection('delivery_attempts');
    expect(await attempts.countDocuments({ notification_id: { $in: ids } })).toBe(ids.length * 2);
  } finally {
    await client.close();
  }
}

async function urgentKeys(url: string, prefix = 'notifications'): Promise<string[]> {
  const client = createClient({ url });
  await client.connect();
  try {
    return await client.keys(`redrive:${prefix}:urgent:*`);
  } finally {
    await client.close();
  }
}

describeService('Redis', () => {
  it('keeps the urgent lane', async () => {
    const REDIS_URL = await sharedServer('Redis');
    await expectRetries(await started({ REDIS_URL }));
    expect((await urgentKeys(REDIS_URL)).length).toBeGreaterThan(0);
  }, 90_000);

  it('keeps the urgent lanes of two deployments apart', async () => {
    const REDIS_URL = await sharedServer('Redis');
    const prefix = `shop-${randomUUID()}`;
    expect(await urgentKeys(REDIS_URL, prefix)).toEqual([]);
    await expectRetries(await started({ REDIS_URL, NOTIFICATION_PREFIX: prefix }));
    expect(await urgentKeys(REDIS_URL, prefix)).toEqual([`redrive:${prefix}:urgent:meta`]);
  }, 90_000);

  it('is looked at by the doctor, with how it keeps what waits', async () => {
    const REDIS_URL = await sharedServer('Redis');
    const [well, ...found] = await examineRedis(await settingsOf({ REDIS_URL }));
    expect(well).toMatchObject({ about: 'redis', level: 'fine' });
    // The server of the tests keeps nothing on disk.
    expect(found).toMatchObject([{ level: 'warning', advice: expect.any(String) as string }]);
    const [away] = await examineRedis(await settingsOf({ REDIS_URL: AWAY.redis }));
    expect(away).toMatchObject({ level: 'broken' });
    expect(JSON.stringify(away)).not.toContain('s3cret');
    expect(await examineRedis(await settingsOf({ REDIS_URL, NOTIFICATIONS: 'off' }))).toEqual([]);
  }, 60_000);
});

describeService(MONGO, () => {
  it('keeps the records', async () => {
    const MONGODB_URL = await mongoUrl();
    const ids = await expectRetries(await started({ MONGODB_URL }));
    await expectInMongo(MONGODB_URL, ids);
  }, 90_000);

  it('is looked at by the doctor', async () => {
    const MONGODB_URL = await mongoUrl();
    expect(await examineMongo(await settingsOf({ MONGODB_URL }))).toMatchObject([
      { about: 'mongodb', level: 'fine', what: expect.stringContaining('lets us in') as string },
    ]);
    const [away] = await examineMongo(await settingsOf({ MONGODB_URL: AWAY.mongo }));
    expect(away).toMatchObject({ level: 'broken' });
    expect(JSON.stringify(away)).not.toContain('s3cret');
    expect(await examineMongo(await settingsOf({ MONGODB_URL, NOTIFICATIONS: 'off' }))).toEqual([]);
  }, 60_000);
});

describeService('Kafka', () => {
  it('keeps the bulk lane, takes dead letters and events, and gives reports', async () => {
    await using client = await kafkaClient(await sharedServer('Kafka'));
    const { env, ...topics } = await topicsOf(client);
    const before = await spanOfBulk(client);
    const ask = await started(env);
    const ids = await expectRetries(ask);
    expect((await spanOfBulk(client)) - before).toBeGreaterThan(0);
    await expectTopics(client, ask, topics, ids);
  }, 120_000);

  it('takes retries over, and whoever reads them reports through a topic', async () => {
    await using client = await kafkaClient(await sharedServer('Kafka'));
    const { env, reports } = await topicsOf(client);
    const pushes = await client.topic();
    const ask = await started({ ...env, NOTIFICATION_DELIVERY: `kafka:${pushes}` });
    const id = randomUUID();
    await ask('/api/v1/notifications', item(id, 'critical', 'phone'));
    const report = { notification_id: id, device_id: 'phone', attempt_number: 1 };
    await publish(reports, { type: 'failure', ...report, error_code: 'E' });
    await vi.waitFor(async () => expect(await client.span(pushes)).toBe(1), soon);
    expect(await bodiesIn(client, pushes)).toMatchObject([
      [id, { notification_id: id, device_id: 'phone', attempt_number: 2 }],
    ]);
    await publish(reports, { type: 'success', ...report, attempt_number: 2 });
    await vi.waitFor(async () => {
      expect(await ask(`/api/v1/notifications/${id}`)).toMatchObject({ status: 'delivered' });
    }, soon);
    expect(received).toEqual([]);
  }, 120_000);

  it('is a destination and a source of the scheduler, under its own name', async () => {
    await using client = await kafkaClient(await sharedServer('Kafka'));
    const { env, retries } = await topicsOf(client);
    const orders = await client.topic();
    const ask = await started(env);
    await ask('/api/v1/retries', { destination: `kafka:${orders}`, payload: { order: 17 } });
    await vi.waitFor(async () => expect(await client.span(orders)).toBe(1), soon);
    const original_payload = Buffer.from('{"order":18}').toString('base64');
    const failed = { message_id: randomUUID(), original_queue: orders, original_payload };
    await publish(retries, { ...failed, error_reason: 'ECONNREFUSED', retry_count: 0 });
    await publish(retries, 'no report');
    await vi.waitFor(async () => expect(await client.span(orders)).toBe(2), soon);
    const bodies = await bodiesIn(client, orders);
    expect(bodies.map(([, body]) => body)).toEqual([{ order: 17 }, { order: 18 }]);
    await vi.waitFor(async () => {
      const items = listAt(await ask('/api/v1/review'), 'items');
      expect(items.map((one) => at(one, 'reason'))).toEqual(['UNREADABLE']);
    }, soon);
    const metrics = textAt(await ask('/metrics'));
    expect(metrics).toContain('redrive_broker_state{broker="kafka",state="connected"} 1');
    expect(metrics).toContain(`retries_executed_total{queue="kafka:${orders}",status="success"} 2`);
    const checks = listAt(await ask('/health/ready'), 'checks');
    expect(checks).toContainEqual({ name: 'kafka', ok: true });
  }, 120_000);
});

describeService('Kafka', () => {
  it('is looked at by the doctor, with its topics', async () => {
    await using client = await kafkaClient(await sharedServer('Kafka'));
    const { env, letters, events, retries } = await topicsOf(client);
    const missing = client.name();
    const settings = await settingsOf({ ...env, NOTIFICATION_REPORTS: `kafka:${missing}` });
    const [well, ...topics] = await examineKafka(settings);
    expect(well).toMatchObject({ about: 'kafka', level: 'fine' });
    expect(topics.map(({ level, what }) => `${level} ${/topic (\S+)/.exec(what)![1]}`)).toEqual([
      `fine ${retries}`,
      `warning ${missing},`,
      `fine ${letters}`,
      `fine ${events}`,
    ]);
    expect(topics[1]!.advice).toContain(`--create --topic ${missing}`);
    // Looking makes nothing.
    expect(await client.admin.listTopics()).not.toContain(missing);
    const off = await examineKafka(await settingsOf({ ...env, NOTIFICATIONS: 'off' }));
    expect(off.length).toBe(2);
    const [away] = await examineKafka(await settingsOf({ KAFKA_BROKERS: AWAY.kafka }));
    expect(away).toMatchObject({ level: 'broken' });
  }, 60_000);
});

describeService(['Redis', 'Kafka', MONGO], () => {
  it('work together, each for its part', async () => {
    await using client = await kafkaClient(await sharedServer('Kafka'));
    // By the names that they have unless told otherwise.
    const letters = 'notifications.dead-letter';
    const [events, reports] = ['notification-events', 'notification-reports'];
    await client.admin.createTopics({
      topics: [letters, events, reports],
      partitions: 1,
      replicas: 1,
    });
    const env = { KAFKA_BROKERS: await brokersOf() };
    const topics = { letters, events, reports };
    const [REDIS_URL, MONGODB_URL] = [await sharedServer('Redis'), await mongoUrl()];
    const before = await spanOfBulk(client);
    const ask = await started({ ...env, REDIS_URL, MONGODB_URL });
    const ids = await expectRetries(ask);
    await expectInMongo(MONGODB_URL, ids);
    expect((await urgentKeys(REDIS_URL)).length).toBeGreaterThan(0);
    expect((await spanOfBulk(client)) - before).toBeGreaterThan(0);
    await expectTopics(client, ask, topics, ids);
  }, 120_000);
});

/** What the bulk lane has written so far. */
async function spanOfBulk(client: Awaited<ReturnType<typeof kafkaClient>>): Promise<number> {
  const topic = 'redrive.notifications.bulk.due';
  return (await client.admin.listTopics()).includes(topic) ? client.span(topic) : 0;
}

/** A device whose token is dead: a letter, an event of each notification, and a report that nobody can read in the inbox. */
async function expectTopics(
  client: Awaited<ReturnType<typeof kafkaClient>>,
  ask: Ask,
  { letters, events, reports }: { letters: string; events: string; reports: string },
  ids: readonly string[],
): Promise<void> {
  const id = randomUUID();
  const device = randomUUID();
  answers.set(device, deadToken);
  await ask('/api/v1/notifications', item(id, 'critical', device));
  await publish(reports, { notification_id: id, device_id: device, attempt_number: 1 });
  await publish(reports, { type: 'rumour' });
  await vi.waitFor(async () => expect(await client.span(letters)).toBe(1), soon);
  expect(await bodiesIn(client, letters)).toMatchObject([
    [id, { notification_id: id, device_id: device, reason: 'DEAD_TOKEN' }],
  ]);
  await vi.waitFor(async () => {
    const bodies = await bodiesIn(client, events);
    for (const one of [...ids, id]) {
      const found = bodies.find(([key]) => key === one);
      expect(found?.[1]).toMatchObject({ notification_id: one, user_id: 'u1' });
    }
  }, soon);
  await vi.waitFor(async () => {
    const items = listAt(await ask('/api/v1/review'), 'items');
    expect(items.map((one) => textAt(one, 'reason')).toSorted()).toEqual([
      'DEAD_TOKEN',
      'UNREADABLE',
    ]);
  }, soon);
}
