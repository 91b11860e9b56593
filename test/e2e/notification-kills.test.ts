/** Workers of both lanes are killed under load: nothing is lost, nothing is early, and a duplicate was in hand at a kill. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describePostgres } from '@redrive/services/vitest';
import { describe, expect, test } from 'vitest';
import {
  account,
  devices,
  InHand,
  newNotifications,
  settled,
  statusFor,
} from './notifications/account.ts';
import { type Job, serviceOn } from './notifications/parts.ts';
import { Processes } from './notifications/processes.ts';
import { Receiver } from './notifications/receiver.ts';

const KILLS = 5;

/** Reports all, kills while they are delivered, and looks at what came of it. */
async function storm(database: Job['database']): Promise<string[]> {
  await using receiver = await Receiver.listen(statusFor);
  const job = { receiver: receiver.url, database };
  await using workers = new Processes('worker.ts', (name) => ({ ...job, name }));
  const { service, close } = serviceOn({ ...job, name: 'test' }, async () => undefined, {
    consume: false,
  });
  await service.start();
  try {
    const created = newNotifications(60);
    const ids = created.map(({ id }) => id);
    await service.createMany(created);
    await Promise.all([workers.start(), workers.start()]);
    const reports = ids.flatMap((notificationId) =>
      devices.map((deviceId) => ({ notificationId, deviceId, attemptNumber: 1 })),
    );
    const inHand = new InHand(() => Promise.all(ids.map((id) => service.get(id))));
    const reporting = service.reportFailures(reports);
    for (let kill = 1; kill <= KILLS; kill++) {
      await receiver.more(15);
      await inHand.note(await workers.kill());
      await workers.start();
    }
    expect(
      (await reporting).every((answer) => 'decision' in answer && answer.decision === 'scheduled'),
    ).toBe(true);
    const records = await settled(receiver, inHand.read);
    return account(records, receiver.delivered, (one) => inHand.has(one));
  } finally {
    await close();
  }
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
