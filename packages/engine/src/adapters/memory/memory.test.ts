import { virtualClock } from 'redrive/testing';
import { describe, expect, test } from 'vitest';
import { auditSuite } from '../../testing/audit/audit-suite.ts';
import { inboxSuite } from '../../testing/inbox/inbox-suite.ts';
import { modelSuite } from '../../testing/model/model.ts';
import { newTask } from '../../testing/fixtures.ts';
import { scheduleSuite } from '../../testing/schedule/schedule-suite.ts';
import type { StoreSetup } from '../../testing/stage.ts';
import { memory, MemoryAudit } from './index.ts';

const { capabilities } = memory();

const byVirtualClock: StoreSetup = {
  capabilities,
  async open() {
    const clock = virtualClock();
    const store = memory({ clock });
    await store.open();
    return { store, clock, close: () => store.close() };
  },
};

/** As a store whose clock nobody can move. */
const byRealClock: StoreSetup = {
  capabilities,
  async open() {
    const store = memory();
    await store.open();
    return { store, close: () => store.close() };
  },
};

describe.each([
  ['by a virtual clock', byVirtualClock],
  ['by the real clock', byRealClock],
])('the memory store %s', (_, setup) => {
  for (const { name, skip, run: assertCase } of [...scheduleSuite(setup), ...inboxSuite(setup)]) {
    test.skipIf(skip)(`${name}`, () => assertCase());
  }

  // It is the model: this shows that the histories mean the same by both kinds of clocks.
  for (const { name, run: assertCase } of modelSuite({
    ...setup,
    model: (clock) => memory({ clock }),
    runs: 3,
  })) {
    test(`${name}`, () => assertCase());
  }
});

describe('the memory store', () => {
  test('refuses what it has no room for, whole', async () => {
    const store = memory({ maxTasks: 2 });
    await store.insert([newTask()]);
    const tasks = [newTask(), newTask()];
    await expect(store.insert(tasks)).rejects.toThrow(
      expect.objectContaining({ code: 'STORE_FULL', message: expect.stringContaining('maxTasks') }),
    );
    expect(await store.get(tasks[0]!)).toBeUndefined();
    expect(await store.insert([tasks[0]!])).toEqual([expect.any(Number)]);
  });

  test('takes what it knows and changes what it has when it is full', async () => {
    const store = memory({ maxTasks: 1 });
    const task = newTask();
    await store.insert([task]);
    expect(await store.insert([task])).toEqual([undefined]);
    await store.change([task], (found) => ({ result: 1, task: { ...found!, attempt: 3 } }));
    expect((await store.get(task))?.attempt).toBe(3);
  });
});

describe('the audit trail in memory', () => {
  const open = async () => {
    const sink = new MemoryAudit();
    return { sink, written: async () => sink.events, close: async () => {} };
  };
  for (const { name, skip, run: assertCase } of auditSuite({
    open,
    reading: true,
    erasing: true,
  })) {
    test.skipIf(skip)(`${name}`, () => assertCase());
  }

  test('keeps the newest', async () => {
    const sink = new MemoryAudit(3);
    const base = { event_type: 'x', timestamp: '2025-01-01T00:00:00.000Z', instance: 'i' };
    for (let sequence = 1; sequence <= 5; sequence++) await sink.write([{ ...base, sequence }]);
    expect(sink.events.map(({ sequence }) => sequence)).toEqual([3, 4, 5]);
  });
});
