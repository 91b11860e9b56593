/** A process that replays its share of an inbox while another does the same, and works off what comes of it. */
import { createEngine, isEngineError } from '@redrive/engine';
import type { Place } from '../crash/job.ts';
import { storeAt } from './place.ts';

export interface Order {
  place: Place;
  name: string;
  /** A bulk job over these, and besides each of `single` by itself. */
  ids: number[];
  single: number[];
}

/** What it has executed, and how many of the single replays were its own. */
export interface Account {
  executed: number[];
  replayed: number;
  job: { done: number; skipped: number; total: number; failed: number };
}

process.once('message', (order: Order) => void run(order));

async function run({ place, name, ids, single }: Order): Promise<void> {
  const executed: number[] = [];
  const store = storeAt(place);
  const engine = createEngine({ store, instance: name, poll: '200ms' }).handle(
    'work',
    { concurrency: 200 },
    (n: number) => void executed.push(n),
  );
  await engine.start();
  process.send?.('ready');
  await new Promise((resolve) => {
    process.once('message', resolve);
  });
  const [job, singles] = await Promise.all([
    engine.inbox.replayAll({ ids }, { by: name }),
    Promise.all(single.map((id) => replayOne(id))),
  ]);
  let report = job;
  while (report.state !== 'finished') {
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
    report = await engine.inbox.job(job.id);
  }
  process.send?.('finished');
  await new Promise((resolve) => {
    process.once('message', resolve);
  });
  await engine.stop();
  const { done, skipped, total, failed } = report;
  const replayed = singles.filter(Boolean).length;
  const account: Account = { executed, replayed, job: { done, skipped, total, failed } };
  process.send?.(account);
  process.disconnect();

  async function replayOne(id: number): Promise<boolean> {
    try {
      await engine.inbox.replay(id, { by: name });
      return true;
    } catch (error) {
      if (isEngineError(error) && error.code === 'ITEM_CLOSED') return false;
      throw error;
    }
  }
}
