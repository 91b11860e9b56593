import { createEngine, type Engine } from '@redrive/engine';
import { memory } from '@redrive/engine/memory';
import { createTestBroker } from '@redrive/engine/testing';
import { virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import type { Settings } from '../settings/settings.ts';
import { createObservers } from './index.ts';

const settings = {
  serviceName: 'retry-scheduler',
  logLevel: 'info',
  logFormat: 'json',
} as Settings;

async function serviceOf(more: Partial<Settings> = {}) {
  const clock = virtualClock();
  const lines: string[] = [];
  const instance = 'i-1';
  const observers = createObservers({
    settings: { ...settings, ...more },
    instance,
    clock,
    logTo: { write: (line) => lines.push(line) },
  });
  const broker = createTestBroker();
  const posted: string[] = [];
  const engine: Engine = createEngine({
    ...observers.hooks,
    instance,
    clock,
    store: observers.store(memory({ clock })),
    brokers: [observers.broker(broker)],
    deliveries: [
      observers.delivery({
        kind: 'http',
        deliver: async ({ payload }) => {
          posted.push(Buffer.from(payload).toString());
          return { type: 'done' };
        },
      }),
    ],
    policy: { maxAttempts: 2, base: '1s', jitter: 'none' },
    audit: true,
  });
  engine.consume(
    observers.source({
      broker,
      source: 'retry.scheduled',
      read: ({ headers }) => ({
        type: 'failure',
        report: {
          messageId: '018f0000-0000-7000-8000-000000000001',
          to: { kind: 'queue', address: 'orders' },
          payload: new Uint8Array(),
          failure: { class: 'transient', code: 'E' },
          attempt: Number(headers['count']) + 1,
        },
      }),
    }),
  );
  const state = { state: 'connected' as const };
  observers.watch({ engine, brokers: { rabbitmq: { state } } });
  /** Moves time on until it is so. */
  const until = async (isSo: () => boolean) => {
    for (let step = 0; step < 1000 && !isSo(); step++) await clock.advance(100);
    expect(isSo()).toBe(true);
  };
  const has = async (...samples: string[]) => {
    const text = await observers.metrics.text();
    for (const sample of samples) expect(text.split('\n')).toContain(sample);
  };
  return { clock, lines, observers, broker, engine, posted, has, until };
}

describe('the observers of a service', () => {
  it('show a message from its arrival over its retry to the inbox', async () => {
    const { clock, observers, broker, engine, has, until } = await serviceOf();
    let told = '';
    observers.feed.read(undefined, (text) => (told += text));
    await engine.start();
    observers.started();
    broker.put('retry.scheduled', { headers: { count: 0 } });
    await until(() => told.includes('event: taken'));
    await clock.advance('10s');
    await has(
      'retries_scheduled_total{queue="orders"} 1',
      'retries_executed_total{queue="orders",status="success"} 1',
      'redrive_intake_messages_total{source="retry.scheduled",result="taken"} 1',
      'redrive_publish_total{outcome="confirmed"} 1',
      'redrive_drift_seconds_count{kind="queue"} 1',
      'redrive_lane_state{lane="queue:orders",state="closed"} 1',
      'redrive_source_state{source="retry.scheduled",state="consuming"} 1',
      'redrive_broker_state{broker="rabbitmq",state="connected"} 1',
      'redrive_event_readers 1',
      'retry_queue_depth 0',
    );
    expect(await observers.metrics.text()).toMatch(/^redrive_census_age_seconds \d/m);
    broker.put('retry.scheduled', { headers: { count: 1 } });
    await until(() => told.includes('event: failed'));
    await clock.advance('10s');
    await has(
      'retries_exhausted_total{queue="orders"} 1',
      'redrive_inbox_entered_total{reason="EXHAUSTED"} 1',
      'redrive_inbox_open{reason="EXHAUSTED"} 1',
    );
    const names = told.match(/^event: .*$/gm);
    expect(names).toEqual(['event: accepted', 'event: started', 'event: taken', 'event: failed']);
    expect(await observers.health.ready()).toMatchObject({ ready: true });
    observers.stopping();
    expect(await observers.health.ready()).toMatchObject({ ready: false });
    await engine.stop();
    observers.stop();
    observers.stop();
  });

  it('tell the webhook what entered the inbox, by the engine itself', async () => {
    const { broker, engine, posted, until } = await serviceOf({
      inboxWebhookUrl: 'https://hooks.example.com/inbox',
    });
    await engine.start();
    broker.put('retry.scheduled', { headers: { count: 1 } });
    await until(() => posted.length > 0);
    expect(posted.map((text) => JSON.parse(text) as unknown)).toMatchObject([
      { event: 'inbox_entry', lane: 'queue:orders', reason: 'EXHAUSTED', count: 1 },
    ]);
    await engine.stop();
  });

  it('raise alerts about retries by the trail of the engine, and show their rate', async () => {
    const { engine, observers, posted, until, has } = await serviceOf({
      retryRateAlert: 1,
      retryRateWebhookUrl: 'https://hooks.example.com/retries',
    });
    engine.handle('fails', () => {
      throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
    });
    await engine.start();
    observers.started();
    for (const n of [1, 2]) await engine.submit('fails', n);
    await until(() => posted.length > 0);
    await has('retry_rate{category="durable"} 2');
    expect(JSON.parse(posted[0]!)).toMatchObject({
      event: 'retry_rate',
      state: 'raised',
      category: 'durable',
      per_minute: 2,
      limit: 1,
    });
    await engine.stop();
    observers.stop();
  });

  it('log what enters the inbox, and tell nobody else where no webhook is set', async () => {
    const { observers, lines, posted } = await serviceOf();
    await observers.hooks.inbox.onEntry?.({
      fingerprint: 'f',
      lane: 'queue:orders',
      reason: 'EXHAUSTED',
      failure: { class: 'transient' },
      count: 1,
      firstAtMs: 0,
      lastAtMs: 0,
      id: 'm-1',
    });
    expect(JSON.parse(lines.at(-1)!)).toMatchObject({ level: 'warn', msg: 'entered the inbox' });
    expect(posted).toEqual([]);
  });

  it('log what the engine says, in the words of the service', async () => {
    const { observers, lines } = await serviceOf();
    observers.hooks.log.warn({ id: 'm-1', lane: 'queue:a' }, 'something');
    expect(JSON.parse(lines.at(-1)!)).toMatchObject({
      level: 'warn',
      service: 'retry-scheduler',
      instance: 'i-1',
      message_id: 'm-1',
      msg: 'something',
    });
  });
});
