import { type RabbitmqServer, startRabbitmq } from '@redrive/services';
import { describeService, rabbitmqClient } from '@redrive/services/vitest';
import type { Clock } from 'redrive';
import { systemClock } from 'redrive/internal';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Publication } from '../../ports/broker.ts';
import { rabbitmq } from './index.ts';

/** The server has to start, on a busy machine. */
const START_MS = 60_000;
const MAX_ALONE = 16;
const LATE_MS = 54_321;
const MAX_MESSAGE_BYTES = 1_000_000;

const nothing = () => undefined;
const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };

const message = (address: string): Publication => ({
  address,
  payload: Buffer.from('x'),
  headers: {},
});

describeService('RabbitMQ', () => {
  let server: RabbitmqServer;
  beforeAll(async () => {
    server = await startRabbitmq({ settings: { max_message_size: String(MAX_MESSAGE_BYTES) } });
  }, START_MS);
  afterAll(() => server.stop(), START_MS);

  it('a message whose turn to go alone comes late is not sent: without time for its confirm it would be sent twice', async () => {
    await using client = await rabbitmqClient(server.url);
    const queue = await client.queue();
    let aheadMs = 0;
    const clock: Clock = {
      now: () => systemClock.now(),
      monotonic: () => systemClock.monotonic() + aheadMs,
      setTimer: (...args) => systemClock.setTimer(...args),
      clearTimer: (timer) => systemClock.clearTimer(timer),
    };
    const broker = rabbitmq({ url: server.url, log, clock });
    await broker.open();
    const messages = Array.from({ length: MAX_ALONE + 3 }, () => message(queue));
    const publishing = broker.publish(messages, { timeoutMs: 60_000, alone: true });
    aheadMs = 31_000;
    const outcomes = (await Promise.all(publishing)).map(({ outcome }) => outcome);
    const sent = outcomes.slice(0, MAX_ALONE);
    expect(new Set(sent)).toEqual(new Set(['confirmed']));
    expect(outcomes.slice(MAX_ALONE)).toEqual(['away', 'away', 'away']);
    expect(await client.depth(queue)).toBe(MAX_ALONE);
    await broker.close();
  });

  it('one over the limit of the broker that goes alone takes no other message along', async () => {
    await using client = await rabbitmqClient(server.url);
    const queue = await client.queue();
    const broker = rabbitmq({ url: server.url, log });
    await broker.open();
    const large = { ...message(queue), payload: new Uint8Array(MAX_MESSAGE_BYTES + 1) };
    // In one turn: over one channel, the large one would be the first to be read there.
    const alone = broker.publish([large], { timeoutMs: 60_000, alone: true });
    const others = broker.publish([message(queue), message(queue)], { timeoutMs: 60_000 });
    expect(await Promise.all(alone)).toMatchObject([
      { outcome: 'lost', failure: { code: 'CHANNEL_CLOSED' } },
    ]);
    expect(await Promise.all(others)).toEqual([{ outcome: 'confirmed' }, { outcome: 'confirmed' }]);
    expect(await client.depth(queue)).toBe(2);
    await broker.close();
  });

  it('many that go alone are each sent once', async () => {
    await using client = await rabbitmqClient(server.url);
    const queue = await client.queue();
    const broker = rabbitmq({ url: server.url, log });
    await broker.open();
    const messages = Array.from({ length: 500 }, (_, i) =>
      message(i % 5 === 0 ? 'nowhere' : queue),
    );
    const options = { timeoutMs: 60_000, alone: true };
    const outcomes = (await Promise.all(broker.publish(messages, options))).map(
      (one) => one.outcome,
    );
    expect(outcomes).toEqual(messages.map((_, i) => (i % 5 === 0 ? 'unroutable' : 'confirmed')));
    expect(await client.depth(queue)).toBe(400);
    await broker.close();
  });

  it('a channel that left out a confirm gets no further message: its late answer could be taken for another one', async () => {
    await using client = await rabbitmqClient(server.url);
    const queue = await client.queue();
    const late: (() => void)[] = [];
    const clock: Clock = {
      now: () => systemClock.now(),
      monotonic: () => systemClock.monotonic(),
      setTimer: (callback, ms, isQuiet) => {
        // By its length: this is the time limit of the message that is not confirmed in time.
        if (ms === LATE_MS) late.push(callback);
        return systemClock.setTimer(callback, ms, isQuiet);
      },
      clearTimer: (timer) => systemClock.clearTimer(timer),
    };
    const broker = rabbitmq({ url: server.url, log, clock });
    await broker.open();
    // The number of a message in its channel.
    const taken = async () => {
      const { headers } = (await client.take(queue)).properties;
      return headers?.['x-redrive-seq'] as unknown;
    };
    const options = { timeoutMs: 60_000 };
    expect(await Promise.all(broker.publish([message(queue)], options))).toEqual([
      { outcome: 'confirmed' },
    ]);
    expect(await taken()).toBe(1);

    const [unconfirmed] = broker.publish([message(queue)], { timeoutMs: LATE_MS });
    // Before anything can be read from the socket, its confirm included.
    for (const callback of late) callback();
    expect(await unconfirmed).toMatchObject({
      outcome: 'unknown',
      failure: { code: 'CONFIRM_TIMEOUT' },
    });
    await expect.poll(() => client.depth(queue)).toBe(1);
    expect(await taken()).toBe(2);

    expect(await Promise.all(broker.publish([message(queue)], options))).toEqual([
      { outcome: 'confirmed' },
    ]);
    // The first one of another channel.
    expect(await taken()).toBe(1);
    await broker.close();
  });

  it('a message that a broker without memory does not confirm in time is lost: that says nothing of its queue', async () => {
    await using client = await rabbitmqClient(server.url);
    const queue = await client.queue();
    const broker = rabbitmq({ url: server.url, log });
    await broker.open();
    await server.setMemoryAlarm(true);
    try {
      // The broker tells who publishes that it is blocked, and is asked for no more than that.
      const [late] = await Promise.all(broker.publish([message(queue)], { timeoutMs: 5000 }));
      expect(late).toMatchObject({ outcome: 'lost', failure: { code: 'BROKER_BLOCKED' } });
    } finally {
      await server.setMemoryAlarm(false);
    }
    await expect.poll(() => broker.isReady, { timeout: 20_000 }).toBe(true);
    await broker.close();
  });
});
