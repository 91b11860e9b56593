import { definePolicy } from 'redrive';
import { seededRandom, virtualClock } from 'redrive/testing';
import { EngineError } from '../errors.ts';
import { describe, expect, it } from 'vitest';
import { memory } from '../adapters/memory/index.ts';
import { hostOf } from '../host.ts';
import { Intake } from './intake.ts';
import type { Arrival } from '../model/moves.ts';
import { arrivalOf, newTask, outboxMessage, put } from '../testing/fixtures.ts';

function stage() {
  const clock = virtualClock();
  const store = memory({ clock });
  const calls: string[] = [];
  const { insert, change } = store;
  store.insert = (tasks, tx) => {
    calls.push(`insert ${tasks.length}`);
    return insert.call(store, tasks, tx);
  };
  store.change = (keys, move, tx) => {
    calls.push(`change ${keys.length}`);
    return change.call(store, keys, move, tx) as never;
  };
  const host = hostOf({ clock, random: seededRandom(1), defer: queueMicrotask });
  const intake = new Intake(
    store,
    host,
    () => 0,
    () => clock.now(),
  );
  return { clock, store, calls, intake };
}

const submitted = (task = newTask()): Arrival => ({ type: 'submit', task, policy: definePolicy() });

describe('a batch', () => {
  it('of new work is one insert', async () => {
    const { intake, calls } = stage();
    expect(await intake.store([submitted(), arrivalOf(newTask())])).toEqual([
      'accepted',
      'accepted',
    ]);
    expect(calls).toEqual(['insert 2']);
  });

  it('of submitted work that is known is a duplicate, unless it is this very one', async () => {
    const { intake, calls, store } = stage();
    const task = newTask();
    await put(store, task);
    calls.length = 0;
    expect(await intake.store([submitted(task), submitted()])).toEqual(['duplicate', 'accepted']);
    expect(calls).toEqual(['insert 2', 'change 1']);
    const again = submitted({ ...newTask(), arrival: 7 });
    expect(await intake.store([again])).toEqual(['accepted']);
    expect(await intake.store([again])).toEqual(['accepted']);
  });

  it('has one answer for each, in order, whatever became of it', async () => {
    const { intake, calls, store } = stage();
    const waiting = await put(store);
    const retried = await put(store);
    const failed = await put(store);
    await store.change([retried, failed], (task, _, i) => ({
      result: undefined,
      task: { ...task!, status: i === 0 ? 'retried' : 'failed' },
    }));
    calls.length = 0;
    const exhausted = arrivalOf(newTask());
    exhausted.task.attempt = 10;
    const results = await intake.store([
      submitted(),
      arrivalOf(waiting),
      exhausted,
      arrivalOf(retried),
      submitted(newTask({ messageId: retried.messageId })),
      arrivalOf(failed),
      arrivalOf(newTask()),
    ]);
    expect(results).toEqual([
      'accepted',
      'duplicate',
      'failed',
      'accepted',
      'duplicate',
      'duplicate',
      'accepted',
    ]);
    expect(calls).toEqual(['insert 6', 'change 5']);
  });

  it('takes the same failure twice as one and its repetition', async () => {
    const { intake, store } = stage();
    const arrival = arrivalOf(newTask());
    expect(await intake.store([arrival, arrival])).toEqual(['accepted', 'duplicate']);
    expect(await store.list({ limit: 9 })).toMatchObject([{ attempt: 1 }]);
  });

  it('that goes straight to the inbox is one commit with its item and its message', async () => {
    const { intake, calls, store } = stage();
    const review = () => outboxMessage('review');
    const arrival = arrivalOf(newTask(), { verdict: 'TOO_FAR', review });
    expect(await intake.store([arrival])).toEqual(['failed']);
    expect(calls).toEqual(['change 1']);
    expect((await store.items({ limit: 9 })).items).toMatchObject([{ reason: 'TOO_FAR' }]);
    expect(await store.takeOutbox(9, 0)).toHaveLength(1);
  });
});

