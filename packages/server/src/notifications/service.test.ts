/** The whole service with NOTIFICATIONS=on, on SQLite alone. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { at, listAt, textAt } from '../http/harness.test.ts';
import { createService, type Service } from '../service.ts';
import { readSettings } from '../settings/read.ts';

let cwd: string;
let services: Service[] = [];
let receiver: Server;
let receiverUrl: string;
let received: { body: unknown; headers: NodeJS.Dict<string | string[]> }[] = [];
/** What the receiver answers next; 204 unless given. */
let answers: { status: number; body?: unknown }[] = [];

beforeEach(async () => {
  cwd = mkdtempSync(join(tmpdir(), 'redrive-notifications-'));
  received = [];
  answers = [];
  receiver = createServer((request, response) => {
    let text = '';
    request.on('data', (part: Buffer) => (text += part.toString()));
    request.on('end', () => {
      received.push({ body: JSON.parse(text), headers: request.headers });
      const { status, body } = answers.shift() ?? { status: 204 };
      response.writeHead(status).end(body === undefined ? undefined : JSON.stringify(body));
    });
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  receiverUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/deliver`;
});
afterEach(async () => {
  for (const service of services) await service.stop();
  services = [];
  receiver.close();
  rmSync(cwd, { recursive: true, force: true });
});

const fast = {
  'notification.critical': { base: '50ms', cap: '50ms', maxAttempts: 3 },
  'notification.low': { base: '300ms', cap: '300ms', maxAttempts: 3 },
} as const;

async function started(env: Record<string, string> = {}) {
  const reading = await readSettings({
    env: {
      HTTP_PORT: '0',
      REDRIVE_LOG_LEVEL: 'silent',
      NOTIFICATIONS: 'on',
      NOTIFICATION_DELIVERY: receiverUrl,
      ...env,
    },
    cwd,
  });
  if (!reading.ok) throw new Error(JSON.stringify(reading.faults));
  const service = createService({ ...reading.settings, policies: fast });
  services.push(service);
  const { url } = await service.start();
  await service.ready;
  return async (path: string, body?: unknown): Promise<{ status: number; body: unknown }> => {
    const response = await fetch(url + path, {
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
      headers: { 'content-type': 'application/json' },
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json');
    return { status: response.status, body: isJson ? (JSON.parse(text) as unknown) : text };
  };
}

const item = (more: object = {}) => ({
  id: 'n1',
  recipient: { user_id: 'u1', device_ids: ['phone'] },
  priority: 'critical',
  notification: { title: 'Hello', body: 'World' },
  source: 'test',
  ...more,
});
const failure = (attempt_number = 1, more: object = {}) => ({
  device_id: 'phone',
  attempt_number,
  ...more,
});

describe('notifications on SQLite alone', () => {
  it('are created, reported, retried at their time and delivered', async () => {
    const ask = await started();
    expect(await ask('/api/v1/notifications', item())).toMatchObject({
      status: 201,
      body: { id: 'n1', status: 'pending', retry_count: 0, ttl: 86_400 },
    });
    const report = await ask('/api/v1/notifications/n1/failures', failure(1, { error_code: 'E' }));
    expect(report).toMatchObject({
      status: 200,
      body: { decision: 'scheduled', lane: 'urgent', retry_count: 1, status: 'retrying' },
    });
    expect(textAt(report.body, 'explanation')).toContain('Attempt 1 of 3 failed (E, unknown)');
    await vi.waitFor(
      async () => {
        expect((await ask('/api/v1/notifications/n1')).body).toMatchObject({ status: 'delivered' });
      },
      { timeout: 20_000 },
    );
    expect(received).toMatchObject([
      {
        body: {
          notification_id: 'n1',
          device_id: 'phone',
          attempt_number: 2,
          collapse_key: 'n1:phone',
          notification: { title: 'Hello' },
        },
      },
    ]);
    const status = await ask('/api/v1/notifications/n1/status');
    expect(status.body).toMatchObject({
      status: 'delivered',
      retry_count: 1,
      deliveries: [{ device_id: 'phone', state: 'DeliverySucceeded', attempt_number: 2 }],
      attempts: [
        { attempt_number: 1, status: 'failed', error_code: 'E' },
        { attempt_number: 2, status: 'delivered' },
      ],
      next_cursor: null,
    });
    const metrics = textAt((await ask('/metrics')).body);
    expect(metrics).toContain(
      'notification_retries_scheduled_total{priority="critical",lane="urgent"} 1',
    );
    expect(metrics).toContain('notification_deliveries_total{status="delivered"} 1');
    expect(metrics).toContain('notification_deliveries_total{status="failed"} 1');
  });

  it('that fail for good lie in the inbox, and a replay schedules them again', async () => {
    const ask = await started();
    await ask('/api/v1/notifications', item());
    answers.push({
      status: 500,
      body: { error_code: 'Unregistered', platform_response: { platform: 'apns', status: 410 } },
    });
    await ask('/api/v1/notifications/n1/failures', failure());
    const open = async () => listAt((await ask('/api/v1/review?reason=DEAD_TOKEN')).body, 'items');
    await vi.waitFor(async () => expect(await open()).toHaveLength(1), { timeout: 20_000 });
    const [found] = await open();
    expect(found).toMatchObject({ lane: 'notification:critical', error: { code: 'Unregistered' } });
    expect((await ask('/api/v1/notifications/n1')).body).toMatchObject({
      status: 'failed',
      deliveries: [{ state: 'PermanentFailure', reason: 'DEAD_TOKEN', attempt_number: 2 }],
    });
    const id = textAt(found, 'id');
    expect((await ask(`/api/v1/review/${id}/replay`, {})).status).toBeLessThan(300);
    await vi.waitFor(
      async () => {
        expect((await ask('/api/v1/notifications/n1')).body).toMatchObject({ status: 'delivered' });
      },
      { timeout: 20_000 },
    );
    // Attempt numbers go on.
    expect(received.map(({ body }) => at(body, 'attempt_number'))).toEqual([2, 3]);
    const metrics = textAt((await ask('/metrics')).body);
    expect(metrics).toContain('notification_permanent_failures_total{priority="critical"} 1');
  });

  it('outlive a restart: what waited is delivered afterwards', async () => {
    const ask = await started({ NOTIFICATION_DELIVERY: 'http://127.0.0.1:9/nobody' });
    await ask('/api/v1/notifications', item());
    await ask('/api/v1/notifications/n1/failures', failure());
    await vi.waitFor(
      async () => {
        const { body } = await ask('/metrics');
        expect(body).toContain(
          'redrive_notification_postponed_total{lane="urgent",reason="not_sent"}',
        );
      },
      { timeout: 20_000 },
    );
    await services.pop()!.stop();
    const again = await started();
    await vi.waitFor(
      async () =>
        expect((await again('/api/v1/notifications/n1')).body).toMatchObject({
          status: 'delivered',
        }),
      { timeout: 25_000 },
    );
    // Nobody was there at first, so no attempt was spent.
    expect(received.map(({ body }) => at(body, 'attempt_number'))).toEqual([2]);
  }, 60_000);

  it('are off unless switched on', async () => {
    const ask = await started({ NOTIFICATIONS: 'off' });
    expect(await ask('/api/v1/notifications', item())).toMatchObject({
      status: 404,
      body: { code: 'NOTIFICATIONS_OFF' },
    });
  });

  it('warn in /health/ready where nobody says where retries go', async () => {
    const ask = await started({ NOTIFICATION_DELIVERY: '' });
    const { body } = await ask('/health/ready');
    expect(listAt(body, 'checks')).toContainEqual({
      name: 'notifications',
      ok: true,
      detail: 'NOTIFICATION_DELIVERY is not set: due retries wait until you set it.',
    });
  });

  it('lie in the inbox also where their content is too large for it, and can be replayed', async () => {
    const ask = await started({ REDRIVE_MAX_PAYLOAD_BYTES: '2048' });
    await ask('/api/v1/notifications', item({ data: { text: 'x'.repeat(10_000) } }));
    const refused = failure(1, { platform_response: { status: 413 } });
    expect((await ask('/api/v1/notifications/n1/failures', refused)).body).toMatchObject({
      decision: 'failed',
    });
    const open = async () => listAt((await ask('/api/v1/review')).body, 'items');
    await vi.waitFor(async () => expect(await open()).toHaveLength(1));
    await ask(`/api/v1/review/${textAt((await open())[0], 'id')}/replay`, {});
    await vi.waitFor(() => expect(received).toHaveLength(1));
    expect(received[0]).toMatchObject({ body: { notification_id: 'n1', attempt_number: 2 } });
  });

  it('wait while an operator has paused their lane, also after a restart', async () => {
    const first = await started();
    const urgent = { lane: 'notification:urgent', state: 'closed' };
    const bulk = { lane: 'notification:bulk', state: 'closed' };
    expect((await first('/api/v1/lanes')).body).toMatchObject({ items: [bulk, urgent] });
    const paused = await first('/api/v1/lanes/notification:urgent/pause', {});
    expect(paused).toMatchObject({ status: 200, body: { known: true } });
    const ask = await started();
    await ask('/api/v1/notifications', item());
    await ask('/api/v1/notifications/n1/failures', failure());
    expect((await ask('/api/v1/retries')).body).toMatchObject({ items: [] });
    await services[0]!.stop();
    const { body } = await ask('/api/v1/lanes?state=paused');
    expect(body).toMatchObject({ items: [{ ...urgent, state: 'paused' }] });
    // One of the other lane, which is due later, is delivered meanwhile.
    await ask('/api/v1/notifications', item({ id: 'n2', priority: 'low' }));
    await ask('/api/v1/notifications/n2/failures', failure());
    await vi.waitFor(() => expect(received).not.toEqual([]));
    expect(received).toMatchObject([{ body: { notification_id: 'n2' } }]);
    await ask('/api/v1/lanes/notification:urgent/resume', {});
    await vi.waitFor(() => expect(received).toHaveLength(2));
  });
});
