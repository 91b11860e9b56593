/** What is published is published once, unless something fails. */
import { expect, it } from 'vitest';
import { failure, notification, type Stage, stage } from './stage.test.ts';

const DEVICES = 50;
const final = { platformResponse: { platform: 'apns', status: 413 } };

/** Sinks that take a second each, while every 10 ms the failure of one more device is reported. */
async function manyDevices(reporters: (scene: Stage) => readonly Stage['service'][]) {
  const published: string[] = [];
  const taken = (what: string) => {
    published.push(what);
    return new Promise<void>((resolve) => {
      scene.clock.setTimer(resolve, 1000);
    });
  };
  const scene = await stage({
    deadLetter: ({ device_id }) => taken(`letter ${device_id}`),
    inbox: ({ letter }) => taken(`item ${letter.device_id}`),
    event: ({ data }) => taken(`event ${String(data['device_id'])}`),
  });
  const services = reporters(scene);
  await scene.service.create(notification());
  for (let i = 0; i < DEVICES; i++) {
    const report = { ...failure(1, final), deviceId: `d${i}` };
    const reported = services[i % services.length]!.reportFailure(report);
    await scene.clock.advance(10);
    await reported;
  }
  await scene.clock.advance('1m');
  return published;
}

it('also where other devices of the notification are reported meanwhile', async () => {
  const published = await manyDevices(({ service }) => [service]);
  expect(new Set(published).size).toBe(3 * DEVICES);
  expect(published).toHaveLength(3 * DEVICES);
});

it('also where another instance takes some of the reports', async () => {
  const published = await manyDevices(({ service, another }) => [service, another()]);
  expect(new Set(published).size).toBe(3 * DEVICES);
  expect(published).toHaveLength(3 * DEVICES);
});

it('also where the device is reported again meanwhile', async () => {
  let events = 0;
  const scene = await stage({
    event: () => {
      events += 1;
      return new Promise<void>((resolve) => {
        scene.clock.setTimer(resolve, 1000);
      });
    },
  });
  await scene.service.create(notification());
  for (let i = 0; i < 5; i++) {
    await scene.service.reportFailure(failure(1, final));
    await scene.clock.advance(10);
  }
  await scene.clock.advance('1m');
  expect(events).toBe(1);
});
