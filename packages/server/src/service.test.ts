import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sqlite } from '@redrive/engine/sqlite';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createService, type Service } from './service.ts';
import { readSettings } from './settings/read.ts';
import type { Settings } from './settings/settings.ts';

let cwd: string;
let log: string;
let services: Service[];
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'redrive-service-'));
  log = '';
  services = [];
});
afterEach(async () => {
  await Promise.all(services.map((service) => service.stop()));
  rmSync(cwd, { recursive: true, force: true });
});

async function settingsOf(
  env: Record<string, string> = {},
  more: Partial<Settings> = {},
): Promise<Settings> {
  const reading = await readSettings({ env: { HTTP_PORT: '0', ...env }, cwd });
  if (!reading.ok) throw new Error(JSON.stringify(reading.faults));
  return { ...reading.settings, ...more };
}

async function serviceOf(
  env: Record<string, string> = {},
  more: Partial<Settings> = {},
): Promise<Service> {
  const logTo = { write: (text: string) => (log += text) };
  const service = createService(await settingsOf(env, more), { logTo });
  services.push(service);
  return service;
}

/** Port 1 is nobody's. */
const AWAY = { DATABASE_URL: 'postgres://127.0.0.1:1/none' };

describe('a service', () => {
  it('listens, is ready, delivers, and stops', async () => {
    const received = Promise.withResolvers<string | undefined>();
    const target = createServer((request, response) => {
      received.resolve(request.headers['idempotency-key'] as string | undefined);
      response.end();
    }).listen(0, '127.0.0.1');
    try {
      const service = await serviceOf();
      const { url } = await service.start();
      expect(await service.ready).toBe(true);
      const { port } = target.address() as AddressInfo;
      const response = await fetch(`${url}/api/v1/retries`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ destination: `http://127.0.0.1:${port}/`, payload: 1 }),
      });
      expect(response.status).toBe(202);
      await received.promise;
      expect(await service.start()).toEqual({ url });
      await service.stop();
      await service.stop();
      await expect(fetch(url)).rejects.toThrow('fetch failed');
      expect(log).toContain('"msg":"stopped"');
    } finally {
      target.closeAllConnections();
      target.close();
    }
  });

  it('delivers to loopback, and elsewhere only where that is allowed', async () => {
    const statuses: number[] = [];
    for (const allow of ['loopback', '192.0.2.0/24', 'public']) {
      const service = await serviceOf({ REDRIVE_HTTP_ALLOW: allow });
      const { url } = await service.start();
      await service.ready;
      for (const host of ['127.0.0.1:1', '192.0.2.1', '8.8.8.8', '169.254.169.254']) {
        const dueAt = new Date(Date.now() + 3_600_000).toISOString();
        const response = await fetch(`${url}/api/v1/retries`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ destination: `http://${host}/`, payload: 1, due_at: dueAt }),
        });
        statuses.push(response.status);
      }
    }
    expect(statuses.join(' ')).toBe('202 400 400 400 202 202 400 400 202 400 202 400');
  });

  it('gives the same response to an Idempotency-Key after a restart', async () => {
    const post = async (url: string, action: string, key?: string) => {
      const headers = key === undefined ? {} : { 'idempotency-key': key };
      return fetch(`${url}/api/v1/lanes/queue:orders/${action}`, { method: 'POST', headers });
    };
    const first = await serviceOf();
    const { url } = await first.start();
    await first.ready;
    const paused = await post(url, 'pause', 'k-1');
    expect([paused.status, paused.headers.has('idempotency-replayed')]).toEqual([200, false]);
    await post(url, 'resume');
    await first.stop();

    const second = await serviceOf();
    const { url: newUrl } = await second.start();
    await second.ready;
    const again = await post(newUrl, 'pause', 'k-1');
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([200, 'true']);
    expect(await again.text()).toBe(await paused.text());
    const lanes = await fetch(`${newUrl}/api/v1/lanes`);
    expect(await lanes.text()).not.toContain('"paused":true');
    expect(log).not.toContain('"level":"error"');
  });

  it('keeps its folder to itself', async () => {
    const service = await serviceOf();
    await service.start();
    expect(statSync(join(cwd, 'redrive-data')).mode & 0o777).toBe(0o700);
  });

  it('answers while its store is away, and can be stopped', async () => {
    const service = await serviceOf(AWAY);
    const { url } = await service.start();
    const response = await fetch(`${url}/health/ready`);
    expect(response.status).toBe(503);
    await service.stop();
    expect(await service.ready).toBe(false);
    expect(log).toContain('not ready yet, trying again');
  });

  it('that was stopped does not start', async () => {
    const service = await serviceOf();
    await service.stop();
    await expect(service.start()).rejects.toMatchObject({ code: 'SERVICE_STOPPED' });
  });

  it('does not start where it cannot listen or keep anything', async () => {
    const first = await serviceOf();
    const { url } = await first.start();
    const second = await serviceOf({ HTTP_PORT: new URL(url).port });
    await expect(second.start()).rejects.toMatchObject({ code: 'EADDRINUSE' });
    writeFileSync(join(cwd, 'file'), '');
    const third = await serviceOf({ REDRIVE_DATA_DIR: './file/x' });
    await expect(third.start()).rejects.toMatchObject({ code: 'DATA_DIR_UNUSABLE' });
  });

  it('gives up where no waiting helps', async () => {
    const data = join(cwd, 'redrive-data');
    const store = sqlite(join(data, 'redrive.db'));
    await store.open();
    await store.close();
    writeFileSync(join(data, 'redrive.db'), 'this is no database, and never will be one');
    const service = await serviceOf();
    await service.start();
    await expect(service.ready).rejects.toMatchObject({ code: 'STORE_CORRUPT' });
  });

  it('takes in and answers, and delivers nothing, with one part of the work', async () => {
    const service = await serviceOf({}, { only: 'api' });
    await service.start();
    expect(await service.ready).toBe(true);
  });

  it('comes up without its broker, and says so', async () => {
    const service = await serviceOf({
      RABBITMQ_URL: 'amqp://me:hush@127.0.0.1:1',
      DEAD_LETTER_EXCHANGE: 'dlx',
    });
    const { url } = await service.start();
    expect(await service.ready).toBe(true);
    const response = await fetch(`${url}/health/ready`);
    expect(response.status).toBe(503);
    expect(await response.text()).toContain('"name":"broker","ok":false');
    await vi.waitFor(() => expect(log).toContain('not ready yet: waiting for broker'), {
      timeout: 20_000,
    });
    expect(log).not.toContain('"msg":"ready"');
    expect(log).not.toContain('hush');
  });
});
