import { createEngine } from '@redrive/engine';
import { memory, MemoryAudit } from '@redrive/engine/memory';
import pino from 'pino';
import { virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { auditedStore } from './wrappers/audited-store.ts';
import { RetryAlerts } from './retry-alerts.ts';

const URL = 'https://hooks.example.com/retries';

function stage(perMinute?: number, url: string | undefined = URL) {
  const clock = virtualClock();
  const lines: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line) as never) });
  const alerts = new RetryAlerts({
    perMinute,
    url,
    serviceName: 'retries',
    instance: 'i-1',
    clock,
    log,
  });
  const told: { to: unknown; body: unknown; dedupeKey: unknown }[] = [];
  let failing: Error | undefined;
  alerts.attach({
    submit: async (to: unknown, body: unknown, { dedupeKey }: { dedupeKey: unknown }) => {
      if (failing) throw failing;
      told.push({ to, body, dedupeKey });
    },
  } as never);
  alerts.start();
  const retries = (count: number, category = 'API', operation = 'get') =>
    alerts.written(
      Array.from({ length: count }, () => ({
        event_type: 'retry_attempt',
        retry_category: category,
        operation,
        timestamp: '',
      })),
    );
  return { clock, lines, alerts, told, retries, fail: (error: Error) => (failing = error) };
}

describe('alerts about retry rates', () => {
  it('are logged and posted when they are raised and when they are over, once each', async () => {
    const { clock, lines, told, retries, alerts } = stage(10);
    retries(10);
    await clock.advance(5000);
    expect(lines).toEqual([]);
    retries(1);
    await clock.advance(20_000);
    expect(lines).toMatchObject([
      {
        level: 40,
        category: 'API',
        per_minute: 11,
        limit: 10,
        msg: expect.stringMatching(/^too many/) as string,
      },
    ]);
    expect(told).toEqual([
      {
        to: URL,
        body: {
          event: 'retry_rate',
          state: 'raised',
          service: 'retries',
          instance: 'i-1',
          category: 'API',
          per_minute: 11,
          limit: 10,
        },
        dedupeKey: expect.stringMatching(/^retry-rate:raised:API:\d+$/) as string,
      },
    ]);
    expect(alerts.rates()).toEqual([{ category: 'API', perMinute: 11 }]);
    await clock.advance(60_000);
    expect(told).toHaveLength(2);
    expect(told[1]).toMatchObject({ body: { state: 'over', per_minute: 1 } });
    expect(lines[1]).toMatchObject({ level: 30 });
    alerts.stop();
    retries(100);
    await clock.advance(60_000);
    expect(told).toHaveLength(2);
  });

  it('are none without a limit: rates are measured all the same', async () => {
    const { clock, lines, told, retries, alerts } = stage();
    retries(1000);
    await clock.advance(5000);
    expect(alerts.rates()).toEqual([{ category: 'API', perMinute: 1000 }]);
    expect([...lines, ...told]).toEqual([]);
  });

  it('do not count the retries of their own webhook', async () => {
    const { clock, told, retries } = stage(1);
    retries(50, 'durable', 'https://hooks.example.com');
    await clock.advance(5000);
    expect(told).toEqual([]);
    retries(2, 'durable', 'https://other.example.com');
    await clock.advance(5000);
    expect(told).toHaveLength(1);
  });

  it('are logged where the webhook cannot be told', async () => {
    const { clock, lines, retries, fail } = stage(1);
    fail(new Error('intake full'));
    retries(2);
    await clock.advance(5000);
    expect(lines.map(({ msg }) => msg)).toEqual([
      'too many retries a minute in this category',
      'the webhook of retry rates could not be told',
    ]);
  });
});

describe('a store with an audit sink that is listened to', () => {
  it('tells of what was written, and of nothing that was not', async () => {
    const sink = new MemoryAudit();
    let isDown = true;
    const frail = {
      write: async (events: Parameters<MemoryAudit['write']>[0]) => {
        if (isDown) throw new Error('full');
        await sink.write(events);
      },
    };
    const told: number[] = [];
    const store = Object.assign(memory(), { audit: frail });
    const audited = auditedStore(store, (events) => told.push(events.length));
    const events = [{ event_type: 'retry_attempt', timestamp: '' }];
    await expect(audited.audit!.write(events)).rejects.toThrow('full');
    expect(told).toEqual([]);
    isDown = false;
    await audited.audit!.write(events);
    expect(told).toEqual([1]);
    expect(audited.audit).toBe(audited.audit);
    expect(audited.audit!.read).toBeUndefined();
  });

  it('is a store like any other, and works in an engine', async () => {
    const types: string[] = [];
    const store = auditedStore(memory(), (events) =>
      types.push(...events.map((event) => event.event_type)),
    );
    const done = Promise.withResolvers<void>();
    const engine = createEngine({
      store,
      audit: { successes: true },
      on: ({ type }) => {
        if (type === 'done') done.resolve();
      },
    }).handle('works', () => undefined);
    await engine.start();
    await engine.submit('works', 1);
    await done.promise;
    await engine.stop();
    expect(types).toEqual(['retry_succeeded']);
  });
});
