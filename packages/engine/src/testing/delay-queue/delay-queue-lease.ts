import { deepEqual, equal, ok } from 'node:assert/strict';
import type { DelayAnswer } from '../../ports/delay-queue.ts';
import {
  type DelayCases,
  done,
  entry,
  expectOnly,
  gate,
  idsOf,
  listen,
  numbered,
} from './delay-queue-stage.ts';

/** Cases about leases: their queues have short ones. */
export const leaseCases: DelayCases = {
  'renews while the handler takes longer than a lease, and nobody else gets the entry': async (
    stage,
  ) => {
    const second = await stage.another();
    await stage.queue.schedule([entry('slow')]);
    let signal: AbortSignal | undefined;
    const answer = async (_: unknown, given: AbortSignal) => {
      signal = given;
      await stage.pass(stage.leaseMs * 3);
      return done;
    };
    const first = await listen(stage, stage.queue, answer);
    await stage.until('the entry', () => first.got.length === 1);
    const other = await listen(stage, second);
    await stage.pass(stage.leaseMs * 3.5);
    equal(signal?.aborted, false);
    await stage.queue.schedule([entry('after', 10)]);
    await stage.until('the next entry', () => first.got.length + other.got.length >= 2);
    deepEqual(idsOf([...first.got, ...other.got]), ['after', 'slow']);
  },

  'aborts the signal when the lease is lost, and the answer changes nothing': {
    needs: 'expireLeases',
    run: async (stage) => {
      const second = await stage.another();
      await stage.queue.schedule([entry('a')]);
      let signal: AbortSignal | undefined;
      const mine = gate<DelayAnswer>();
      const first = await listen(
        stage,
        stage.queue,
        (_, given) => {
          signal = given;
          return mine.opens;
        },
        { concurrency: 1 },
      );
      await stage.until('the entry', () => first.got.length === 1);
      const theirs = gate<DelayAnswer>();
      const other = await listen(stage, second, () => (other.got.length < 2 ? theirs.opens : done));
      await stage.expireLeases();
      await stage.until('the entry elsewhere', () => other.got.length === 1);
      ok(other.got[0]!.entry.redeliveries >= 1, 'the redelivery is not counted');
      await stage.until('the signal', () => signal!.aborted);
      mine.open(done);
      await stage.pass(stage.leaseMs / 4);
      theirs.open({ type: 'again', delayMs: 0 });
      // It is still there for who holds it, so the stale answer has not removed it.
      await stage.until('the entry again', () => first.got.length + other.got.length >= 3);
    },
  },

  'hands over to another what a killed consumer had, when the lease is over': {
    needs: 'kill',
    run: async (stage) => {
      const first = await stage.another();
      await stage.queue.schedule(numbered(12));
      // It ends when its lease is lost, and says done: nobody may believe it.
      const hang = (_: unknown, signal: AbortSignal) =>
        new Promise<DelayAnswer>((resolve) => {
          signal.addEventListener('abort', () => resolve(done));
        });
      const dead = await listen(stage, first, hang, { maxBatch: 5, concurrency: 2 });
      await stage.until('some entries', () => dead.got.length >= 5);
      await stage.kill(first);
      const { got } = await listen(stage, stage.queue);
      const ids = numbered(12).map(({ id }) => id);
      await stage.until('all entries', () => new Set(idsOf(got)).size === 12);
      deepEqual([...new Set(idsOf(got))], ids.toSorted());
      const lost = new Set(idsOf(dead.got));
      const again = got.filter((one) => lost.has(one.entry.id));
      ok(
        again.every((one) => one.entry.redeliveries >= 1),
        'a redelivery is not counted',
      );
    },
  },

  'comes back to life after a kill with an empty queue': {
    needs: 'kill',
    run: async (stage) => {
      const first = await stage.another();
      await listen(stage, first);
      await stage.kill(first);
      const { got } = await listen(stage, stage.queue);
      await stage.queue.schedule(numbered(3, 10));
      await stage.until('the entries', () => got.length >= 3);
      await expectOnly(stage, got, ['e0', 'e1', 'e2']);
    },
  },
};
