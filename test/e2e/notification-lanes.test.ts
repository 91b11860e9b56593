/**
 * Whole services are killed under load, with the urgent lane in Redis and the bulk lane in Kafka, and Redis too: nothing is
 * lost, nothing is early, and only what was in hand at a kill is delivered twice.
 */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { NotificationRepository } from '@redrive/notifications';
import { mongodbNotifications } from '@redrive/notifications/mongodb';
import { postgresNotifications } from '@redrive/notifications/postgres';
import {
  certificate,
  type KafkaServer,
  type RedisServer,
  startKafka,
  startRedis,
} from '@redrive/services';
import {
  describePostgres,
  describeService,
  kafkaClient,
  sharedServer,
} from '@redrive/services/vitest';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  account,
  devices,
  InHand,
  newNotifications,
  settled,
  statusFor,
} from './notifications/account.ts';
import { flood } from './notifications/flood.ts';
import { Processes } from './notifications/processes.ts';
import { Receiver } from './notifications/receiver.ts';
import { TemporaryFolder } from './service/redrive-process.ts';

const DAY_MS = 86_400_000;
const MONGO = 'MongoDB (mongo-java-server)';
const topics = ['notifications.dead-letter', 'notification-events', 'notification-reports'];

describeService(['Redis', 'Kafka'], () => {
  let redis: RedisServer;
  let kafka: KafkaServer;
  let certificates: TemporaryFolder;
  let lanes: Record<string, string>;
  beforeAll(async () => {
    const settings = { appendonly: 'yes', appendfsync: 'always' };
    const security = {
      ...certificate('localhost', Date.now() - DAY_MS, Date.now() + DAY_MS),
      user: 'redrive',
      password: 'secret',
    };
    certificates = new TemporaryFolder();
    const KAFKA_TLS_CA_FILE = join(certificates.path, 'ca.pem');
    writeFileSync(KAFKA_TLS_CA_FILE, security.cert);
    [redis, kafka] = await Promise.all([startRedis({ settings }), startKafka({ security })]);
    lanes = {
      REDIS_URL: redis.url,
      KAFKA_BROKERS: kafka.address,
      KAFKA_TLS_CA_FILE,
      KAFKA_USERNAME: security.user,
      KAFKA_PASSWORD: security.password,
    };
    await using client = await kafkaClient(kafka.insideAddress);
    await client.admin.createTopics({ topics, partitions: 1, replicas: 1 });
  });
  afterAll(async () => {
    await Promise.all([redis?.stop(), kafka?.stop()]);
    certificates?.[Symbol.dispose]();
  });

  /** Reports all, kills while they are delivered, and looks at what came of it. */
  async function storm(
    kills: number,
    databases: Record<string, string>,
    repository: NotificationRepository,
  ) {
    using folder = new TemporaryFolder();
    await using receiver = await Receiver.listen(statusFor);
    await using services = new Processes('service.ts', (name) => ({
      cwd: folder.path,
      env: { ...databases, ...lanes, NOTIFICATION_DELIVERY: `${receiver.url}${name}` },
    }));
    await Promise.all([services.start(), services.start()]);
    await repository.open();
    try {
      const post = poster(services);
      const created = newNotifications(40);
      const ids = created.map(({ id }) => id);
      await post('', { items: created.map(onWire) });
      const inHand = new InHand(() => repository.find(ids));
      const reports = ids.flatMap((id) => devices.map((deviceId) => ({ id, deviceId })));
      const reporting: Promise<unknown>[] = [];
      for (let kill = 1; kill <= kills; kill++) {
        // In parts, so that there is work at every kill.
        const part = reports.splice(0, Math.ceil(reports.length / (kills - kill + 1)));
        reporting.push(...part.map((one) => post(`/${one.id}/failures`, failure(one.deviceId))));
        await receiver.more(1 + Math.floor(Math.random() * part.length));
        const restarted = kill === 2 ? restart(redis) : undefined;
        await inHand.note(await services.kill());
        await Promise.all([services.start(), restarted]);
      }
      const answers = await Promise.all(reporting);
      expect(answers.filter((answer) => !isTaken(answer))).toEqual([]);
      const records = await settled(receiver, inHand.read);
      return account(records, receiver.delivered, (one) => inHand.has(one));
    } finally {
      await repository.close();
    }
  }

  describePostgres(({ freshDatabase }) => {
    test(
      'services that are killed lose nothing, with records in PostgreSQL',
      { timeout: 120_000 },
      async () => {
        await using database = await freshDatabase();
        const repository = postgresNotifications({ url: database.url, maxConnections: 2 });
        expect(await storm(3, { DATABASE_URL: database.url }, repository)).toEqual([]);
      },
    );

    test(
      'low retries in Kafka hold up no critical ones in Redis',
      { timeout: 60_000 },
      async () => {
        using folder = new TemporaryFolder();
        await using database = await freshDatabase();
        const env = { ...lanes, DATABASE_URL: database.url };
        const found = await flood(env, folder.path, { low: 2000, concurrency: 150 });
        expect(found).toEqual({ critical: 40, low: 150 });
      },
    );

    describeService(MONGO, () => {
      test(
        'services that are killed lose nothing, with records in MongoDB',
        { timeout: 120_000 },
        async () => {
          await using database = await freshDatabase();
          const url = new URL(await sharedServer(MONGO));
          url.pathname = `/test_${randomBytes(6).toString('hex')}`;
          const databases = { DATABASE_URL: database.url, MONGODB_URL: url.href };
          const repository = mongodbNotifications({ url: url.href });
          expect(await storm(2, databases, repository)).toEqual([]);
        },
      );
    });
  });
});

async function restart(redis: RedisServer): Promise<void> {
  await redis.kill();
  await redis.start();
}

type Created = ReturnType<typeof newNotifications>[number];

function onWire({ id, priority, notification }: Created) {
  return { id, priority, notification, recipient: { user_id: 'u' } };
}

function failure(deviceId: string) {
  return { device_id: deviceId, attempt_number: 1, error_code: 'E' };
}

/** A repeated report finds what the first one did. */
function isTaken(answer: unknown): boolean {
  const { decision } = Object(answer) as { decision?: unknown };
  return decision === 'scheduled' || decision === 'duplicate';
}

const PAUSE_MS = 50;

/** Asks any service that lives, and another one where it died before its answer. */
function poster(services: Processes) {
  let turn = 0;
  return async (path: string, body: object): Promise<unknown> => {
    for (;;) {
      const urls = [...services.live.values()];
      try {
        const response = await fetch(`${urls[turn++ % urls.length]}/api/v1/notifications${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        });
        if (response.ok) return await response.json();
        if (response.status < 500) throw new Refused(await response.text());
      } catch (error) {
        if (error instanceof Refused) throw error;
      }
      await sleep(PAUSE_MS);
    }
  };
}

class Refused extends Error {}
