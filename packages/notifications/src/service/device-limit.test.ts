import { expect, it } from 'vitest';
import { MAX_DEVICES } from '../model/record.ts';
import { failure, notification, stage } from './stage.test.ts';

it('keeps to the most devices of a notification, however many are reported at once', async () => {
  const scene = await stage();
  const other = scene.another();
  await other.start();
  await scene.service.create(notification());
  const reports = Array.from({ length: MAX_DEVICES + 20 }, (_, i) => ({
    ...failure(),
    deviceId: `d${i}`,
  }));
  const halves = [
    scene.service.reportFailures(reports.slice(0, reports.length / 2)),
    other.reportFailures(reports.slice(reports.length / 2)),
  ];
  const all = Promise.all(halves);
  await scene.clock.advance(5000);
  const answers = (await all).flat();
  const refused = answers.flatMap((answer) => ('error' in answer ? [answer.error.code] : []));
  expect(refused).toEqual(Array.from({ length: 20 }, () => 'TOO_MANY_DEVICES'));
  const record = await scene.service.get('n1');
  expect(Object.keys(record!.deliveries)).toHaveLength(MAX_DEVICES);
  // Nothing is recorded of those that were refused.
  const attempts = await scene.service.attempts('n1', { limit: 2 * MAX_DEVICES });
  expect(attempts).toHaveLength(MAX_DEVICES);
  // Devices that are known may be reported on all the same.
  const again = await scene.service.reportFailure({
    ...failure(),
    deviceId: attempts[0]!.deviceId,
  });
  expect(again.decision).toBe('duplicate');
});
