import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Msg } from '@nats-io/transport-node';
import { type NatsServer, startNats } from '@redrive/services';
import { describeService, natsClient, type NatsClient } from '@redrive/services/vitest';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { pino } from 'pino';
import { systemClock } from 'redrive/internal';
import { createService, type Service } from '../../service.ts';
import { readSettings } from '../../settings/read.ts';
import type { Routing } from '../index.ts';
import { createRouteResponder } from './responder.ts';

const soon = { timeout: 25_000, interval: 10 };
const policy = {
  version: '1.0',
  providers: [
    { name: 'primary', weight: 100 },
    { name: 'backup', weight: 0 },
  ],
  fallbacks: [{ when: { status: ['5xx'] }, to: 'backup', retry: 0 }],
  circuit_breaker: { enabled: true, failure_threshold: 2, timeout_ms: 60_000 },
};

describeService('NATS 2.15', () => {
  let server: NatsServer;
  let client: NatsClient;
  const services: Service[] = [];
  const homes: string[] = [];
  beforeAll(async () => {
    server = await startNats();
    client = await natsClient(server.url);
  });
  afterEach(async () => {
    await Promise.all(services.splice(0).map((service) => service.stop()));
    for (const home of homes.splice(0)) rmSync(home, { recursive: true, force: true });
  });
  afterAll(async () => {
    await client.close();
    await server.stop();
  });

  /** A service with the policy `llm`. */
  async function started(env: Record<string, string> = {}) {
    const home = mkdtempSync(join(tmpdir(), 'redrive-route-nats-'));
    homes.push(home);
    writeFileSync(join(home, 'llm.json'), JSON.stringify(policy));
    const reading = await readSettings({
      env: {
        NATS_URL: server.url,
        ROUTING_DIR: home,
        HTTP_PORT: '0',
        REDRIVE_DATA_DIR: home,
        REDRIVE_LOG_LEVEL: 'silent',
        ...env,
      },
      cwd: home,
    });
    if (!reading.ok) throw new Error(JSON.stringify(reading.faults));
    const service = createService(reading.settings);
    services.push(service);
    const { url } = await service.start();
    return { url, service };
  }

  /** Until somebody answers. */
  async function served(subject = 'redrive.route.decide'): Promise<void> {
    await vi.waitFor(() => client.connection.request(subject, '', { timeout: 2000 }), soon);
  }

  async function ask(subject: string, body: unknown, timeout = 10_000) {
    const bytes = typeof body === 'string' || body instanceof Uint8Array ? body : encode(body);
    return read(await client.connection.request(subject, bytes, { timeout }));
  }

  const encode = (body: unknown) => JSON.stringify(body);
  const read = (message: Msg) => ({
    status: Number(message.headers?.get('Redrive-Status')),
    type: message.headers?.get('Content-Type'),
    body: message.json<Record<string, unknown>>(),
  });

  async function post(url: string, path: string, body: unknown) {
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${url}${path}`, { method: 'POST', headers, body: encode(body) });
    const type = answer.headers.get('content-type');
    return { status: answer.status, type, body: (await answer.json()) as Record<string, unknown> };
  }

  it('answers what the HTTP API answers', async () => {
    const { url } = await started();
    await served();
    for (const body of [
      { policy_id: 'llm', context: { request_id: 'r1' }, seed: 7 },
      {
        policy_id: 'llm',
        context: { request_id: 'r2', current_provider: 'primary', status: '503' },
        seed: 7,
      },
      { policy, context: { request_id: 'r1' }, seed: 7, detail_level: 'verbose' },
      { policy_id: 'lln', context: {} },
      { policy_id: 'llm', context: {}, sead: 7 },
      { policy_id: 'llm' },
      { context: {} },
      { policy: { version: 'x' }, context: {} },
      [],
    ]) {
      const answer = await ask('redrive.route.decide', body);
      const asked = await post(url, '/api/v1/route/decide', body);
      const type = asked.type?.replace('application/json; charset=utf-8', 'application/json');
      expect(answer).toEqual({ ...asked, type });
    }
    const decided = await ask('redrive.route.decide', {
      policy_id: 'llm',
      context: { request_id: 'r1' },
    });
    expect(decided).toMatchObject({ status: 200, body: { result: 'ok', provider: 'primary' } });
  });

  it('takes outcomes, with which it decides then', async () => {
    const { url } = await started();
    await served();
    const outcome = { policy_id: 'llm', provider: 'primary', status: 503 };
    const first = await ask('redrive.route.outcome', outcome);
    expect(first).toMatchObject({ status: 200, body: { provider: 'primary', state: 'closed' } });
    // Nobody has to wait for the answer.
    client.connection.publish('redrive.route.outcome', encode(outcome));
    await vi.waitFor(async () => {
      const answer = await fetch(`${url}/api/v1/route/providers?policy_id=llm`);
      expect(await answer.json()).toMatchObject({
        items: [{ provider: 'primary', state: 'open' }, { provider: 'backup' }],
      });
    }, soon);
    const unknown = await ask('redrive.route.outcome', { ...outcome, provider: 'nobody' });
    expect(unknown).toMatchObject({ status: 400, body: { code: 'UNKNOWN_PROVIDER' } });
  });

  it('answers whatever is sent, and goes on', async () => {
    await started({ REDRIVE_MAX_REQUEST_BYTES: '65536', REDRIVE_MAX_PAYLOAD_BYTES: '1000' });
    await served();
    const subject = 'redrive.route.decide';
    for (const [sent, status, code] of [
      ['', 400, 'INVALID_REQUEST'],
      ['null', 400, 'INVALID_REQUEST'],
      ['{"policy_id":', 400, 'INVALID_JSON'],
      [Buffer.from([0xff, 0xfe, 0]), 400, 'INVALID_JSON'],
      ['['.repeat(5000), 400, 'JSON_TOO_DEEP'],
      ['x'.repeat(65_537), 413, 'BODY_TOO_LARGE'],
      ['{"__proto__":{"policy_id":"llm"},"context":{}}', 400, 'INVALID_REQUEST'],
    ] as const) {
      const answer = await ask(subject, sent);
      expect(answer).toMatchObject({ status, body: { status, code } });
    }
    expect(await ask(subject, { policy_id: 'llm', context: {} })).toMatchObject({ status: 200 });
  });

  it('shares requests among instances: each is answered once', async () => {
    await Promise.all([
      started({ NATS_ROUTING_SUBJECT: 'shared.route' }),
      started({ NATS_ROUTING_SUBJECT: 'shared.route' }),
    ]);
    const subject = 'shared.route.decide';
    await served(subject);
    const body = encode({ policy_id: 'llm', context: {} });
    const inbox = client.name();
    const answers: Msg[] = [];
    client.connection.subscribe(inbox, { callback: (_, message) => void answers.push(message) });
    for (let i = 0; i < 200; i++) client.connection.publish(subject, body, { reply: inbox });
    await vi.waitFor(() => expect(answers.length).toBe(200), soon);
    // One that stops answers what it has, and the other one goes on.
    for (let i = 0; i < 200; i++) client.connection.publish(subject, body, { reply: inbox });
    await client.connection.flush();
    await services[0]!.stop();
    for (let i = 0; i < 100; i++) client.connection.publish(subject, body, { reply: inbox });
    await vi.waitFor(() => expect(answers.length).toBe(500), soon);
    await client.connection.flush();
    expect(answers.length).toBe(500);
    expect(answers.every((one) => one.headers?.get('Redrive-Status') === '200')).toBe(true);
  });

  it('serves nothing before the service is ready, nor where it is off', async () => {
    const subjects = { NATS_ROUTING_SUBJECT: 'early.route' };
    await started({ ...subjects, NATS_ROUTING: 'off' });
    await started({ ...subjects, DATABASE_URL: 'postgres://nobody@127.0.0.1:1/nothing' });
    const asking = ask('early.route.decide', { policy_id: 'llm', context: {} }, 1000);
    await expect(asking).rejects.toThrow(/no responders/i);
    await services[0]!.ready;
    const again = ask('early.route.decide', { policy_id: 'llm', context: {} }, 1000);
    await expect(again).rejects.toThrow(/no responders/i);
  });

  it('refuses more than it may have under way, and answers what it has before it ends', async () => {
    const reading = await readSettings({
      env: { NATS_URL: server.url, NATS_ROUTING_SUBJECT: 'busy.route' },
      cwd: tmpdir(),
    });
    if (!reading.ok) throw new Error(JSON.stringify(reading.faults));
    const held = Promise.withResolvers<never>();
    const router = { decide: () => held.promise };
    const responder = createRouteResponder({
      settings: reading.settings,
      name: 'busy',
      routing: { routers: { get: () => router } } as unknown as Routing,
      log: pino({ level: 'silent' }),
      clock: systemClock,
      maxUnderWay: 2,
    });
    responder.start();
    const subject = 'busy.route.decide';
    await served(subject);
    const body = { policy_id: 'llm', context: {} };
    const waiting = [ask(subject, body), ask(subject, body)];
    expect(await ask(subject, body)).toMatchObject({
      status: 503,
      body: { code: 'ROUTING_BUSY' },
    });
    let hasStopped = false;
    const stopping = responder.stop().then(() => (hasStopped = true));
    await vi.waitFor(async () => {
      await expect(ask(subject, body, 1000)).rejects.toThrow(/no responders/i);
    }, soon);
    // It would have been over by now.
    for (let i = 0; i < 100; i++) await client.connection.flush();
    expect(hasStopped).toBe(false);
    held.reject(new Error('unforeseen'));
    for (const answer of await Promise.all(waiting)) {
      expect(answer).toMatchObject({ status: 500, body: { code: 'INTERNAL' } });
    }
    await stopping;
  });

  it('says that it is not served while NATS is away, and is served when NATS is back', async () => {
    await using other = await startNats();
    await other.kill();
    const { url } = await started({ NATS_URL: other.url });
    await vi.waitFor(async () => {
      const answer = await fetch(`${url}/health/ready`);
      expect(JSON.stringify(await answer.json())).toContain('Routing over NATS is not served');
    }, soon);
    await other.start();
    await using direct = await natsClient(other.url);
    const asked = () =>
      direct.connection.request('redrive.route.decide', encode({ policy_id: 'llm', context: {} }));
    await vi.waitFor(asked, soon);
    // And again after the connection was lost.
    await other.kill();
    await other.start();
    await vi.waitFor(asked, soon);
    await vi.waitFor(async () => {
      const answer = await fetch(`${url}/health/ready`);
      expect(JSON.stringify(await answer.json())).not.toContain('Routing over NATS is not served');
    }, soon);
  });
});
