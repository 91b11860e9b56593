import { expect, it } from 'vitest';
import { memoryNotifications } from '../adapters/memory/index.ts';
import type { NotificationRepository } from '../ports/repository.ts';
import { failure, notification, stage, type Stage } from './stage.test.ts';

const never = <T>() => Promise.withResolvers<T>().promise;
/** 5 s for what runs, 1 s for what is aborted, 5 s for each of three that are closed. */
const LONGEST_MS = 21_000;

async function stopsWithin(scene: Stage, ms: number): Promise<boolean> {
  let isStopped = false;
  void scene.service.stop().then(() => (isStopped = true));
  await scene.clock.advance(ms);
  return isStopped;
}

/** A repository whose calls of some names never answer once `hangs` says so. */
function hanging(names: readonly (keyof NotificationRepository)[], hangs: () => boolean) {
  return new Proxy(memoryNotifications(), {
    get(target, name: keyof NotificationRepository) {
      if (names.includes(name) && hangs()) return () => never();
      const value: unknown = target[name];
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

it('stops though the repository does not answer to anything any more', async () => {
  let hangs = false;
  const names = ['find', 'write', 'due', 'attempts', 'prune', 'close'] as const;
  const scene = await stage({ repository: hanging(names, () => hangs) });
  await scene.service.create(notification());
  const { delayMs } = await scene.service.reportFailure(failure());
  hangs = true;
  await scene.clock.advance(delayMs! + 10_000);
  expect(await stopsWithin(scene, LONGEST_MS)).toBe(true);
});

it('stops though the repository never opens', async () => {
  let hangs = false;
  const scene = await stage({ repository: hanging(['open'], () => hangs) });
  hangs = true;
  const service = scene.another();
  void service.start().catch(() => undefined);
  await scene.clock.advance(1000);
  expect(await stopsWithin({ ...scene, service }, LONGEST_MS)).toBe(true);
});

it('stops though a delivery takes no notice of its signal', async () => {
  const signals: AbortSignal[] = [];
  const deliver = ({ signal }: { signal: AbortSignal }) => {
    signals.push(signal);
    return never<void>();
  };
  const scene = await stage({ deliver, stopTimeoutMs: 2000 });
  await scene.service.create(notification());
  const { delayMs } = await scene.service.reportFailure(failure());
  await scene.clock.advance(delayMs!);
  expect(signals).toHaveLength(1);
  expect(await stopsWithin(scene, 1999)).toBe(false);
  expect(signals[0]!.aborted).toBe(false);
  await scene.clock.advance(1);
  expect(signals[0]!.aborted).toBe(true);
  await scene.clock.advance(1000);
  expect(await stopsWithin(scene, 0)).toBe(true);
});

it('waits for a delivery that ends in time, and writes its outcome', async () => {
  const gate = Promise.withResolvers<void>();
  const scene = await stage({ deliver: () => gate.promise });
  await scene.service.create(notification());
  const { delayMs } = await scene.service.reportFailure(failure());
  await scene.clock.advance(delayMs!);
  expect(await stopsWithin(scene, 4000)).toBe(false);
  gate.resolve();
  expect(await stopsWithin(scene, 0)).toBe(true);
  await scene.repository.open();
  const [record] = await scene.repository.find(['n1']);
  expect(record).toMatchObject({ status: 'delivered' });
});

it('waits for wake-ups of the sweeper that are on their way to a queue', async () => {
  const scene = await stage();
  const { urgent } = scene.queues;
  const schedule = urgent.schedule.bind(urgent);
  const gate = Promise.withResolvers<void>();
  urgent.schedule = () => Promise.reject(new Error('It is away.'));
  await scene.service.create(notification());
  await scene.service.reportFailure(failure());
  let asked = 0;
  urgent.schedule = async (entries) => {
    asked += 1;
    await gate.promise;
    await schedule(entries);
  };
  await scene.clock.advance(6000);
  expect(asked).toBe(1);
  expect(await stopsWithin(scene, 1000)).toBe(false);
  gate.resolve();
  expect(await stopsWithin(scene, 0)).toBe(true);
  expect(urgent.ids()).toEqual(['n1:d1:2']);
});

it('stops though a queue never closes, and closes the others', async () => {
  let closed = 0;
  const repository = new Proxy(memoryNotifications(), {
    get(target, name: keyof NotificationRepository) {
      const value: unknown = target[name];
      if (name === 'close') return async () => void (closed += 1);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  const scene = await stage({ repository });
  scene.queues.urgent.close = () => never();
  scene.queues.bulk.close = () => Promise.reject(new Error('It is broken.'));
  const stopped = scene.service.stop().catch((error: unknown) => String(error));
  await scene.clock.advance(LONGEST_MS);
  expect(await stopped).toBe('Error: It is broken.');
  expect(closed).toBe(1);
  // The end of the test stops it once more.
  scene.service.stop = async () => undefined;
});
