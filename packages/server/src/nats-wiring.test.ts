import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { AckPolicy, type JsMsg, jetstream } from '@nats-io/jetstream';
import { type NatsServer, startNats } from '@redrive/services';
import { describeService, natsClient, type NatsClient } from '@redrive/services/vitest';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createService, type Service } from './service.ts';
import { databaseFile } from './settings/data-dir.ts';
import { readSettings } from './settings/read.ts';
import { examineNats } from './upkeep/doctor-nats.ts';

const soon = { timeout: 25_000, interval: 10 };

describeService('NATS 2.15', () => {
  let server: NatsServer;
  let client: NatsClient;
  let service: Service;
  let url: string;
  let home: string;
  beforeAll(async () => {
    // One of its own: another service on the same server would take in its messages.
    server = await startNats();
    client = await natsClient(server.url);
    await client.manager.streams.add({ name: 'ORDERS', subjects: ['orders.*'] });
    home = mkdtempSync(join(tmpdir(), 'redrive-nats-'));
    service = createService(await settings());
    ({ url } = await service.start());
    await vi.waitFor(async () => {
      const { ok } = await fetch(`${url}/health/ready`);
      if (!ok) throw new Error('It is not ready yet.');
    }, soon);
  });
  afterAll(async () => {
    await service.stop();
    await client.close();
    await server.stop();
    rmSync(home, { recursive: true, force: true });
  });

  async function settings(env: Record<string, string> = {}) {
    const reading = await readSettings({
      env: {
        NATS_URL: server.url,
        NATS_DEAD_LETTER_STREAMS: 'ORDERS',
        BASE_DELAY_MS: '10',
        MAX_DELAY_MS: '10',
        DEFAULT_MAX_RETRIES: '2',
        HTTP_PORT: '0',
        REDRIVE_DATA_DIR: home,
        REDRIVE_LOG_LEVEL: 'silent',
        ...env,
      },
      cwd: home,
    });
    if (!reading.ok) throw new Error(JSON.stringify(reading.faults));
    return reading.settings;
  }

  async function api(path: string, body?: object): Promise<Record<string, unknown>> {
    const headers = { 'content-type': 'application/json' };
    const init = body ? { method: 'POST', headers, body: JSON.stringify(body) } : {};
    const answer = await fetch(`${url}/api/v1${path}`, init);
    return (await answer.json()) as Record<string, unknown>;
  }

  async function inbox(): Promise<Record<string, unknown>[]> {
    const { items } = await api('/review');
    return items as Record<string, unknown>[];
  }

  /** What comes over a subject, and what a consumer of it does. */
  async function worker(subject: string, work: (message: JsMsg) => void, config = {}) {
    const name = subject.replaceAll('.', '_');
    await client.manager.consumers.add('ORDERS', {
      durable_name: name,
      ack_policy: AckPolicy.Explicit,
      filter_subject: subject,
      ...config,
    });
    const consumer = await jetstream(client.connection).consumers.get('ORDERS', name);
    return consumer.consume({ callback: work });
  }

  it('delivers a task to a subject, with what a consumer needs to know a repetition', async () => {
    const got: JsMsg[] = [];
    const messages = await worker('orders.plain', (one) => {
      got.push(one);
      one.ack();
    });
    const payload = { order: 17 };
    await api('/retries', { destination: 'nats:orders.plain', payload, headers: { 'x-a': 'ü' } });
    await vi.waitFor(() => expect(got.length).toBe(1), soon);
    expect(got[0]!.json()).toEqual(payload);
    const headers = got[0]!.headers!;
    expect([headers.get('x-a'), headers.get('x-retry-count')]).toEqual(['ü', '0']);
    expect(headers.get('x-message-id')).toMatch(/^[0-9a-f-]{36}$/);
    messages.stop();
  });

  it('takes in what a consumer reports, and sends it again to its subject', async () => {
    const got: JsMsg[] = [];
    const messages = await worker('orders.reported', (one) => {
      got.push(one);
      one.ack();
    });
    const report = {
      message_id: randomUUID(),
      original_queue: 'orders.reported',
      original_payload: Buffer.from('payload').toString('base64'),
      error_reason: 'ECONNREFUSED',
      retry_count: 0,
    };
    await jetstream(client.connection).publish('retry.scheduled', JSON.stringify(report));
    await vi.waitFor(() => expect(got.length).toBe(1), soon);
    expect(got[0]!.string()).toBe('payload');
    expect(got[0]!.headers!.get('x-retry-count')).toBe('1');
    expect(got[0]!.headers!.get('x-message-id')).toBe(report.message_id);
    messages.stop();
    // Nothing of it is left in the stream.
    await vi.waitFor(async () => {
      const { state } = await client.manager.streams.info('REDRIVE_RETRIES');
      expect(state.messages).toBe(0);
    }, soon);
  });

  it('retries what a consumer gave up, and in the end puts it whole into the inbox', async () => {
    const counts: string[] = [];
    const messages = await worker(
      'orders.failing',
      (one) => void counts.push(one.headers?.get('x-retry-count') ?? ''),
      { max_deliver: 1, ack_wait: 200e6 },
    );
    const js = jetstream(client.connection);
    await js.publish('orders.failing', 'never works');
    const isOurs = ({ lane }: Record<string, unknown>) => lane === 'nats:orders.failing';
    await vi.waitFor(async () => expect((await inbox()).filter(isOurs).length).toBe(1), soon);
    const [item] = (await inbox()).filter(isOurs);
    expect(item).toMatchObject({
      reason: 'EXHAUSTED',
      destination: { kind: 'nats', address: 'orders.failing' },
      error: { code: 'DEAD_LETTER_MAX_DELIVERIES' },
    });
    const whole = await api(`/review/${String(item!['id'])}`);
    expect(JSON.stringify(whole)).toContain(Buffer.from('never works').toString('base64'));
    expect(counts).toEqual(['', '1', '2']);
    messages.stop();
  });

  it('puts what it cannot read into the inbox, with its bytes', async () => {
    await jetstream(client.connection).publish('retry.scheduled', 'no report');
    await vi.waitFor(async () => {
      expect((await inbox()).map(({ reason }) => reason)).toContain('UNREADABLE');
    }, soon);
    // Without RabbitMQ nobody could ever publish a message for its review queue.
    const file = new DatabaseSync(databaseFile(await settings()), { readOnly: true });
    expect(file.prepare('SELECT count(*) AS count FROM redrive_outbox').get()).toEqual({
      count: 0,
    });
    file.close();
  });

  it('says in the inbox that no stream has a subject, and what mends that', async () => {
    await api('/retries', { destination: 'nats:nobody.here', payload: 1 });
    const isOurs = ({ lane }: Record<string, unknown>) => lane === 'nats:nobody.here';
    await vi.waitFor(async () => expect((await inbox()).filter(isOurs).length).toBe(1), soon);
    const [item] = (await inbox()).filter(isOurs);
    expect(item).toMatchObject({
      reason: 'UNROUTABLE',
      error: {
        code: 'NO_STREAM',
        message: expect.stringContaining(
          "nats stream add NOBODY --subjects 'nobody.here' --defaults",
        ) as string,
      },
    });
  });

  it('is counted and shown under its own name', async () => {
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(metrics).toContain('redrive_broker_state{broker="nats",state="connected"} 1');
    expect(metrics).toContain('retries_executed_total{queue="nats:orders.plain",status="success"}');
    const { checks } = (await (await fetch(`${url}/health/ready`)).json()) as {
      checks: { name: string }[];
    };
    expect(checks.map(({ name }) => name)).toContain('nats');
  });

  describe('the doctor', () => {
    it('finds NATS well', async () => {
      expect(await examineNats(await settings())).toMatchObject([
        { level: 'fine', what: expect.stringContaining('lets us in') as string },
        { level: 'fine', what: 'A stream has retry.scheduled.' },
      ]);
    });

    it('tells of a subject without a stream, and makes none', async () => {
      const found = await examineNats(await settings({ NATS_RETRY_SUBJECT: 'other.retries' }));
      expect(found[1]).toMatchObject({ level: 'note', what: 'No stream has other.retries yet.' });
      const names = await client.manager.streams.names('other.retries').next();
      expect(names).toEqual([]);
    });

    it('says why there is no way in, without the password', async () => {
      const wrong = new URL(server.url);
      wrong.password = 's3cret';
      const [found] = await examineNats(await settings({ NATS_URL: wrong.href }));
      expect(found).toMatchObject({ level: 'broken', about: 'nats' });
      expect(found!.what).toContain('refused the credentials');
      expect(JSON.stringify(found)).not.toContain('s3cret');
    });

    it('has nothing to say where NATS is not used', async () => {
      expect(await examineNats(await settings({ NATS_URL: '' }))).toEqual([]);
    });
  });
});
