import { virtualClock } from 'redrive/testing';
import { expect, test } from 'vitest';
import { hostOf } from '../host.ts';
import { LeaseConsumer } from './lease-consumer.ts';
import type { Leased, LeaseEnd, Taken } from './lease-source.ts';

test('gives back what a call took that was under way when it was stopped', async () => {
  const taken = Promise.withResolvers<Taken>();
  const ended: LeaseEnd[] = [];
  const source = {
    leaseMs: 1000,
    take: () => taken.promise,
    renew: async (leased: readonly Leased[]) => leased.map(() => true),
    end: async (_: readonly Leased[], ends: readonly LeaseEnd[]) => void ended.push(...ends),
    watch: () => () => undefined,
  };
  let calls = 0;
  const handler = async () => {
    calls += 1;
    return [];
  };
  const consumer = new LeaseConsumer(source, handler, {}, hostOf({ clock: virtualClock() }));
  const stopped = consumer.stop();
  const entry = { id: 'a', key: 'a', payload: new Uint8Array(), lateMs: 0, redeliveries: 0 };
  taken.resolve({ leased: [{ entry }], nextInMs: 0 });
  await stopped;
  expect(ended).toEqual([{ type: 'released' }]);
  expect(calls).toBe(0);
});
