/** A flood of low retries whose receiver does not answer, and critical ones that come in meanwhile. */
import { createService, readSettings } from '@redrive/server';
import { expect } from 'vitest';
import { type Delivered, Receiver } from './receiver.ts';

const CRITICAL = 40;
const PAGE = 500;
/** Longer than any test: only an answer of the receiver frees a slot of the bulk lane. */
const HELD_MS = 600_000;
const now = { base: 0, cap: 0, jitter: 'none', maxAttempts: 5 } as const;

/**
 * The receiver holds every low delivery. With as many in hand as the lane may have, all critical retries must be
 * delivered, twice each: their first retry fails.
 */
export async function flood(
  env: Readonly<Record<string, string>>,
  cwd: string,
  { low, concurrency }: { low: number; concurrency: number },
): Promise<{ critical: number; low: number }> {
  const released = Promise.withResolvers<number>();
  const isLow = ({ id }: Delivered) => id.startsWith('low');
  await using receiver = await Receiver.listen((one) =>
    isLow(one) ? released.promise : one.attempt < 3 ? 500 : 200,
  );
  const settings = {
    HTTP_PORT: '0',
    REDRIVE_LOG_LEVEL: 'fatal',
    NOTIFICATIONS: 'on',
    NOTIFICATION_DELIVERY: receiver.url,
    NOTIFICATION_CONCURRENCY: `${concurrency}`,
  };
  const reading = await readSettings({ env: { ...settings, ...env }, cwd });
  if (!reading.ok) throw new Error(JSON.stringify(reading.faults));
  const policies = { 'notification.low': now, 'notification.critical': now };
  const service = createService(
    { ...reading.settings, policies },
    { notificationTimes: { deliverTimeoutMs: HELD_MS } },
  );
  const { url } = await service.start();
  await service.ready;
  try {
    await report(url, 'low', low);
    const held = () => receiver.delivered.filter(isLow).length;
    while (held() < concurrency) await receiver.more(1, 60_000);
    await report(url, 'critical', CRITICAL);
    const done = () => receiver.delivered.filter((one) => !isLow(one) && one.attempt === 3).length;
    for (let before = -1; done() < CRITICAL && done() > before;) {
      before = done();
      await receiver.more(2 * CRITICAL, 5000);
    }
    return { critical: done(), low: held() };
  } finally {
    released.resolve(200);
    await service.stop();
  }
}

async function report(url: string, priority: string, count: number): Promise<void> {
  for (let first = 0; first < count; first += PAGE) {
    const ids = Array.from(
      { length: Math.min(PAGE, count - first) },
      (_, i) => `${priority}${first + i}`,
    );
    const notification = { title: 't', body: 'b' };
    const recipient = { user_id: 'u' };
    await post(`${url}/api/v1/notifications`, {
      items: ids.map((id) => ({ id, priority, notification, recipient })),
    });
    await post(`${url}/api/v1/notifications/failures`, {
      items: ids.map((id) => ({ notification_id: id, device_id: 'd', attempt_number: 1 })),
    });
  }
}

async function post(url: string, body: object): Promise<void> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  expect(await response.json()).toMatchObject({ rejected: [] });
}
