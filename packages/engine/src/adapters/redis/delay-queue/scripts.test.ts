/** The scripts by themselves: what a consumer that comes late can do with them, and how much they do at once. */
import { createClient } from '@redis/client';
import { describeService, sharedServer } from '@redrive/services/vitest';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { slotKeys, type SlotKeys } from './layout.ts';
import { scripts } from './scripts.ts';

const LEASE_MS = 60_000;

describeService('Redis', () => {
  let admin: ReturnType<typeof clientOf>;
  let keys: SlotKeys;
  let cases = 0;

  beforeAll(async () => {
    admin = clientOf(await sharedServer('Redis'));
    await admin.connect();
  });
  afterAll(() => admin.close());
  beforeEach(() => {
    keys = slotKeys(`scripts-test:${process.pid}:${++cases}:`, 0);
  });

  const evaluate = (name: keyof typeof scripts, args: string[]) => {
    const third = name === 'schedule' ? keys.fence : keys.hands;
    return admin.eval(scripts[name].text, {
      keys: [keys.queue, keys.entries, third],
      arguments: args,
    });
  };
  const schedule = (ids: string[], delayMs = 0) =>
    evaluate('schedule', [
      'channel',
      '0',
      '1000',
      '0',
      ...ids.flatMap((id) => [id, `${delayMs}`, '\0x']),
    ]);
  const claim = async (token: string, limit = 10) => {
    const answer = (await evaluate('claim', [`${limit}`, `${LEASE_MS}`, token])) as unknown[];
    return answer.slice(2).filter((_, i) => i % 4 === 0);
  };
  const end = (token: string, id: string, how: string) =>
    evaluate('end', [token, 'channel', '0', '1000', id, how, '0']);
  const stored = async (id: string) => ({
    score: await admin.zScore(keys.queue, id),
    content: await admin.hGet(keys.entries, id),
    hand: await admin.hGet(keys.hands, id),
  });
  /** Scheduled, and in hand: `late` had it until its lease was over. */
  const taken = async () => {
    await schedule(['a']);
    // It is due with the next whole ms.
    await expect.poll(() => claim('late')).toEqual(['a']);
    await admin.zAdd(keys.queue, { value: 'a', score: 1 });
    expect(await claim('mine')).toEqual(['a']);
    return stored('a');
  };

  test.each(['d', 'a', 'u', 'r'])('an end of a lost lease (%s) changes nothing', async (how) => {
    const before = await taken();
    await end('late', 'a', how);
    expect(await stored('a')).toEqual(before);
    await end('mine', 'a', 'd');
    expect(await stored('a')).toEqual({ score: null, content: null, hand: null });
  });

  test('a renewal of a lost lease changes nothing, and says so', async () => {
    await taken();
    await admin.zAdd(keys.queue, { value: 'a', score: 1 });
    expect(await evaluate('renew', ['late', `${LEASE_MS}`, 'a', 'unknown'])).toEqual([0, 0]);
    expect((await stored('a')).score).toBe(1);
    expect(await evaluate('renew', ['mine', `${LEASE_MS}`, 'a'])).toEqual([1]);
    expect((await stored('a')).score).toBeGreaterThan(1);
    expect(await admin.zCard(keys.queue)).toBe(1);
  });

  test('a claim takes no more than its limit, and nothing that is not due', async () => {
    await schedule(['a', 'b', 'c']);
    await schedule(['later'], 60_000);
    await admin.zAdd(
      keys.queue,
      ['a', 'b', 'c'].map((value, i) => ({ value, score: i + 1 })),
    );
    expect(await claim('one', 2)).toEqual(['a', 'b']);
    expect(await stored('c')).toMatchObject({ score: 3, hand: null });
    expect(await claim('two')).toEqual(['c']);
    expect(await claim('three')).toEqual([]);
  });

  test('an entry in hand is neither scheduled again nor cancelled', async () => {
    const before = await taken();
    expect(await schedule(['a'], 5)).toBe(0);
    expect(await evaluate('cancel', ['a'])).toEqual([0]);
    expect(await stored('a')).toEqual(before);
  });

  test('an entry whose lease is over is in nobody’s hand, and can be cancelled', async () => {
    await taken();
    await admin.zAdd(keys.queue, { value: 'a', score: 1 });
    expect(await evaluate('cancel', ['a'])).toEqual([1]);
    expect(await stored('a')).toEqual({ score: null, content: null, hand: null });
    await end('mine', 'a', 'a');
    expect(await stored('a')).toEqual({ score: null, content: null, hand: null });
  });
});

function clientOf(url: string) {
  return createClient({ url });
}
