import type { FailureReport } from '@redrive/engine';
import pino from 'pino';
import type { CriterionResult } from 'redrive';
import { virtualClock } from 'redrive/testing';
import { expect, it } from 'vitest';
import { ReviewWriter } from './review-writer.ts';

const failed: CriterionResult = {
  matches: false,
  reason: 'DATA_ERROR',
  attemptCount: null,
  limit: null,
  errors: [{ code: 'DATA_UNAVAILABLE', message: 'attemptCount is missing' }],
  warnings: [],
};

function writerOf() {
  const clock = virtualClock();
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const store = { isAway: false, hangs: false, refuses: false, batches: [] as FailureReport[][] };
  let dropped = 0;
  const counts = { dropped: (count: number) => void (dropped += count) };
  const writer = new ReviewWriter({ clock, log, counts, maxPayloadBytes: 1024 * 1024 });
  const report = async (reports: readonly FailureReport[]) => {
    if (store.hangs) await new Promise<never>(() => {});
    if (store.isAway) throw new Error('the store is away');
    store.batches.push([...reports]);
    return reports.map(({ messageId: id }) =>
      store.refuses
        ? ({
            status: 'rejected',
            code: 'INVALID_TASK',
            message: 'no',
            path: '',
            faults: [],
          } as const)
        : { status: 'failed' as const, id },
    );
  };
  const add = (id: unknown, more: object = {}) =>
    writer.add('hasRetriesAvailable', { entity: { id, ...more } }, failed);
  const written = () => store.batches.flat().length;
  return { clock, lines, store, writer, report, add, written, dropped: () => dropped };
}

it('writes what comes within a moment together, and waits until it may', async () => {
  const { clock, writer, report, add, store } = writerOf();
  add('a');
  add('b');
  add('a');
  await clock.advance(1000);
  expect(store.batches).toEqual([]);
  writer.attach(report);
  await clock.advance(100);
  expect(store.batches.map((batch) => batch.length)).toEqual([3]);
  expect(writer.size).toBe(0);
  add('c');
  await clock.advance(99);
  expect(store.batches).toHaveLength(1);
  await clock.advance(1);
  expect(store.batches).toHaveLength(2);
});

it('keeps what it has while the store is away, says so once, and writes it when the store is back', async () => {
  const { clock, writer, report, add, store, lines, written, dropped } = writerOf();
  writer.attach(report);
  store.isAway = true;
  for (let i = 0; i < 20; i++) {
    add('a');
    add(i);
    await clock.advance(5000);
  }
  expect(writer.size).toBe(21);
  expect(lines.filter((line) => line.includes('wait for the store'))).toHaveLength(1);
  store.isAway = false;
  await clock.advance(15_000);
  expect([written(), writer.size, dropped()]).toEqual([40, 0, 0]);
  expect(lines.at(-1)).toContain('are written to the inbox again');
});

it('holds 10 000 at most, and counts what it drops', async () => {
  const { clock, writer, report, add, store, lines, dropped, written } = writerOf();
  writer.attach(report);
  store.hangs = true;
  add('first');
  await clock.advance(100);
  for (let i = 0; i < 10_500; i++) add(i);
  expect(writer.size).toBe(10_000);
  expect(dropped()).toBe(501);
  expect(lines.filter((line) => line.includes('too many at once'))).toHaveLength(1);
  expect(written()).toBe(0);
});

it('holds 32 MiB at most', () => {
  const { writer, add, dropped } = writerOf();
  for (let i = 0; i < 1000; i++) add(i, { blob: 'x'.repeat(60_000) });
  expect(writer.size).toBeLessThan(600);
  expect(dropped()).toBe(1000 - writer.size);
});

it('holds 32 MiB at most also of what the store did not take', async () => {
  const { clock, writer, report, add, store, dropped } = writerOf();
  writer.attach(report);
  store.isAway = true;
  for (let i = 0; i < 400; i++) add(i, { blob: 'x'.repeat(60_000) });
  await clock.advance(100);
  expect([writer.size, dropped()]).toEqual([400, 0]);
  for (let i = 400; i < 1000; i++) add(i, { blob: 'x'.repeat(60_000) });
  expect(writer.size).toBeLessThan(600);
  expect(dropped()).toBe(1000 - writer.size);
});

