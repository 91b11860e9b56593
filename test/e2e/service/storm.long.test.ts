import { describeService } from '@redrive/services/vitest';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Trouble } from './storm/journal.ts';
import { Relay } from './storm/relay.ts';
import { duplicates, latenesses, leftBehindMs, type Outcome, Scene } from './storm/scene.ts';
import { killAgain, troubleServers } from './storm/troubles.ts';

const PER_SECOND = 500;
/** Twice what it takes on a machine that does nothing else. */
const TIMEOUT_MS = 240_000;

describeService(['RabbitMQ', 'PostgreSQL 18'], () => {
  test(
    'in a storm of kills, restarts and cuts every message comes to its queue or to review, and what comes twice has a cause',
    { timeout: TIMEOUT_MS },
    async () => {
      await using scene = await Scene.open();
      const { stage, journal, producer } = scene;
      const relay = new Relay(stage, await stage.start());
      await Promise.all([
        producer.produce(PER_SECOND, 60_000),
        killAgain(relay, journal),
        troubleServers(stage, journal),
      ]);
      expectSettled(await scene.settle(relay.service));
    },
  );

  test(
    'a broker that is short of memory for ten seconds gets everything when it is not any more, and no lane waits longer',
    { timeout: TIMEOUT_MS },
    async () => {
      await using scene = await Scene.open();
      const { stage, journal, producer } = scene;
      const service = await stage.start();
      await service.ready();
      await producer.produce(PER_SECOND, 5000);
      // What was taken in before falls due meanwhile; what is sent meanwhile waits in the socket of its producer.
      await Promise.all([
        producer.produce(PER_SECOND, 15_000),
        journal.trouble('broker blocked', async () => {
          const startMs = performance.now();
          await stage.rabbitmq.setMemoryAlarm(true);
          const askingMs = performance.now() - startMs;
          await sleep(Math.max(0, 10_000 - askingMs));
          await stage.rabbitmq.setMemoryAlarm(false);
        }),
      ]);
      expectSettled(await scene.settle(service));
      const { said } = stage;
      expect(said.get('warn: the broker takes no messages for now')).toBe(1);
      expect(said.get('info: the broker takes messages again')).toBe(1);
      // Its breaker would keep a lane waiting for half a minute more.
      expect([...said.keys()].filter((line) => line.includes('lane'))).toEqual([]);
      const [{ fromMs, toMs }] = journal.troubles as [Trouble];
      const latestMs = Math.max(...latenesses(journal).map(({ lateMs }) => lateMs));
      expect(latestMs).toBeLessThan(toMs - fromMs + 5000);
    },
  );

  test(
    'instances that are stopped and replaced one after the other deliver nothing twice, and nothing late',
    { timeout: TIMEOUT_MS },
    async () => {
      await using scene = await Scene.open();
      const { stage, journal, producer } = scene;
      const relays = [await stage.start(), await stage.start()].map((one) => new Relay(stage, one));
      for (const { service } of relays) await service.ready();
      const upgrade = async () => {
        for (const relay of relays) expect(await relay.upgrade(journal)).toBe(0);
      };
      await Promise.all([producer.produce(PER_SECOND, 15_000), upgrade()]);
      const outcome = await scene.settle(relays[0]!.service);
      expectSettled(outcome);
      expect(outcome.deviations).toEqual([]);
      // Whatever this machine does besides: what one leaves to the other must not wait for the end of a lease, which is 30 s.
      expect(leftBehindMs(journal)).toBeLessThan(10_000);
    },
  );
});

/** Nothing is missing, nothing is left, and what came twice the service has counted too. */
function expectSettled(outcome: Outcome): void {
  const { faults, leftInQueues, isReady } = outcome;
  expect(faults.slice(0, 20)).toEqual([]);
  expect(leftInQueues).toEqual({});
  expect(isReady).toBe(true);
  const { published, takenIn } = duplicates(outcome);
  expect(published.seen).toBeLessThanOrEqual(published.counted);
  expect(takenIn.seen).toBeLessThanOrEqual(takenIn.counted);
}
