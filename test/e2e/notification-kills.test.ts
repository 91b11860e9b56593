/** Workers of both lanes are killed under load: nothing is lost, nothing is early, and a duplicate has a dead worker. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { NotificationRecord } from '@redrive/notifications';
import { describePostgres } from '@redrive/services/vitest';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BASE_MS, type Job, MAX_ATTEMPTS, serviceOn } from './notifications/parts.ts';

const NOTIFICATIONS = 60;
const KILLS = 5;
const devices = ['phone', 'tablet'];
const priorities = ['critical', 'high', 'medium', 'low'] as const;

interface Delivered {
  worker: string;
  id: string;
  deviceId: string;
  attempt: number;
  atMs: number;
}

let receiver: Server;
let url: string;
let delivered: Delivered[] = [];
/** Called with each delivery: when to kill. */
let onDelivery: () => void = () => undefined;

beforeEach(async () => {
  delivered = [];
  receiver = createServer((request, response) => {
    void text(request).then((body) => {
      const one = JSON.parse(body) as Omit<Delivered, 'atMs'>;
      delivered.push({ ...one, atMs: performance.now() });
      onDelivery();
      // Every fifth notification never works; the others work at their third attempt.
      const isHopeless = Number(one.id.slice(1)) % 5 === 0;
      response.writeHead(!isHopeless && one.attempt >= 3 ? 200 : 500).end();
    });
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
});
afterEach(() => {
  onDelivery = () => undefined;
  receiver.closeAllConnections();
  receiver.close();
});

class Workers {
  readonly dead = new Set<string>();
  readonly #job: Omit<Job, 'name'>;
  readonly #live = new Map<string, ChildProcess>();
  #count = 0;

  constructor(job: Omit<Job, 'name'>) {
    this.#job = job;
  }

  async start(): Promise<void> {
    const name = `w${this.#count++}`;
    const program = join(import.meta.dirname, 'notifications', 'worker.ts');
    const child = spawn(process.execPath, [program, JSON.stringify({ ...this.#job, name })], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#live.set(name, child);
    await once(child.stdout, 'data');
  }

  /** The oldest one, in the middle of whatever it does. */
  async kill(): Promise<void> {
    const [name, child] = [...this.#live][0]!;
    this.#live.delete(name);
    this.dead.add(name);
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  async killAll(): Promise<void> {
    while (this.#live.size > 0) await this.kill();
  }
}

/** Reports all, kills while they are delivered, and looks at what came of it. */
async function storm(database: Job['database']): Promise<string[]> {
  const job = { receiver: url, database };
  const workers = new Workers(job);
  const { service, close } = serviceOn({ ...job, name: 'test' }, async () => undefined, {
    consume: false,
  });
  await service.start();
  try {
    const ids = Array.from({ length: NOTIFICATIONS }, (_, i) => `n${i}`);
    await service.createMany(
      ids.map((id, i) => ({
        id,
        recipient: { userId: 'u' },
        priority: priorities[i % 4]!,
        notification: { title: 't', body: 'b' },
        source: 'test',
      })),
    );
    await Promise.all([workers.start(), workers.start()]);
    const reports = ids.flatMap((notificationId) =>
      devices.map((deviceId) => ({ notificationId, deviceId, attemptNumber: 1 })),
    );
    const reporting = service.reportFailures(reports);
    for (let kill = 1; kill <= KILLS; kill++) {
      await deliveries(delivered.length + 15);
      await workers.kill();
      await workers.start();
    }
    expect(
      (await reporting).every((answer) => 'decision' in answer && answer.decision === 'scheduled'),
    ).toBe(true);
    const records = await settled(ids, (id) => service.get(id));
    await workers.killAll();
    return account(records, workers.dead);
  } finally {
    await workers.killAll();
    await close();
  }
}

/** So many, or as many as there are when no more come for a while. */
async function deliveries(count: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const idle = setTimeout(resolve, 3000);
  onDelivery = () => {
    if (delivered.length >= count) resolve();
  };
  await promise;
  clearTimeout(idle);
}

async function settled(
  ids: readonly string[],
  get: (id: string) => Promise<NotificationRecord | undefined>,
) {
  for (;;) {
    const records = await Promise.all(ids.map(get));
    if (records.every((record) => record?.status === 'delivered' || record?.status === 'failed'))
      return records as NotificationRecord[];
    await deliveries(delivered.length + 1);
  }
}

function account(records: readonly NotificationRecord[], dead: ReadonlySet<string>): string[] {
  const faults: string[] = [];
  for (const { id, deliveries: all, retryCount } of records) {
    const isHopeless = Number(id.slice(1)) % 5 === 0;
    const last = isHopeless ? MAX_ATTEMPTS : 3;
    for (const deviceId of devices) {
      const { state, attempt } = all[deviceId]!;
      const wanted = isHopeless ? 'PermanentFailure' : 'DeliverySucceeded';
      if (state !== wanted || attempt !== last)
        faults.push(`${id} ${deviceId} is ${state}(${attempt})`);
      let beforeMs = 0;
      for (let n = 2; n <= last; n++) {
        const made = delivered.filter(
          (one) => one.id === id && one.deviceId === deviceId && one.attempt === n,
        );
        if (made.length === 0) faults.push(`${id} ${deviceId} ${n} was never delivered`);
        const unexplained = made.slice(0, -1).filter(({ worker }) => !dead.has(worker));
        if (unexplained.length > 0)
          faults.push(`${id} ${deviceId} ${n} was delivered ${made.length} times`);
        for (const { atMs } of made) {
          if (atMs - beforeMs < BASE_MS) faults.push(`${id} ${deviceId} ${n} was early`);
        }
        beforeMs = made.at(-1)?.atMs ?? beforeMs;
      }
      if (delivered.some((one) => one.id === id && one.deviceId === deviceId && one.attempt > last))
        faults.push(`${id} ${deviceId} went on`);
    }
    if (retryCount !== devices.length * (last - 1)) faults.push(`${id} counts ${retryCount}`);
  }
  return faults;
}

describe('workers that are killed', () => {
  test('on SQLite lose nothing', { timeout: 120_000 }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'redrive-notification-kills-'));
    try {
      expect(await storm({ sqlite: join(folder, 'redrive.db') })).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  describePostgres(({ freshDatabase }) => {
    test('on PostgreSQL lose nothing', { timeout: 120_000 }, async () => {
      await using database = await freshDatabase();
      expect(await storm({ postgres: database.url })).toEqual([]);
    });
  });
});
