import { deepEqual, rejects } from 'node:assert/strict';
import {
  type DelayCases,
  entry,
  expectOnly,
  idsOf,
  listen,
  numbered,
} from './delay-queue-stage.ts';

export const lifecycleCases: DelayCases = {
  'opens again without harm': async (stage) => {
    await stage.queue.schedule([entry('a', 30)]);
    await Promise.all([stage.queue.open(), stage.queue.open()]);
    const { got } = await listen(stage, stage.queue);
    await expectOnly(stage, got, ['a']);
  },

  'is closed after a close that came while it was opening': async ({ queue }) => {
    await queue.close();
    const opening = queue.open().catch(() => undefined);
    await Promise.all([queue.close(), opening]);
    await rejects(queue.schedule([entry('late')]), { code: 'QUEUE_CLOSED' });
  },

  'closes twice without harm, and refuses calls after that': async ({ queue }) => {
    await Promise.all([queue.close(), queue.close()]);
    await queue.close();
    const closed = { code: 'QUEUE_CLOSED' };
    await rejects(queue.schedule([entry('late')]), closed);
    await rejects(
      queue.consume(() => Promise.resolve([]), {}),
      closed,
    );
    if (queue.capabilities.cancels) await rejects(queue.cancel(['late']), closed);
    if (queue.capabilities.counts) await rejects(queue.depth(), closed);
  },

  'refuses limits that are none': async ({ queue }) => {
    const limits = [{ maxBatch: 0 }, { concurrency: 1.5 }, { maxBatch: NaN, concurrency: -1 }];
    for (const one of limits) {
      await rejects(
        queue.consume(() => Promise.resolve([]), one),
        { code: 'INVALID_ENTRY' },
      );
    }
  },

  'stops its consumers when it closes, and leaves the rest to others': async (stage) => {
    const second = await stage.another();
    const { got } = await listen(stage, stage.queue);
    await stage.queue.schedule([entry('a')]);
    await stage.until('the entry', () => got.length === 1);
    await stage.queue.close();
    await second.schedule(numbered(3));
    const other = await listen(stage, second);
    await expectOnly(stage, other.got, ['e0', 'e1', 'e2']);
    deepEqual(idsOf(got), ['a']);
  },

  'works again after it was closed': async (stage) => {
    await stage.queue.schedule([entry('before', 50)]);
    const keeper = await stage.another();
    await stage.queue.close();
    await stage.queue.open();
    await stage.queue.schedule([entry('after', 50)]);
    const { got } = await listen(stage, stage.queue);
    await expectOnly(stage, got, ['before', 'after']);
    await keeper.close();
  },
};