it('counts the settings of a request among them', () => {
  const { writer, dropped } = writerOf();
  const settings = { context: 'x'.repeat(16_000) };
  for (let i = 0; i < 3000; i++) {
    writer.add('hasRetriesAvailable', { entity: { id: i }, settings }, failed);
  }
  expect(writer.size).toBeLessThan(2100);
  expect(dropped()).toBe(3000 - writer.size);
});

it('measures the settings that many entities share once', () => {
  const { writer } = writerOf();
  let reads = 0;
  const settings = Object.defineProperty({}, 'context', {
    enumerable: true,
    get: () => (reads += 1) && 'x'.repeat(20_000),
  });
  for (let i = 0; i < 100; i++) {
    writer.add('hasRetriesAvailable', { entity: { id: i }, settings }, failed);
  }
  expect([reads, writer.size]).toEqual([1, 100]);
});

it('writes at most 50 occurrences of one entity at once', async () => {
  const { clock, writer, report, add, dropped, written } = writerOf();
  writer.attach(report);
  for (let i = 0; i < 60; i++) add('a');
  await clock.advance(100);
  expect([written(), dropped()]).toEqual([50, 10]);
});

it('writes in batches of 500', async () => {
  const { clock, writer, report, add, store } = writerOf();
  writer.attach(report);
  for (let i = 0; i < 1200; i++) add(i);
  await clock.advance(300);
  expect(store.batches.map((batch) => batch.length)).toEqual([500, 500, 200]);
});

it('drops what the store refuses, and says why', async () => {
  const { clock, writer, report, add, store, lines, dropped } = writerOf();
  writer.attach(report);
  store.refuses = true;
  add('a');
  await clock.advance(100);
  expect([writer.size, dropped()]).toEqual([0, 1]);
  expect(lines.join('')).toContain('the inbox refused failed evaluations: no');
});

it('drains on stop, but not for longer than 1.5 s', async () => {
  const swift = writerOf();
  swift.writer.attach(swift.report);
  for (let i = 0; i < 1200; i++) swift.add(i);
  await swift.writer.stop();
  expect([swift.written(), swift.dropped()]).toEqual([1200, 0]);
  swift.add('late');
  expect(swift.dropped()).toBe(1);
  await swift.writer.stop();

  const slow = writerOf();
  slow.writer.attach(slow.report);
  slow.store.hangs = true;
  slow.add('a');
  await slow.clock.advance(100);
  slow.add('b');
  const stopped = slow.writer.stop();
  await slow.clock.advance(1500);
  await stopped;
  expect(slow.dropped()).toBe(2);
  expect(slow.lines.at(-1)).toContain('were not written to the inbox');
});

it('does not fail for an entity that cannot be read', () => {
  const { writer, dropped } = writerOf();
  const trap = new Proxy(
    {},
    {
      get: () => {
        throw new Error('trap');
      },
    },
  );
  let deep: object = {};
  for (let i = 0; i < 100_000; i++) deep = { deep };
  for (const entity of [trap, { id: 'deep', deep }, Symbol('x'), 7n, undefined]) {
    writer.add('hasRetriesAvailable', { entity }, failed);
  }
  expect(writer.size + dropped()).toBeGreaterThanOrEqual(2);
});

it('adds what failed meanwhile to what could not be written', async () => {
  const { clock, writer, add } = writerOf();
  const writes: number[] = [];
  const away = Promise.withResolvers<never>();
  writer.attach(async (reports) => {
    writes.push(reports.length);
    if (writes.length === 1) return away.promise;
    return reports.map(({ messageId: id }) => ({ status: 'failed' as const, id }));
  });
  add('a');
  await clock.advance(100);
  add('a');
  away.reject(new Error('the store is away'));
  await clock.advance(1000);
  expect(writes).toEqual([1, 2]);
  expect(writer.size).toBe(0);
});
