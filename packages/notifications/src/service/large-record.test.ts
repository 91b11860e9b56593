import { expect, it } from 'vitest';
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
  expect(devices).toBeGreaterThan(200);
  await scene.service.resume('urgent');
  await scene.clock.advance('2m');
  expect(scene.delivered).toHaveLength(devices);
  const [record] = await scene.repository.find(['n1']);
  expect(record!.status).toBe('delivered');
  expect(Buffer.byteLength(JSON.stringify(record))).toBeLessThan(MAX_RECORD_BYTES);
});

it('a record that grew past its limit is written without its long texts', async () => {
  const scene = await stage({ policies: { high: soon } });
  await scene.service.create(notification());
  await scene.service.reportFailures(
    reportsFrom(0).map((report) => ({ ...report, errorMessage: 'x' })),
  );
  // As by events that nobody takes, for hours.
  const [record] = await scene.repository.find(['n1']);
  const [[deviceId, delivery]] = Object.entries(record!.deliveries) as [[string, never]];
  const data = { text: 'x'.repeat(100_000) };
  const events = Array.from({ length: 19 }, () => ({
    to: 'event' as const,
    type: 'retry_scheduled' as const,
    atMs: 0,
    data,
  }));
  const grown = { ...(delivery as object), unpublished: events } as never;
  await scene.repository.write(
    [{ ...record!, deliveries: { ...record!.deliveries, [deviceId]: grown } }],
    [],
  );
  await scene.clock.advance('10s');
  expect(scene.delivered).toHaveLength(MANY);
});
