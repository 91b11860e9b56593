import { deepEqual, equal, ok, rejects } from 'node:assert/strict';
import type { DelayAnswer } from '../../ports/delay-queue.ts';
import { needing } from '../suite.ts';
import {
  type DelayCases,
  type DelayStage,
  done,
  entry,
  expectOnly,
  gate,
  listen,
  numbered,
  textOf,
} from './delay-queue-stage.ts';

export const deduplicateCases: DelayCases = needing<DelayStage, 'deduplicates'>('deduplicates', {
  'the same id again changes nothing while the first waits': async (stage) => {
    const startMs = stage.nowMs();
    await stage.queue.schedule([entry('a', 200, 'first'), entry('a', 0, 'in the same call')]);
    await stage.queue.schedule([entry('a', 0, 'second')]);
    const elsewhere = await stage.another();
    await elsewhere.schedule([entry('a', 0, 'elsewhere')]);
    const { got } = await listen(stage, stage.queue);
    await expectOnly(stage, got, ['a']);
    equal(textOf(got[0]!), 'first');
    const waitedMs = got[0]!.atMs - startMs;
    ok(waitedMs >= 200 - stage.slackMs, `${waitedMs} ms instead of 200: early`);
  },

  'the same id again changes nothing while the first is in hand': async (stage) => {
    await stage.queue.schedule([entry('a', 0, 'first')]);
    const { opens, open } = gate<DelayAnswer>();
    const { got } = await listen(stage, stage.queue, () => opens);
    await stage.until('the entry', () => got.length === 1);
    await stage.queue.schedule([entry('a', 0, 'second')]);
    open(done);
    await expectOnly(stage, got, ['a']);
  },

  'the same id again changes nothing while the first waits once more': async (stage) => {
    await stage.queue.schedule([entry('a', 0, 'first')]);
    const answer = (): DelayAnswer => (got.length === 1 ? { type: 'again', delayMs: 150 } : done);
    const { got, consumer } = await listen(stage, stage.queue, answer);
    await stage.until('the entry', () => got.length === 1);
    await consumer.stop();
    await stage.queue.schedule([entry('a', 0, 'second')]);
    const next = await listen(stage, stage.queue);
    await expectOnly(stage, next.got, ['a']);
    equal(textOf(next.got[0]!), 'first');
  },

  'the same id is a new entry after the answer': async (stage) => {
    for (const text of ['1', '2', '3']) {
      await stage.queue.schedule([entry('a', 10, text)]);
      const { got, consumer } = await listen(stage, stage.queue);
      await stage.until('the next entry', () => got.length === 1);
      // Its answer is written when the consumer has stopped.
      await consumer.stop();
      deepEqual([textOf(got[0]!), got[0]!.entry.redeliveries], [text, 0]);
    }
  },
});

export const cancelCases: DelayCases = needing<DelayStage, 'cancels'>('cancels', {
  'removes what waits, and says of each whether it was there': async (stage) => {
    await stage.queue.schedule(numbered(5, 100));
    deepEqual(await stage.queue.cancel(['e1', 'unknown', 'e3', '{e}', 'e1']), [
      true,
      false,
      true,
      false,
      false,
    ]);
    deepEqual(await stage.queue.cancel(['e1']), [false]);
    deepEqual(await stage.queue.cancel([]), []);
    const { got } = await listen(stage, stage.queue);
    await expectOnly(stage, got, ['e0', 'e2', 'e4']);
  },

  'removes what is due and not in hand': async (stage) => {
    await stage.queue.schedule(numbered(3));
    await stage.pass(10);
    deepEqual(await stage.queue.cancel(['e0']), [true]);
    const { got } = await listen(stage, stage.queue);
    await expectOnly(stage, got, ['e1', 'e2']);
  },

  'leaves what is in hand to its handler': async (stage) => {
    await stage.queue.schedule([entry('a')]);
    const { opens, open } = gate<DelayAnswer>();
    const { got } = await listen(stage, stage.queue, () => (got.length === 1 ? opens : done));
    await stage.until('the entry', () => got.length === 1);
    deepEqual(await stage.queue.cancel(['a']), [false]);
    open({ type: 'again', delayMs: 0 });
    await expectOnly(stage, got, ['a', 'a']);
  },

  'makes room for the same id': async (stage) => {
    await stage.queue.schedule([entry('a', 3_600_000, 'first')]);
    deepEqual(await stage.queue.cancel(['a']), [true]);
    await stage.queue.schedule([entry('a', 0, 'second')]);
    const { got } = await listen(stage, stage.queue);
    await expectOnly(stage, got, ['a']);
    equal(textOf(got[0]!), 'second');
  },

  'takes many ids, and refuses what is none': async (stage) => {
    const entries = numbered(2500, 3_600_000);
    await stage.queue.schedule(entries);
    const cancelled = await stage.queue.cancel(entries.map(({ id }) => id));
    equal(cancelled.filter(Boolean).length, 2500);
    await rejects(stage.queue.cancel(['', 7 as never]), { code: 'INVALID_ENTRY' });
  },
});

export const depthCases: DelayCases = needing<DelayStage, 'counts'>('counts', {
  'counts what waits and what is in hand': async (stage) => {
    equal(await stage.queue.depth(), 0);
    await stage.queue.schedule([...numbered(7, 3_600_000), entry('now')]);
    equal(await stage.queue.depth(), 8);
    const { opens, open } = gate<DelayAnswer>();
    const { got } = await listen(stage, stage.queue, () => opens);
    await stage.until('the entry', () => got.length === 1);
    equal(await stage.queue.depth(), 8);
    open(done);
    await stage.until('the answer', async () => (await stage.queue.depth()) === 7);
    equal(await (await stage.another()).depth(), 7);
  },
});