describe('single calls', () => {
  it('made together are one commit', async () => {
    const { intake, calls } = stage();
    const results = await Promise.all([1, 2, 3].map(() => intake.add(submitted())));
    expect(results).toEqual(['accepted', 'accepted', 'accepted']);
    expect(calls).toEqual(['insert 3']);
  });

  it('all fail with the commit that they share', async () => {
    const { intake, store } = stage();
    store.insert = () => Promise.reject(away());
    const results = await Promise.allSettled([intake.add(submitted()), intake.add(submitted())]);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });

  it('that failed take no room from those after them', async () => {
    const { intake, store } = stage();
    store.insert = () => Promise.reject(away());
    const payload = new Uint8Array(100 * 1024 * 1024);
    for (let calls = 0; calls < 5; calls++) {
      const added = intake.add(submitted(newTask({ payload })));
      await expect(added).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    }
  });
});

describe('a slow store', () => {
  /** Every insert waits until it is let go. */
  function slowStage() {
    const { clock, store, intake } = stage();
    const { insert } = store;
    const gates: (() => void)[] = [];
    store.insert = async (tasks, tx) => {
      await new Promise<void>((resolve) => {
        gates.push(resolve);
      });
      return insert.call(store, tasks, tx);
    };
    return { clock, store, intake, gates };
  }
  const ordered = () => submitted(newTask({ orderingKey: 'customer 7' }));

  it('gets one ordered batch at a time, so that a later task is never stored before an earlier one', async () => {
    const { clock, store, intake, gates } = slowStage();
    const first = ordered();
    const second = ordered();
    const results = [intake.add(first)];
    await clock.advance(0);
    results.push(intake.add(second));
    await clock.advance(0);
    expect(gates).toHaveLength(1);
    gates[0]!();
    await results[0];
    await clock.advance(0);
    expect(gates).toHaveLength(2);
    gates[1]!();
    expect(await Promise.all(results)).toEqual(['accepted', 'accepted']);
    const [newest, oldest] = await store.list({ limit: 9 });
    expect(newest!.messageId).toBe(second.task.messageId);
    expect(newest!.id).toBeGreaterThan(oldest!.id);
  });

  it('gets two batches at a time of tasks that have no order, and a third one after them', async () => {
    const { clock, intake, gates } = slowStage();
    const results: Promise<unknown>[] = [];
    for (let n = 0; n < 3; n++) {
      results.push(intake.add(submitted()));
      await clock.advance(0);
    }
    expect(gates).toHaveLength(2);
    gates[0]!();
    await results[0];
    await clock.advance(0);
    expect(gates).toHaveLength(3);
    for (const go of gates) go();
    expect(await Promise.all(results)).toEqual(['accepted', 'accepted', 'accepted']);
  });
});

describe('what several callers have', () => {
  it('at the same moment is one commit, and each hears of its own', async () => {
    const { intake, calls, store } = stage();
    const known = newTask();
    await put(store, known);
    calls.length = 0;
    const results = await Promise.all([
      intake.storeAll([submitted(), submitted(known)]),
      intake.storeAll([submitted()]),
      intake.storeAll([submitted(known)]),
    ]);
    expect(results).toEqual([['accepted', 'duplicate'], ['accepted'], ['duplicate']]);
    expect(calls).toEqual(['insert 4', 'change 2']);
  });

  it('is refused to the one whose task no store takes, and stored for the others', async () => {
    const { intake, store } = stage();
    const bad = submitted();
    const { insert } = store;
    store.insert = (tasks, tx) =>
      tasks.includes(bad.task) ? Promise.reject(refusal) : insert.call(store, tasks, tx);
    const refusal = new EngineError('INVALID_TASK', 'no');
    const results = await Promise.all([
      intake.storeAll([submitted(), bad]),
      intake.storeAll([submitted()]),
    ]);
    expect(results).toEqual([['accepted', { error: refusal }], ['accepted']]);
  });

  it('goes by itself where that is a batch of its own', async () => {
    const { intake, calls } = stage();
    const many = Array.from({ length: 250 }, () => submitted());
    await Promise.all([intake.storeAll(many), intake.storeAll([submitted()])]);
    expect(calls).toEqual(['insert 250', 'insert 1']);
  });

  it('is never more at once than one batch may have', async () => {
    const { intake, calls } = stage();
    const groups = Array.from({ length: 6 }, () => Array.from({ length: 200 }, () => submitted()));
    await Promise.all(groups.map((group) => intake.storeAll(group)));
    expect(calls).toEqual(['insert 1000', 'insert 200']);
  });
});

function away(): EngineError {
  return new EngineError('STORE_UNAVAILABLE', 'away');
}
