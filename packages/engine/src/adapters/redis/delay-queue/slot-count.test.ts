import { createClient } from '@redis/client';
import { describeService, sharedServer } from '@redrive/services/vitest';
import { virtualClock } from 'redrive/testing';
import { expect, onTestFinished, test } from 'vitest';
import { readOptions } from './options.ts';
import { RedisServer } from './server.ts';
import { SlotCount } from './slot-count.ts';

describeService('Redis', () => {
  /** A queue of four slots, and whoever changes its key in Redis. */
  async function fourSlots(name: string) {
    const url = await sharedServer('Redis');
    const prefix = `slot-count:${process.pid}:${name}:`;
    const admin = createClient({ url });
    await admin.connect();
    const clock = virtualClock();
    const errors: string[] = [];
    const error = (_: object, message: string) => void errors.push(message);
    const log = { debug() {}, info() {}, warn() {}, error };
    const settings = readOptions({ url, prefix, slots: 4, clock, log });
    const server = new RedisServer(settings);
    onTestFinished(async () => {
      await admin.del(`${prefix}meta`);
      await admin.close();
      await server.close();
    });
    const count = new SlotCount(server, settings);
    expect(await count.agree()).toBe(4);
    return { admin, clock, errors, count, key: `${prefix}meta` };
  }

  test('a number of slots that changed is said once, and again after it was right', async () => {
    const { admin, clock, errors, count, key } = await fourSlots('said');
    const looks = async (times: number) => {
      for (let i = 0; i < times; i++) {
        await clock.advance('1s');
        await count.keep();
      }
    };
    await admin.set(key, 'slots=5');
    await looks(3);
    expect(errors).toHaveLength(1);
    // Known for a second, whoever asks.
    await admin.set(key, 'slots=4');
    await expect(count.check()).rejects.toMatchObject({ code: 'QUEUE_MISMATCH' });
    await looks(1);
    await count.check();
    await admin.set(key, 'slots=6');
    await looks(2);
    expect(errors).toHaveLength(2);
    // One that is gone is written again.
    await admin.del(key);
    await looks(1);
    expect(await admin.get(key)).toBe('slots=4');
  });

  test('no check goes by a look that has not ended, or that failed', async () => {
    const { admin, clock, count, key } = await fourSlots('ended');
    await count.check();
    await clock.advance('1s');
    await admin.set(key, 'slots=5');
    const mismatch = { code: 'QUEUE_MISMATCH' };
    const both = [count.check(), count.check()];
    await Promise.all(both.map((one) => expect(one).rejects.toMatchObject(mismatch)));
    await admin.set(key, 'slots=4');
    await clock.advance('1s');
    await count.check();
    await clock.advance('1s');
    await admin.set(key, 'something else');
    for (let i = 0; i < 2; i++)
      await expect(count.check()).rejects.toMatchObject({ code: 'KEY_NOT_OURS' });
  });
});
