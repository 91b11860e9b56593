/** How late critical retries are delivered, alone and while tens of thousands of low ones are due, in one process. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type DelayQueue, storeDelayQueue } from '@redrive/engine';
import { kafkaDelayQueue } from '@redrive/engine/kafka';
import { redisDelayQueue } from '@redrive/engine/redis';
import { sqlite } from '@redrive/engine/sqlite';
import {
  createNotifications,
  type NotificationOptions,
  type NotificationRepository,
  type Notifications,
} from '@redrive/notifications';
import { postgresNotifications } from '@redrive/notifications/postgres';
import { sqliteNotifications } from '@redrive/notifications/sqlite';
import { startKafka, startPostgres, startRedis } from '@redrive/services';
import type { Effort } from '../harness.ts';
import { noiseNote, percentile } from '../engine/turns.ts';
import { requireServer } from '../missing.ts';
import type { Case, Result } from '../result.ts';

const CRITICAL_EVERY_MS = 10;
const CRITICAL_DELAY_MS = 200;
const PAGE = 1000;
const LOOK_MS = 5;

interface Ground {
  repository: NotificationRepository;
  queues: { urgent: DelayQueue; bulk: DelayQueue };
  close(): Promise<void>;
}

export const floodCase: Case = {
  name: 'flood',
  about:
    'the p99 of how late critical retries are while thousands of low ones are due, on SQLite alone',
  async run(effort) {
    const folder = mkdtempSync(join(tmpdir(), 'redrive-bench-'));
    try {
      return await compare(effort, (name) => {
        const file = join(folder, `${name}.db`);
        const store = sqlite(file);
        const queue = (lane: string) => storeDelayQueue(store, { name: lane });
        const queues = { urgent: queue('urgent'), bulk: queue('bulk') };
        return { repository: sqliteNotifications(file), queues, close: () => store.close() };
      });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

export const floodServersCase: Case = {
  name: 'flood-servers',
  about: 'the same with critical ones in Redis, low ones in Kafka and records in PostgreSQL',
  async run(effort) {
    for (const name of ['Redis', 'Kafka', 'PostgreSQL 18'] as const) requireServer(name);
    await using redis = await startRedis({ settings: { appendonly: 'yes' } });
    await using kafka = await startKafka();
    await using server = await startPostgres({ version: 18 });
    return await compare(effort, (name) => {
      return {
        repository: postgresNotifications({ url: server.url }),
        queues: {
          urgent: redisDelayQueue({ url: redis.url, prefix: `${name}:` }),
          bulk: kafkaDelayQueue({ brokers: kafka.address, prefix: name }),
        },
        close: async () => undefined,
      };
    });
  },
};

interface Found {
  late: number[];
  lowPerSecond: number;
  /** Low ones that were still due when the last critical one was reported: more than none, or there was no flood. */
  lowLeft: number;
}

async function compare({ spanMs, tasks }: Effort, open: (name: string) => Ground): Promise<Result> {
  const calm = await driftOn('calm', () => open('calm'), 0, spanMs);
  const flooded = await driftOn('flooded', () => open('flooded'), tasks, spanMs);
  const [alone, flood] = [calm, flooded].map(({ late }) => {
    const [half, most] = [percentile(late, 0.5), percentile(late, 0.99)];
    return `p50 ${half.toFixed(0)} ms, p99 ${most.toFixed(0)} ms`;
  });
  const early = Math.min(...calm.late, ...flooded.late);
  if (early < -1) throw new Error(`a retry was ${-early} ms early`);
  return {
    metric: 'ms',
    redrive: percentile(flooded.late, 0.99),
    peers: { calm: percentile(calm.late, 0.99) },
    notes: [
      `calm, without low ones: ${alone}; with ${tasks} of them: ${flood}`,
      `${Math.round(flooded.lowPerSecond)} low retries per second were delivered meanwhile by the same process, ${flooded.lowLeft} were left at the end`,
      noiseNote(),
    ],
  };
}

/** Critical retries one after the other for so long, each due a moment after its report. */
async function driftOn(
  run: string,
  open: () => Ground,
  low: number,
  spanMs: number,
): Promise<Found> {
  // The flood is due before anybody consumes.
  const feeder = serviceOn(open(), { consume: false });
  await feeder.start();
  for (let first = 0; first < low; first += PAGE)
    await reportAll(feeder.service, run, 'low', first, Math.min(PAGE, low - first));
  await feeder.stop();

  const deliveredAtMs = new Map<string, number>();
  const lowDone: string[] = [];
  const consumer = serviceOn(open(), {
    deliver: async ({ notificationId, notification }) => {
      if (notification.priority === 'low') lowDone.push(notificationId);
      else deliveredAtMs.set(notificationId, Date.now());
    },
  });
  await consumer.start();
  if (low > 0) while (lowDone.length === 0) await sleep(LOOK_MS);
  const dueAtMs = new Map<string, number>();
  const [beganMs, lowBefore] = [performance.now(), lowDone.length];
  const reporting: Promise<void>[] = [];
  const note = (answers: Reported[]) => {
    for (const one of answers) dueAtMs.set(one.notificationId, one.dueAtMs);
  };
  for (let i = 0; performance.now() - beganMs < spanMs; i++) {
    reporting.push(reportAll(consumer.service, run, 'critical', i, 1).then(note));
    await sleep(CRITICAL_EVERY_MS);
  }
  const lowPerSecond = ((lowDone.length - lowBefore) * 1000) / (performance.now() - beganMs);
  const lowLeft = low - lowDone.length;
  await Promise.all(reporting);
  while (deliveredAtMs.size < dueAtMs.size) await sleep(LOOK_MS);
  await consumer.stop();
  const late = Array.from(dueAtMs, ([id, atMs]) => deliveredAtMs.get(id)! - atMs);
  return { late, lowPerSecond, lowLeft };
}

function serviceOn(ground: Ground, options: Partial<NotificationOptions>) {
  const { repository, queues } = ground;
  const fixed = { maxAttempts: 5, jitter: 'none' } as const;
  const service = createNotifications({
    repository,
    queues,
    deliver: async () => undefined,
    policies: {
      low: { ...fixed, base: 0, cap: 0 },
      critical: { ...fixed, base: CRITICAL_DELAY_MS, cap: CRITICAL_DELAY_MS },
    },
    ...options,
  });
  return {
    service,
    start: () => service.start(),
    stop: async () => {
      await service.stop();
      await ground.close();
    },
  };
}

interface Reported {
  notificationId: string;
  dueAtMs: number;
}

async function reportAll(
  service: Notifications,
  run: string,
  priority: 'critical' | 'low',
  first: number,
  count: number,
): Promise<Reported[]> {
  const ids = Array.from({ length: count }, (_, i) => `${priority}-${run}-${first + i}`);
  const notification = { title: 'Your taxi is here', body: 'It waits at the door.' };
  await service.createMany(
    ids.map((id) => ({ id, priority, notification, recipient: { userId: 'u' }, source: 'bench' })),
  );
  const answers = await service.reportFailures(
    ids.map((notificationId) => ({ notificationId, deviceId: 'd', attemptNumber: 1 })),
  );
  return answers.map((answer, i) => {
    if (!('decision' in answer) || answer.dueAtMs === undefined)
      throw new Error(`${ids[i]} was not scheduled`);
    return { notificationId: ids[i]!, dueAtMs: answer.dueAtMs };
  });
}
