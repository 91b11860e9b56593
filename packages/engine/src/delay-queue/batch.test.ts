import { virtualClock } from 'redrive/testing';
import { expect, test } from 'vitest';
import { hostOf } from '../host.ts';
import type { DelayAnswer } from '../ports/delay-queue.ts';
import { Batch } from './batch.ts';
import type { Leased, LeaseEnd } from './lease-source.ts';

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const LEASE_MS = 3000;

/** A batch of two entries whose handler answers when the test says so. */
function batchOf(
  renewals: readonly (boolean[] | Promise<boolean[]>)[] = [],
  timeoutMs = 60_000,
  writes?: Promise<void>,
) {
  const clock = virtualClock();
  const ended: (readonly LeaseEnd[])[] = [];
  const renewed: number[] = [];
  const answers = Promise.withResolvers<readonly DelayAnswer[]>();
  let signal: AbortSignal | undefined;
  const source = {
    leaseMs: LEASE_MS,
    take: async () => ({ leased: [], nextInMs: Infinity }),
    renew: async (leased: readonly Leased[]) => {
      renewed.push(clock.monotonic());
      return renewals[renewed.length - 1] ?? leased.map(() => true);
    },
    end: async (_: readonly Leased[], ends: readonly LeaseEnd[]) => {
      await writes;
      ended.push(ends);
    },
    watch: () => () => undefined,
  };
  const handler = (_: unknown, given: AbortSignal) => {
    signal = given;
    return answers.promise;
  };
  const leased = ['a', 'b'].map((id) => ({
    entry: { id, key: id, payload: new Uint8Array(), lateMs: 0, redeliveries: 0 },
  }));
  const host = hostOf({ clock, log: quiet });
  const batch = new Batch(source, { leased, askedAtMs: 0 }, { handler, timeoutMs }, host);
  return { batch, clock, ended, renewed, answer: answers.resolve, signal: () => signal! };
}

const bothDone = [{ type: 'done' }, { type: 'done' }] as const;
const bothBack = [
  { type: 'unanswered', delayMs: 0 },
  { type: 'unanswered', delayMs: 0 },
];

test('ignores the answers of a handler that goes on after the lease of an entry was lost', async () => {
  const { batch, clock, ended, answer, signal } = batchOf([[true, false]]);
  await clock.advance(LEASE_MS / 3);
  expect(signal().aborted).toBe(true);
  answer(bothDone);
  await batch.over;
  // The other entry is still held, and its answer must not count either.
  expect(ended).toEqual([bothBack]);
});

test('counts a lease from when its renewal was sent, however late that is answered', async () => {
  const late = Promise.withResolvers<boolean[]>();
  const never = new Promise<never>(() => {});
  const { batch, clock, renewed, answer, signal } = batchOf([late.promise, never]);
  await clock.advance(2500);
  late.resolve([true, true]);
  await clock.advance(1000);
  expect(renewed).toEqual([1000, 3500]);
  await clock.advance(1000 + LEASE_MS - 3500 - 1);
  expect(signal().aborted).toBe(false);
  await clock.advance(1);
  expect(signal().reason).toMatchObject({ message: 'The lease could not be renewed in time.' });
  answer(bothDone);
  await batch.over;
});

test('renews no lease of a handler that is out of time, and gives its entries back', async () => {
  const { batch, clock, ended, renewed, answer, signal } = batchOf([], 4500);
  await clock.advance(4499);
  expect(signal().aborted).toBe(false);
  expect(renewed).toEqual([1000, 2000, 3000, 4000]);
  await clock.advance(1);
  expect(signal().reason).toMatchObject({ message: 'The handler did not answer within 4500 ms.' });
  await batch.over;
  answer(bothDone);
  await clock.advance(60_000);
  expect(ended).toEqual([bothBack]);
  expect(renewed).toHaveLength(4);
});

test('frees the place of a handler that hangs after its lease was lost', async () => {
  const { batch, clock, ended } = batchOf([[false, true]], 4500);
  let isOver = false;
  void batch.over.then(() => (isOver = true));
  await clock.advance(4499);
  expect(isOver).toBe(false);
  await clock.advance(1);
  expect(isOver).toBe(true);
  expect(ended).toEqual([bothBack]);
});

test('is not out of time while its answers are being written', async () => {
  const writes = Promise.withResolvers<void>();
  const { batch, clock, ended, answer, signal } = batchOf([], 4500, writes.promise);
  answer(bothDone);
  await clock.advance(10_000);
  expect(signal().aborted).toBe(false);
  writes.resolve();
  await batch.over;
  expect(ended).toEqual([bothDone]);
});
