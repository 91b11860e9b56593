import { deepEqual, equal, ok } from 'node:assert/strict';
import type { DelayAnswer, DelayHandler } from '../../ports/delay-queue.ts';
import {
  type DelayCases,
  type DelayStage,
  done,
  entry,
  expectOnly,
  gate,
  idsOf,
  listen,
  numbered,
  textOf,
} from './delay-queue-stage.ts';

const one = { maxBatch: 1, concurrency: 1 };

export const consumeCases: DelayCases = {
  'hands over what is there and what comes': async (stage) => {
    await stage.queue.schedule([entry('before')]);
    const { got } = await listen(stage, stage.queue);
    await stage.until('the entry that was there', () => got.length === 1);
    await stage.queue.schedule([entry('after')]);
    await expectOnly(stage, got, ['before', 'after']);
  },

  'hands over an early entry though it waits for a late one': async (stage) => {
    const elsewhere = await stage.another();
    await stage.queue.schedule([entry('late', 3_600_000)]);
    const { got } = await listen(stage, stage.queue);
    await stage.pass(20);
    await elsewhere.schedule([entry('early', 10)]);
    await stage.until('the early entry', () => got.length === 1);
    deepEqual(idsOf(got), ['early']);
  },

  'hands over no more in one batch than may be': async (stage) => {
    await stage.queue.schedule(numbered(20));
    const { got, sizes } = await listen(stage, stage.queue, undefined, { maxBatch: 3 });
    await stage.until('all entries', () => got.length === 20);
    ok(Math.max(...sizes) <= 3, `a batch of ${Math.max(...sizes)}`);
  },

  'has no more batches under way than may be, and as many as may be': async (stage) => {
    await stage.queue.schedule(numbered(10));
    const { opens, open } = gate();
    let most = 0;
    let underWay = 0;
    const answer = async () => {
      underWay += 1;
      most = Math.max(most, underWay);
      await opens;
      underWay -= 1;
      return done;
    };
    const { got } = await listen(stage, stage.queue, answer, { maxBatch: 1, concurrency: 3 });
    await stage.until('three batches', () => underWay === 3);
    await stage.pass(50);
    equal(got.length, 3);
    open();
    await stage.until('all entries', () => got.length === 10);
    ok(most <= 3, `${most} at once`);
  },

  'hands over again what is wanted again, with its delay from the answer': async (stage) => {
    await stage.queue.schedule([entry('a', 0, 'kept')]);
    let answeredAtMs = 0;
    const answer = async (): Promise<DelayAnswer> => {
      if (answeredAtMs > 0) return done;
      await stage.pass(30);
      answeredAtMs = stage.nowMs();
      return { type: 'again', delayMs: 150 };
    };
    const { got } = await listen(stage, stage.queue, answer);
    await stage.until('the entry again', () => got.length === 2);
    const [, second] = got;
    const waitedMs = second!.atMs - answeredAtMs;
    ok(waitedMs >= 150 - stage.slackMs, `again after ${waitedMs} ms instead of 150`);
    deepEqual([textOf(second!), second!.entry.redeliveries], ['kept', 0]);
    await expectOnly(stage, got, ['a', 'a']);
  },

  'takes each answer for its own entry': async (stage) => {
    await stage.queue.schedule(numbered(9));
    const seen = new Set<string>();
    const answer = ({ id }: { id: string }): DelayAnswer => {
      const isWanted = Number(id.slice(1)) % 4 === 1 && !seen.has(id);
      seen.add(id);
      return isWanted ? { type: 'again', delayMs: 0 } : done;
    };
    const { got } = await listen(stage, stage.queue, answer);
    const expected = [...numbered(9), ...[1, 5].map((i) => entry(`e${i}`))].map(({ id }) => id);
    await expectOnly(stage, got, expected);
  },

  'hands over all again where the handler fails, and not in a hot loop': (stage) =>
    expectAgain(stage, async () => {
      throw new Error('broken on purpose');
    }),

  'hands over all again where the handler throws at once': (stage) =>
    expectAgain(stage, () => {
      throw new Error('broken on purpose');
    }),

  'hands over all again where the handler gives too few answers': (stage) =>
    expectAgain(stage, async (batch) => batch.slice(1).map(() => done)),

  'hands over all again where the handler gives too many answers': (stage) =>
    expectAgain(stage, async (batch) => [...batch.map(() => done), done]),

  'hands over all again where an answer is none': (stage) =>
    expectAgain(stage, async (batch) =>
      batch.map((_, i) => (i === batch.length - 1 ? ({ type: 'finished' } as never) : done)),
    ),

  'goes on with others while one entry fails': async (stage) => {
    await stage.queue.schedule([entry('bad'), ...numbered(20)]);
    const good: string[] = [];
    let fails = true;
    const answer = ({ id }: { id: string }) => {
      if (id === 'bad' && fails) throw new Error('broken on purpose');
      good.push(id);
      return done;
    };
    await listen(stage, stage.queue, answer, { maxBatch: 1, concurrency: 2 });
    await stage.until('the others', () => good.length === 20);
    fails = false;
    await stage.until('the bad one', () => good.includes('bad'));
  },

  'hands over each entry once to several consumers together': async (stage) => {
    const second = await stage.another();
    const limits = { maxBatch: 5, concurrency: 2 };
    const all = [
      await listen(stage, stage.queue, undefined, limits),
      await listen(stage, stage.queue, undefined, limits),
      await listen(stage, second, undefined, limits),
    ];
    await Promise.all([
      stage.queue.schedule(numbered(100)),
      second.schedule(numbered(100, 30, 'f')),
    ]);
    const count = () => all.reduce((sum, { got }) => sum + got.length, 0);
    await stage.until('all entries', () => count() >= 200);
    await stage.pass(50);
    const got = all.flatMap((listener) => listener.got);
    equal(new Set(idsOf(got)).size, 200);
    equal(got.length, 200);
  },

  'waits at its stop for the handlers under way, and their answers count': async (stage) => {
    await stage.queue.schedule([entry('a')]);
    const { opens, open } = gate<DelayAnswer>();
    const { got, consumer } = await listen(stage, stage.queue, () => opens, one);
    await stage.until('the entry', () => got.length === 1);
    let isStopped = false;
    const stopped = Promise.all([consumer.stop(), consumer.stop()]).then(() => (isStopped = true));
    await stage.pass(20);
    equal(isStopped, false);
    open(done);
    await stopped;
    await consumer.stop();
    const next = await listen(stage, stage.queue);
    await stage.queue.schedule([entry('after', 10)]);
    await expectOnly(stage, next.got, ['after']);
  },

  'gives the rest to another consumer at once when it is stopped': async (stage) => {
    const second = await stage.another();
    await stage.queue.schedule(numbered(20));
    const { opens, open } = gate<DelayAnswer>();
    const first = await listen(stage, stage.queue, () => opens, one);
    await stage.until('the first entry', () => first.got.length === 1);
    const stopped = first.consumer.stop();
    open(done);
    await stopped;
    const rest = await listen(stage, second);
    const ids = numbered(20).map(({ id }) => id);
    // Far within the lease: nothing may stay with who has stopped.
    await stage.until('the rest', () => first.got.length + rest.got.length >= 20);
    deepEqual([...idsOf(first.got), ...idsOf(rest.got)].toSorted(), ids.toSorted());
  },

  'takes nothing more after its stop': async (stage) => {
    const { got, consumer } = await listen(stage, stage.queue);
    await consumer.stop();
    await stage.queue.schedule([entry('a')]);
    const next = await listen(stage, stage.queue);
    await stage.until('the entry', () => next.got.length === 1);
    deepEqual(got, []);
  },

  'aborts a handler that takes too long, and hands its entries over once more': async (stage) => {
    await stage.queue.schedule([entry('a')]);
    const signals: AbortSignal[] = [];
    const first = gate<DelayAnswer>();
    const second = gate<DelayAnswer>();
    const answer = (_: unknown, signal: AbortSignal) => {
      signals.push(signal);
      return signals.length === 1 ? first.opens : signals.length === 2 ? second.opens : done;
    };
    const limits = { ...one, timeoutMs: 400 };
    const { got } = await listen(stage, stage.queue, answer, limits);
    // Its place is free again, though the handler still hangs.
    await stage.until('the entry again', () => got.length === 2);
    equal(signals[0]?.aborted, true);
    ok(got[1]!.entry.redeliveries >= 1);
    ok(got[1]!.atMs - got[0]!.atMs >= 400 - stage.slackMs);
    // An answer that comes after the abort changes nothing.
    first.open(done);
    await stage.pass(20);
    second.open({ type: 'again', delayMs: 0 });
    await stage.until('the entry once more', () => got.length > 2);
    await stage.queue.schedule([entry('after')]);
    await stage.until('the next entry', () => idsOf(got).includes('after'));
  },

  'aborts a handler that does not end when it is stopped, and gives its entries back': async (
    stage,
  ) => {
    await stage.queue.schedule([entry('a')]);
    let signal: AbortSignal | undefined;
    const { opens, open } = gate<DelayAnswer>();
    const hang = (_: unknown, given: AbortSignal) => {
      signal = given;
      return opens;
    };
    const { got, consumer } = await listen(stage, stage.queue, hang, { ...one, stopTimeoutMs: 20 });
    await stage.until('the entry', () => got.length === 1);
    equal(signal?.aborted, false);
    let isStopped = false;
    void consumer.stop().then(() => (isStopped = true));
    await stage.until('the stop', () => isStopped);
    equal(signal?.aborted, true);
    const { opens: nextOpens, open: openNext } = gate<DelayAnswer>();
    const next = await listen(stage, stage.queue, () => (next.got.length > 1 ? done : nextOpens));
    await stage.until('the entry again', () => next.got.length === 1);
    // An answer that comes after the abort changes nothing.
    open(done);
    await stage.pass(20);
    openNext({ type: 'again', delayMs: 0 });
    await stage.until('the entry once more', () => next.got.length > 1);
  },
};

/** The handler is wrong for a while, then right. Nothing is lost, and its wrong answers change nothing. */
async function expectAgain(stage: DelayStage, wrong: DelayHandler): Promise<void> {
  await stage.queue.schedule(numbered(5));
  let calls = 0;
  let isRight = false;
  const finished: string[] = [];
  let mostRedeliveries = 0;
  const handler: DelayHandler = (batch, signal) => {
    calls += 1;
    if (!isRight) return wrong(batch, signal);
    finished.push(...batch.map(({ id }) => id));
    for (const { redeliveries } of batch)
      mostRedeliveries = Math.max(mostRedeliveries, redeliveries);
    return Promise.resolve(batch.map(() => done));
  };
  await stage.queue.consume(handler, { concurrency: 1 });
  await stage.until('the first call', () => calls > 0);
  const before = calls;
  await stage.pass(300);
  // Five entries, in one batch or by themselves, with pauses that grow.
  ok(calls - before <= 40, `${calls - before} calls within 300 ms: a hot loop`);
  isRight = true;
  await stage.until('all entries again', () => finished.length >= 5);
  deepEqual(
    finished.toSorted(),
    numbered(5).map(({ id }) => id),
  );
  ok(mostRedeliveries >= 1, 'a redelivery is not counted');
}
