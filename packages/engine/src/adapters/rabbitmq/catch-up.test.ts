import { describeService, rabbitmqClient, sharedServer } from '@redrive/services/vitest';
import type { Clock } from 'redrive';
import { systemClock } from 'redrive/internal';
import { virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import type { Received } from '../../ports/broker.ts';
import { CatchUp } from './catch-up.ts';
import { rabbitmq } from './index.ts';

const message = (redelivered: boolean): Received => ({
  tag: 1,
  payload: new Uint8Array(),
  headers: {},
  redelivered,
});
const again = message(true);
const fresh = message(false);

function catchUp() {
  const clock = virtualClock();
  let ends = 0;
  const one = new CatchUp(clock, () => (ends += 1));
  return { clock, one, ends: () => ends };
}

describe('what the broker hands over again', () => {
  it('is over as soon as something new comes, where there is nothing of it', () => {
    const { one, ends } = catchUp();
    expect(one.isOver).toBe(false);
    one.received(fresh);
    expect([one.isOver, ends()]).toEqual([true, 1]);
  });

  it('is over when all of it is settled, and something new has come', () => {
    const { one } = catchUp();
    one.received(again);
    one.received(again);
    one.received(fresh);
    one.settled([again, fresh]);
    expect(one.isOver).toBe(false);
    one.settled([again]);
    expect(one.isOver).toBe(true);
  });

  it('is over when nothing comes for a moment', async () => {
    const { clock, one } = catchUp();
    await clock.advance('90ms');
    one.received(again);
    await clock.advance('500ms');
    one.settled([again]);
    // There may be more: those before had to be settled first.
    await clock.advance('90ms');
    one.received(again);
    one.settled([again]);
    await clock.advance('90ms');
    expect(one.isOver).toBe(false);
    await clock.advance('10ms');
    expect(one.isOver).toBe(true);
  });

  it('is not waited for longer than five seconds', async () => {
    const { clock, one, ends } = catchUp();
    one.received(again);
    await clock.advance('4999ms');
    expect(one.isOver).toBe(false);
    await clock.advance('1ms');
    expect(one.isOver).toBe(true);
    one.settled([again]);
    one.received(again);
    one.end();
    expect(ends()).toBe(1);
  });
});

describeService('RabbitMQ', () => {
  /** However busy the machine is, nothing is over because of the time. */
  const slowly: Clock = {
    now: () => systemClock.now(),
    monotonic: () => systemClock.monotonic(),
    setTimer: (callback, ms, background) => systemClock.setTimer(callback, ms * 30, background),
    clearTimer: (timer) => systemClock.clearTimer(timer),
  };
  const limits = { maxMessages: 100, maxBytes: 1 << 24 };
  const soon = { timeout: 20_000, interval: 5 };

  it('is settled before the broker counts as ready for deliveries', async () => {
    const url = await sharedServer('RabbitMQ');
    await using client = await rabbitmqClient(url);
    const queue = await client.queue();
    for (const text of ['a', 'b', 'c']) client.channel.sendToQueue(queue, Buffer.from(text));
    const first = rabbitmq({ url });
    await first.open();
    const taken: Received[] = [];
    await first.consume(queue, limits, (one) => taken.push(one));
    await expect.poll(() => taken.length, soon).toBe(3);
    // As if it were killed: nothing is acknowledged.
    await first.close();

    const second = rabbitmq({ url, clock: slowly });
    await second.open();
    expect(second.isReady).toBe(true);
    const got: Received[] = [];
    const consumer = await second.consume(queue, limits, (one) => got.push(one));
    await expect.poll(() => got.length, soon).toBe(3);
    client.channel.sendToQueue(queue, Buffer.from('d'));
    await expect.poll(() => got.length, soon).toBe(4);
    await consumer.ack(got.slice(0, 2));
    expect(second.isReady).toBe(false);
    await consumer.ack(got.slice(2));
    expect(second.isReady).toBe(true);
    expect(second.state.state).toBe('connected');
    await second.close();
  });
});
