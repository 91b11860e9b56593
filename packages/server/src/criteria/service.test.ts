/** Criteria of a whole service: with a real database that goes away and comes back, and with real receivers. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgres } from '@redrive/services';
import { describeService } from '@redrive/services/vitest';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createService, type Service } from '../service.ts';
import { readSettings } from '../settings/read.ts';

let cwd: string;
let log: string;
let services: Service[];
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'redrive-criteria-'));
  log = '';
  services = [];
});
afterEach(async () => {
  await Promise.all(services.map((service) => service.stop()));
  rmSync(cwd, { recursive: true, force: true });
});

async function startService(env: Record<string, string> = {}) {
  const reading = await readSettings({ env: { HTTP_PORT: '0', ...env }, cwd });
  if (!reading.ok) throw new Error(JSON.stringify(reading.faults));
  const service = createService(reading.settings, {
    logTo: { write: (text: string) => (log += text) },
  });
  services.push(service);
  const { url } = await service.start();
  const ask = async (path: string, body?: unknown) => {
    const response = await fetch(url + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: body === undefined ? {} : { 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, text: await response.text() };
  };
  const evaluate = (name: string, entity: unknown) => ask(`/api/v1/criteria/${name}`, { entity });
  const items = async () => {
    const { text } = await ask('/api/v1/review?reason=EVALUATION_FAILED');
    return (JSON.parse(text) as { items: { id: number; occurrences: number; state: string }[] })
      .items;
  };
  return { service, url, ask, evaluate, items };
}

const broken = { id: 'order-7' };
const AWAY = { DATABASE_URL: 'postgres://127.0.0.1:1/none' };

describe('the criteria of a service', () => {
  it('count, log, and become items that survive a restart and are replayed', async () => {
    const first = await startService();
    await first.service.ready;
    await first.evaluate('hasRetriesAvailable', { attemptCount: 1 });
    await first.evaluate('hasRetriesAvailable', { attemptCount: 9 });
    await first.evaluate('hasRetriesAvailable', broken);
    await first.evaluate('isRetryDelayElapsed', broken);
    const { text } = await first.ask('/metrics');
    expect(text).toContain(
      'criterion_evaluations_total{criterion="hasRetriesAvailable",result="match"} 1',
    );
    expect(text).toContain(
      'criterion_evaluations_total{criterion="hasRetriesAvailable",result="no_match"} 1',
    );
    expect(text).toContain(
      'criterion_evaluations_total{criterion="hasRetriesAvailable",result="error"} 1',
    );
    expect(text).toContain(
      'criterion_errors_total{criterion="isRetryDelayElapsed",code="DATA_UNAVAILABLE"} 1',
    );
    expect(text).toContain(
      'criterion_evaluation_duration_seconds_count{criterion="hasRetriesAvailable"} 3',
    );
    expect(text).toMatch(/^redrive_clock_skew_seconds 0$/m);
    expect(log).toMatch(/"audience":"operations".*"entity_id":"order-7"/);
    // What waits is written before the end.
    await first.service.stop();

    const second = await startService();
    await second.service.ready;
    const [item] = await second.items();
    expect(await second.items()).toHaveLength(2);
    const replayed = await second.ask(`/api/v1/review/${item!.id}/replay`, {
      payload: { id: 'order-7', attemptCount: 1, lastAttemptTime: '2020-01-01T00:00:00Z' },
    });
    expect(replayed.status).toBe(202);
    await expect
      .poll(async () => (await second.ask('/metrics')).text)
      .toContain('redrive_delivery_duration_seconds_count{kind="criterion",outcome="done"} 1');
    await expect.poll(async () => (await second.items()).filter(isOpen).length).toBe(1);
  });

  it('are answered before there is a store', async () => {
    const { evaluate, ask } = await startService(AWAY);
    expect((await evaluate('hasRetriesAvailable', { attemptCount: 1 })).status).toBe(200);
    expect((await evaluate('hasRetriesAvailable', broken)).status).toBe(200);
    expect((await ask('/metrics')).text).toContain('criterion_review_waiting 1');
  });

  it('tell the webhook of a route', async () => {
    const told = Promise.withResolvers<Record<string, unknown>>();
    const receiver = createServer((request, response) => {
      let text = '';
      request.on('data', (bytes: Buffer) => (text += bytes.toString()));
      request.on('end', () => {
        told.resolve(JSON.parse(text) as Record<string, unknown>);
        response.end();
      });
    });
    await once(receiver.listen(0, '127.0.0.1'), 'listening');
    try {
      const { port } = receiver.address() as AddressInfo;
      const { service, evaluate } = await startService({
        CRITERION_OPERATIONS_WEBHOOK: `http://127.0.0.1:${port}/ops`,
      });
      await service.ready;
      await evaluate('isRetryDelayElapsed', { id: 'order-7', lastAttemptTime: 'never' });
      expect(await told.promise).toMatchObject({
        event: 'criterion_errors',
        audience: 'operations',
        criterion: 'isRetryDelayElapsed',
        code: 'INVALID_TIME',
        count: 1,
        entity_id: 'order-7',
      });
    } finally {
      receiver.closeAllConnections();
      receiver.close();
    }
  });
});

function isOpen({ state }: { state: string }): boolean {
  return state === 'open';
}

describeService('PostgreSQL 18', () => {
  it('takes items of any characters', async () => {
    await using server = await startPostgres({ version: 18 });
    const { service, ask, items } = await startService({ DATABASE_URL: server.url });
    await service.ready;
    const odd = 'a\u0000b\ud800c';
    const path = '/api/v1/criteria/isRetryDelayElapsed';
    const bodies = [
      { entity: {}, entity_id: odd },
      { entity: { id: `${odd}2` } },
      { entity: { id: 'x', [odd]: odd, lastAttemptTime: odd } },
      { entity: { id: 'y' }, context: odd },
      { entity: { id: 'z' }, settings: { context: odd, sets: { [odd]: {} } } },
      { entity: { id: 'long' }, entity_id: 'é'.repeat(512) },
      { entity: { id: 'plain' } },
    ];
    for (const body of bodies) expect((await ask(path, body)).status).toBe(200);
    await expect.poll(async () => (await items()).length, { timeout: 10_000 }).toBe(bodies.length);
    for (const { id } of await items()) {
      expect((await ask(`/api/v1/review/${id}/replay`, {})).status).toBe(202);
    }
    await expect
      .poll(async () => (await items()).filter(isOpen).length, { timeout: 10_000 })
      .toBe(bodies.length);
    await service.stop();
  }, 60_000);

  it('does not delay evaluations while it is away, and takes their items when it is back', async () => {
    await using server = await startPostgres({ version: 18 });
    const { service, evaluate, items } = await startService({ DATABASE_URL: server.url });
    await service.ready;
    await server.kill9();
    for (let i = 0; i < 50; i++) {
      const { status, text } = await evaluate('hasRetriesAvailable', { id: `e-${i}` });
      expect([status, JSON.parse(text)]).toMatchObject([200, { matches: false }]);
    }
    await expect.poll(() => log).toContain('failed evaluations wait for the store');
    await evaluate('hasRetriesAvailable', { id: 'e-0' });
    await server.start();
    await expect
      .poll(async () => (await items().catch(() => [])).length, { timeout: 30_000 })
      .toBe(50);
    await service.stop();
  }, 60_000);
});
