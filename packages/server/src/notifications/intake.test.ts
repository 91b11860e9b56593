import { createEngine } from '@redrive/engine';
import { memory, memoryBroker, memoryDelayQueue } from '@redrive/engine/memory';
import { createNotifications, NotificationError } from '@redrive/notifications';
import { memoryNotifications } from '@redrive/notifications/memory';
import pino from 'pino';
import { systemClock } from 'redrive/internal';
import { virtualClock } from 'redrive/testing';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { consumeReports, readReport } from './intake.ts';

const bytes = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
const report = { notification_id: 'n1', device_id: 'd1', attempt_number: 1 };

describe('reports through a broker', () => {
  it.each([
    [report, 'failure'],
    [{ ...report, type: 'failure', error_code: 'E' }, 'failure'],
    [{ ...report, type: 'success' }, 'success'],
    [{ ...report, status: 'delivered' }, 'success'],
    [{ ...report, status: 'failed' }, 'failure'],
    [{ ...report, type: 'other' }, 'unreadable'],
    [{ ...report, attempt_number: 'x' }, 'unreadable'],
    [{ ...report, colour: 'red' }, 'unreadable'],
    [{}, 'unreadable'],
    ['not json', 'unreadable'],
    ['"\\ud800', 'unreadable'],
    [null, 'unreadable'],
  ])('%j is a %s', (value, type) => {
    expect(readReport(bytes(value)).type).toBe(type);
  });

  it('whose record others change all the time come again, and do not lie in the inbox', async () => {
    const clock = virtualClock();
    const broker = memoryBroker();
    await broker.open();
    const parked: unknown[] = [];
    const counted: string[] = [];
    let tries = 0;
    const reportFailure = async () => {
      tries += 1;
      if (tries === 1) throw new NotificationError('RECORD_CONTENDED', 'Others were faster.');
    };
    const consumer = await consumeReports({
      broker,
      source: 'reports',
      service: { reportFailure, reportSuccess: reportFailure } as never,
      engine: {
        report: async (reports) => {
          parked.push(...reports);
          return [];
        },
      },
      log: pino({ level: 'silent' }),
      clock,
      maxPayloadBytes: 1000,
      counted: (one) => counted.push(one),
    });
    onTestFinished(() => consumer.stop());
    const message = { address: 'reports', payload: bytes(report), headers: {} };
    await broker.publish([message], { timeoutMs: 1000 })[0]!;
    await vi.waitFor(() => expect(tries).toBe(1));
    await clock.advance('1s');
    await vi.waitFor(() => expect(counted).toEqual(['taken']));
    expect([tries, parked]).toEqual([2, []]);
  });

  it('are taken in, and what nobody can take lies in the inbox', async () => {
    const log = pino({ level: 'silent' });
    const engine = createEngine({ store: memory(), maxPayloadBytes: 1000 });
    await engine.start();
    const service = createNotifications({
      repository: memoryNotifications(),
      queues: { urgent: memoryDelayQueue(), bulk: memoryDelayQueue() },
      deliver: async () => undefined,
      consume: false,
    });
    await service.start();
    onTestFinished(async () => {
      await service.stop();
      await engine.stop();
    });
    await service.create({
      id: 'n1',
      recipient: { userId: 'u' },
      priority: 'high',
      notification: { title: 't', body: 'b' },
      source: 's',
    });
    const broker = memoryBroker();
    await broker.open();
    const counted: string[] = [];
    const consumer = await consumeReports({
      broker,
      source: 'reports',
      service,
      engine,
      log,
      clock: systemClock,
      maxPayloadBytes: 1000,
      counted: (one) => counted.push(one),
    });
    const send = (value: unknown) =>
      broker.publish([{ address: 'reports', payload: bytes(value), headers: {} }], {
        timeoutMs: 1000,
      })[0]!;
    await send(report);
    await send({ ...report, notification_id: 'nobody' });
    await send('nonsense');
    await send('x'.repeat(1001));
    const all = ['taken', 'unreadable', 'unreadable', 'unreadable'];
    await vi.waitFor(() => expect(counted.toSorted()).toEqual(all), { timeout: 20_000 });
    expect(await service.get('n1')).toMatchObject({ status: 'retrying' });
    const { items } = await engine.inbox.items({ limit: 10 });
    expect(items.map(({ failure }) => String(failure?.code)).toSorted()).toEqual([
      'NOTIFICATION_UNKNOWN',
      'UNREADABLE',
      'UNREADABLE',
    ]);
    const unreadable = items.filter(({ failure }) => failure?.code === 'UNREADABLE');
    const [small, large] = unreadable.toSorted((a, b) => a.payload.length - b.payload.length);
    expect(Buffer.from(small!.payload).toString()).toBe('nonsense');
    expect(large).toMatchObject({
      payload: expect.objectContaining({ length: 1000 }),
      failure: { message: expect.stringContaining('the first 1000 of its 1001 bytes') },
    });
    await consumer.stop();
  });
});
