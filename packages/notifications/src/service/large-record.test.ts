import { expect, it } from 'vitest';
import type { DeliveryRecord } from '../model/notification.ts';
import { MAX_DEVICES } from '../model/record.ts';
import { MAX_RECORD_BYTES } from '../repository/limits.ts';
import { notification, stage } from './stage.test.ts';

const soon = { base: '1s', cap: '1s', jitter: 'none' } as const;
const MANY = 100;

/** Names and texts that take as many bytes as they may. */
const reportsFrom = (first: number) =>
  Array.from({ length: MANY }, (_, i) => ({
    notificationId: 'n1',
    deviceId: `${first + i}-${'€'.repeat(230)}`,
    attemptNumber: 1,
    errorMessage: '€'.repeat(500),
  }));

it('a record that is full takes no more devices, and all that it has are delivered', async () => {
  const scene = await stage({
    policies: { high: soon },
    event: () => Promise.reject(new Error('away')),
  });
  await scene.service.pause('urgent');
  await scene.service.create(notification());
  let devices = 0;
  let refusal: string | undefined;
  for (let first = 0; refusal === undefined; first += MANY) {
    const answers = await scene.service.reportFailures(reportsFrom(first));
    const errors = answers.flatMap((answer) => ('error' in answer ? [answer.error] : []));
    devices += answers.length - errors.length;
    refusal = errors[0]?.code;
  }
  expect(refusal).toBe('TOO_MANY_DEVICES');
  // Not by their number.
  expect(devices).toBeGreaterThan(200);
  expect(devices).toBeLessThan(MAX_DEVICES);
  await scene.service.resume('urgent');
  await scene.clock.advance('2m');
  expect(scene.delivered).toHaveLength(devices);
  const [record] = await scene.repository.find(['n1']);
  expect(record!.status).toBe('delivered');
  expect(Buffer.byteLength(JSON.stringify(record))).toBeLessThan(MAX_RECORD_BYTES);
});

it('a record that grew past its limit is written without its older events', async () => {
  const scene = await stage({
    policies: { high: soon },
    event: () => Promise.reject(new Error('away')),
  });
  await scene.service.create(notification());
  await scene.service.reportFailures(reportsFrom(0));
  // As by events that nobody takes, for hours.
  const [record] = await scene.repository.find(['n1']);
  const [[deviceId, delivery]] = Object.entries(record!.deliveries) as [[string, DeliveryRecord]];
  const spare = MAX_RECORD_BYTES - Buffer.byteLength(JSON.stringify(record)) - 1000;
  const data = { text: 'x'.repeat(spare) };
  const old = { to: 'event', type: 'retry_scheduled', atMs: 0, data } as const;
  const unpublished = [old, ...delivery.unpublished];
  const deliveries = { ...record!.deliveries, [deviceId]: { ...delivery, unpublished } };
  const { records } = await scene.repository.write([{ ...record!, deliveries }], []);
  expect(records).toEqual([true]);
  await scene.clock.advance('10s');
  expect(scene.delivered).toHaveLength(MANY);
});
