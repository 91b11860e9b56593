/** The whole service on PostgreSQL, on a machine whose clock is wrong. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describePostgres } from '@redrive/services/vitest';
import { systemClock } from 'redrive/internal';
import { expect, it } from 'vitest';
import { textAt } from '../http/harness.test.ts';
import { createService } from '../service.ts';
import { readSettings } from '../settings/read.ts';

const AHEAD_MS = 300_000;

describePostgres(({ freshDatabase }) => {
  it('notifications have the times of the database', async () => {
    await using database = await freshDatabase();
    const cwd = mkdtempSync(join(tmpdir(), 'redrive-store-clock-'));
    const env = {
      HTTP_PORT: '0',
      REDRIVE_LOG_LEVEL: 'silent',
      NOTIFICATIONS: 'on',
      DATABASE_URL: database.url,
    };
    const reading = await readSettings({ env, cwd });
    if (!reading.ok) throw new Error(JSON.stringify(reading.faults));
    const clock = { ...systemClock, now: () => systemClock.now() + AHEAD_MS };
    const service = createService(reading.settings, { clock });
    try {
      const { url } = await service.start();
      await service.ready;
      const response = await fetch(`${url}/api/v1/notifications`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          recipient: { user_id: 'u1' },
          priority: 'high',
          notification: { title: 'Hello', body: 'World' },
          source: 'test',
        }),
      });
      const createdAt = Date.parse(textAt(await response.json(), 'created_at'));
      expect(Math.abs(createdAt - Date.now())).toBeLessThan(AHEAD_MS / 2);
    } finally {
      await service.stop();
      rmSync(cwd, { recursive: true, force: true });
    }
  });
});
