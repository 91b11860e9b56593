import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jetstream } from '@nats-io/jetstream';
import { logs } from '@opentelemetry/api-logs';
import {
  InMemoryLogRecordExporter,
  LoggerProvider,
  SimpleLogRecordProcessor,
} from '@opentelemetry/sdk-logs';
import {
  describeService,
  natsClient,
  type NatsClient,
  sharedServer,
} from '@redrive/services/vitest';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { createService } from '../service.ts';
import { readSettings } from '../settings/read.ts';

const soon = { timeout: 25_000, interval: 10 };
let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'redrive-audit-'));
});
afterEach(() => {
  logs.disable();
  rmSync(home, { recursive: true, force: true });
});

async function reading(env: Record<string, string>) {
  return readSettings({
    env: { HTTP_PORT: '0', REDRIVE_DATA_DIR: home, REDRIVE_LOG_LEVEL: 'info', ...env },
    cwd: home,
  });
}

/** A service with that sink, and a lane that somebody pauses: an event of the trail. */
async function paused(env: Record<string, string>) {
  const read = await reading(env);
  if (!read.ok) throw new Error(JSON.stringify(read.faults));
  const lines: string[] = [];
  const service = createService(read.settings, {
    logTo: { write: (text: string) => void lines.push(text) },
  });
  const { url } = await service.start();
  await service.ready;
  const lane = encodeURIComponent('handler:x');
  const answer = await fetch(`${url}/api/v1/lanes/${lane}/pause`, { method: 'POST' });
  expect(answer.ok).toBe(true);
  return { service, url, lines };
}

const isPause = (event: unknown) =>
  (event as Record<string, unknown> | undefined)?.['action'] === 'pause';

describe('REDRIVE_AUDIT_SINK', () => {
  it('writes the trail to the log', async () => {
    const { service, url, lines } = await paused({ REDRIVE_AUDIT_SINK: 'log' });
    const events = () =>
      lines.map((line) => (JSON.parse(line) as { audit_event?: object }).audit_event);
    await vi.waitFor(() => expect(events().filter(isPause)).toHaveLength(1), soon);
    // It cannot be read back from there.
    const answer = await fetch(`${url}/api/v1/audit`);
    expect(await answer.json()).toMatchObject({ status: 409, code: 'AUDIT_UNREADABLE' });
    await service.stop();
  });

  it('measures the rate of retries by whatever sink there is', async () => {
    const { service, url } = await paused({
      REDRIVE_AUDIT_SINK: 'log',
      REDRIVE_HTTP_ALLOW: 'loopback',
      BASE_DELAY_MS: '10',
    });
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ destination: 'http://127.0.0.1:1/nobody', payload: 1 });
    await fetch(`${url}/api/v1/retries`, { method: 'POST', headers, body });
    await vi.waitFor(async () => {
      const metrics = await (await fetch(`${url}/metrics`)).text();
      expect(metrics).toMatch(/^retry_rate\{.*\} [1-9]/m);
    }, soon);
    await service.stop();
  });

  it('writes the trail as events of OpenTelemetry', async () => {
    const exporter = new InMemoryLogRecordExporter();
    const processors = [new SimpleLogRecordProcessor({ exporter })];
    logs.setGlobalLoggerProvider(new LoggerProvider({ processors }));
    const { service } = await paused({ REDRIVE_AUDIT_SINK: 'opentelemetry' });
    await service.stop();
    const records = exporter.getFinishedLogRecords();
    expect(records.filter(({ body }) => isPause(body))).toHaveLength(1);
    expect(records[0]).toMatchObject({ instrumentationScope: { name: 'redrive' } });
  });

  it.each([
    [{ REDRIVE_AUDIT_SINK: 'natz' }, "Did you mean 'nats'?"],
    [{ REDRIVE_AUDIT_SINK: 'opentelemetri' }, "Did you mean 'opentelemetry'?"],
    [{ REDRIVE_AUDIT_SINK: 'nats' }, 'Give NATS_URL'],
    [{ REDRIVE_AUDIT_SINK: 'nats-core' }, 'Give NATS_URL'],
    [{ REDRIVE_AUDIT_SINK: 'log', REDRIVE_LOG_LEVEL: 'warn' }, 'REDRIVE_LOG_LEVEL=warn drops them'],
    [{ REDRIVE_AUDIT_SUBJECT: 'a.*' }, 'a subject of at most 200 bytes'],
  ])('refuses %o, and says what to do', async (env, sentence) => {
    const message = expect.stringContaining(sentence) as unknown;
    expect(await reading(env)).toMatchObject({ ok: false, faults: [{ message }] });
  });

  it('warns of settings that have no effect', async () => {
    const read = await reading({
      REDRIVE_AUDIT_SINK: 'log',
      REDRIVE_AUDIT_SUBJECT: 'a.b',
      REDRIVE_AUDIT_RETENTION_DAYS: '5',
    });
    expect(read).toMatchObject({
      ok: true,
      warnings: [
        'REDRIVE_AUDIT_SUBJECT: has no effect with REDRIVE_AUDIT_SINK=log.',
        'REDRIVE_AUDIT_RETENTION_DAYS: has no effect with REDRIVE_AUDIT_SINK=log.',
      ],
    });
    const off = await reading({ REDRIVE_AUDIT_SINK: 'nats', REDRIVE_AUDIT: 'false' });
    expect(off).toMatchObject({ ok: true });
  });
});

describeService('NATS 2.15', () => {
  let url: string;
  let client: NatsClient;
  beforeAll(async () => {
    url = await sharedServer('NATS 2.15');
    client = await natsClient(url);
  });
  afterAll(() => client.close());

  it('writes the trail to a stream, also one that is made later', async () => {
    const name = client.name();
    const subject = `${name}.audit`;
    const { service } = await paused({
      NATS_URL: url,
      NATS_RETRY_SUBJECT: `${name}.retries`,
      REDRIVE_AUDIT_SINK: 'nats',
      REDRIVE_AUDIT_SUBJECT: subject,
    });
    // The trail has tried in vain, and tries again.
    await client.manager.streams.add({ name, subjects: [subject] });
    const consumer = await jetstream(client.connection).consumers.get(name);
    const message = await vi.waitFor(async () => {
      const next = await consumer.next({ expires: 1000 });
      if (!next || !isPause(next.json())) throw new Error('not yet');
      return next;
    }, soon);
    expect(message.json()).toMatchObject({ action: 'pause', lane: 'handler:x' });
    await service.stop();
    await client.manager.streams.delete(name);
  });

  it('writes the trail to a subject of core NATS', async () => {
    const name = client.name();
    const events: unknown[] = [];
    const replies: unknown[] = [];
    client.connection.subscribe(`${name}.audit`, {
      callback: (_, message) => {
        events.push(message.json());
        if (message.reply) replies.push(message.reply);
      },
    });
    await client.connection.flush();
    const { service } = await paused({
      NATS_URL: url,
      NATS_RETRY_SUBJECT: `${name}.retries`,
      REDRIVE_AUDIT_SINK: 'nats-core',
      REDRIVE_AUDIT_SUBJECT: `${name}.audit`,
    });
    await service.stop();
    await vi.waitFor(() => expect(events.filter(isPause)).toHaveLength(1), soon);
    // Nobody is asked for an acknowledgement.
    expect(replies).toEqual([]);
  });
});
