import type { InboxEntry } from '@redrive/engine';
import { createTestEngine } from '@redrive/engine/testing';
import { pino } from 'pino';
import { virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { inboxWebhook, WINDOW_MS } from './webhook.ts';

const url = 'https://hooks.example.com/inbox';

function hookOf() {
  const clock = virtualClock();
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line) => lines.push(line) });
  const hook = inboxWebhook({ url, serviceName: 'retry-scheduler', instance: 'i-1', clock, log });
  const engine = createTestEngine();
  hook.attach(engine);
  return { clock, hook, engine, lines };
}

const entry: InboxEntry = {
  fingerprint: 'f00d',
  lane: 'queue:orders',
  count: 3,
  firstAtMs: Date.UTC(2025, 0, 1),
  lastAtMs: Date.UTC(2025, 0, 1, 0, 1),
  reason: 'PERMANENT',
  failure: { class: 'business', code: 'E1', message: 'no: http://a:b@c', status: 422 },
  id: '018f0000-0000-7000-8000-000000000001',
};

describe('the inbox webhook', () => {
  it('is told by a task of the engine, in the words of the wire and without a payload', async () => {
    const { hook, engine } = hookOf();
    await hook.onEntry(entry);
    expect(engine.expectSubmitted(url).payload).toEqual({
      event: 'inbox_entry',
      service: 'retry-scheduler',
      instance: 'i-1',
      fingerprint: 'f00d',
      lane: 'queue:orders',
      reason: 'PERMANENT',
      count: 3,
      first_at: '2025-01-01T00:00:00.000Z',
      last_at: '2025-01-01T00:01:00.000Z',
      message_id: entry.id,
      error: { class: 'business', code: 'E1', message: 'no: http://***@c', status: 422 },
    });
  });

  it('is told what is unknown as null', async () => {
    const { hook, engine } = hookOf();
    await hook.onEntry({ ...entry, failure: { class: 'unknown' } });
    expect(engine.expectSubmitted(url).payload).toMatchObject({
      error: { class: 'unknown', code: null, message: null, status: null },
    });
  });

  it.each([
    ['postgres://me:hunter2hunter2@db/tasks', 'postgres://***@'],
    ['https://hunter2@api.example.com/', 'https://***@'],
    ['password=hunter2hunter2 x', 'password='],
    ['Authorization: Bearer hunter2hunter2', 'Authorization: Bearer'],
  ])('is told no part of a credential, wherever the text is cut: %s', async (secret, start) => {
    const MAX = 1024;
    for (let before = MAX - secret.length; before <= MAX; before++) {
      const { hook, engine } = hookOf();
      const message = `${'.'.repeat(before - 1)} ${secret} and what follows`;
      await hook.onEntry({ ...entry, failure: { class: 'business', message } });
      const { payload } = engine.expectSubmitted(url) as {
        payload: { error: { message: string } };
      };
      const told = payload.error.message;
      expect(told.length).toBeLessThanOrEqual(MAX);
      expect(told).not.toMatch(/hun|ter2/);
      expect(told.slice(before, before + start.length)).toBe(
        start.slice(0, Math.max(0, MAX - before)),
      );
    }
  });

  it('is told of a group once per window, whoever tells it', async () => {
    const { clock, hook, engine } = hookOf();
    await hook.onEntry(entry);
    await hook.onEntry({ ...entry, count: 1 });
    await hook.onEntry({ ...entry, fingerprint: 'beef' });
    expect(engine.submitted(url)).toHaveLength(2);
    await clock.advance(WINDOW_MS);
    await hook.onEntry(entry);
    expect(engine.submitted(url)).toHaveLength(3);
  });

  it('is never told of itself', async () => {
    const { hook, engine, lines } = hookOf();
    await hook.onEntry({ ...entry, lane: 'https://hooks.example.com' });
    engine.expectNotSubmitted(url);
    expect(lines).toHaveLength(1);
  });

  it('does not feed itself when it is down', async () => {
    const { hook, lines } = hookOf();
    const down = { class: 'technical', code: 'E404' } as const;
    const engine = createTestEngine({
      policy: { maxAttempts: 1 },
      inbox: { onEntry: hook.onEntry, debounce: 0 },
      deliveries: [{ kind: 'http', deliver: async () => ({ type: 'failed', failure: down }) }],
    });
    hook.attach(engine);
    engine.handle('orders', () => {
      throw new Error('never');
    });
    await engine.submit('orders', {});
    await engine.advance('1h');
    expect((await engine.inbox()).map(({ lane }) => lane)).toEqual([
      'handler:orders',
      'https://hooks.example.com',
    ]);
    expect(lines).toHaveLength(1);
  });

  it('that comes after the stop is only said in the log', async () => {
    const { hook, engine, lines } = hookOf();
    await engine.start();
    await engine.stop();
    await hook.onEntry(entry);
    expect(lines[0]).toContain('was not told');
  });

  it('lets the engine say what is wrong with its URL', async () => {
    const { clock } = hookOf();
    const hook = inboxWebhook({
      url: 'https://a:b@hooks.example.com/',
      serviceName: 's',
      instance: 'i',
      clock,
      log: pino({ level: 'silent' }),
    });
    hook.attach(createTestEngine());
    await expect(hook.onEntry(entry)).rejects.toThrow('must not carry credentials');
  });
});
