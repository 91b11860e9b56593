import { type RabbitmqServer, startProxy, startRabbitmq } from '@redrive/services';
import { describeService, rabbitmqClient } from '@redrive/services/vitest';
import type { Clock } from 'redrive';
import { systemClock } from 'redrive/internal';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Publication, Received } from '../../ports/broker.ts';
import { type RabbitBroker, rabbitmq, type RabbitOptions, type RabbitState } from './index.ts';

/** The server has to start, on a busy machine, some tests restart it, and others leave it no memory. */
const START_MS = 60_000;
const MAX_MESSAGE_BYTES = 1_000_000;

/** As long as a busy machine may take. */
const soon = { timeout: 40_000, interval: 5 };

const limits = { maxMessages: 100, maxBytes: 1 << 24 };
const policy = { base: '10ms', cap: '200ms' } as const;

function without(all: ReadonlySet<string>, those: ReadonlySet<string>): string[] {
  return [...all].filter((one) => !those.has(one));
}

describeService('RabbitMQ', () => {
  let server: RabbitmqServer;
  let said: string[];
  const brokers: RabbitBroker[] = [];
  beforeAll(async () => {
    const settings = { max_message_size: String(MAX_MESSAGE_BYTES) };
    server = await startRabbitmq({ settings });
  }, START_MS);
  afterAll(() => server.stop(), START_MS);
  beforeEach(() => {
    said = [];
  });
  afterEach(async () => {
    await Promise.all(brokers.splice(0).map((broker) => broker.close()));
  });

  function brokerAt(url: string, options: Partial<RabbitOptions> = {}): RabbitBroker {
    const keep = (fields: object, message: string) => {
      said.push(`${message} ${JSON.stringify(fields)}`);
    };
    const log = { debug: keep, info: keep, warn: keep, error: keep };
    const broker = rabbitmq({ url, policy, log, ...options });
    brokers.push(broker);
    return broker;
  }

  async function opened(url: string, options: Partial<RabbitOptions> = {}): Promise<RabbitBroker> {
    const broker = brokerAt(url, options);
    await broker.open();
    expect(broker.state.state).toBe('connected');
    return broker;
  }

  const message = (address: string, text = 'x'): Publication => ({
    address,
    payload: Buffer.from(text),
    headers: {},
  });
  const textOf = ({ payload }: Received) => Buffer.from(payload).toString();

  async function publish(broker: RabbitBroker, messages: Publication[], timeoutMs = 20_000) {
    return Promise.all(broker.publish(messages, { timeoutMs }));
  }

  async function outcomes(broker: RabbitBroker, messages: Publication[], timeoutMs?: number) {
    return (await publish(broker, messages, timeoutMs)).map(({ outcome }) => outcome);
  }

  /** Publishes without a pause, and takes in at the same time, until it is told to stop. */
  async function traffic(broker: RabbitBroker, queue: string) {
    const confirmed = new Set<string>();
    const received = new Set<string>();
    const failed = new Set<string>();
    const ending = new AbortController();
    const consumer = await broker.consume(queue, limits, (one) => {
      received.add(textOf(one));
      void consumer.ack([one]);
    });
    const publishing = (async () => {
      for (let round = 0; !ending.signal.aborted; round++) {
        const batch = Array.from({ length: 20 }, (_, i) => message(queue, `${round} ${i}`));
        const results = await publish(broker, batch);
        results.forEach(({ outcome }, i) => {
          if (outcome === 'confirmed') confirmed.add(`${round} ${i}`);
          else failed.add(outcome);
        });
        // Another turn of the loop: answers of a broker that is away come at once.
        await new Promise(setImmediate);
      }
    })();
    return {
      confirmed,
      received,
      failed,
      async end() {
        ending.abort();
        await publishing;
        await expect.poll(() => without(confirmed, received), soon).toEqual([]);
      },
    };
  }

  describe('a server that goes and comes back', () => {
    it.each([
      ['is restarted', () => server.restart()],
      [
        'is killed',
        async () => {
          // What it confirms it keeps, but a queue declared a moment ago it may forget: not what is looked at here.
          await server.ctl('eval', 'mnesia:sync_log().');
          await server.kill9();
          await server.start();
        },
      ],
    ])(
      'and %s in the middle of the work loses nothing that it confirmed',
      async (how, goAndComeBack) => {
        const queue = `orders-${how}`;
        const states: RabbitState['state'][] = [];
        const broker = await opened(server.url, { onState: ({ state }) => states.push(state) });
        const work = await traffic(broker, queue);
        await expect.poll(() => work.received.size, soon).toBeGreaterThan(100);
        states.length = 0;
        await goAndComeBack();
        await expect.poll(() => states[0], soon).toBe('connecting');
        await expect.poll(() => states.at(-1), soon).toBe('connected');
        const before = work.confirmed.size;
        await expect.poll(() => work.confirmed.size, soon).toBeGreaterThan(before + 100);
        await work.end();
        // A message was on its way or could not be sent: nothing else may be said of one that was not confirmed.
        expect(without(work.failed, new Set(['lost', 'away']))).toEqual([]);
        expect(said.filter((line) => line.startsWith('the broker is back')).length).toBeGreaterThan(
          0,
        );
      },
      START_MS,
    );
  });

  describe('a broker that wants no messages for now', () => {
    it('is blocked until it wants them again, and takes acknowledgements meanwhile', async () => {
      await using client = await rabbitmqClient(server.url);
      const queue = await client.queue();
      const broker = await opened(server.url);
      const got: Received[] = [];
      const consumer = await broker.consume(queue, limits, (one) => got.push(one));
      await publish(broker, [message(queue)]);
      await expect.poll(() => got.length, soon).toBe(1);
      let changes = 0;
      broker.watch(() => (changes += 1));

      await server.setMemoryAlarm(true);
      // The broker tells only who publishes.
      const first = publish(broker, [message(queue, 'stuck')]);
      await expect
        .poll(() => broker.state, soon)
        .toMatchObject({ state: 'blocked', why: 'low on memory' });
      expect([broker.isReady, changes]).toEqual([false, 1]);
      expect(await publish(broker, [message(queue)])).toMatchObject([
        { outcome: 'away', failure: { class: 'transient', code: 'BROKER_BLOCKED' } },
      ]);
      await consumer.ack(got);
      // Closes the channel: what the broker has no word of by then goes back to the queue.
      await consumer.stop();
      expect(await client.depth(queue)).toBe(0);

      await server.setMemoryAlarm(false);
      await expect.poll(() => broker.state.state, soon).toBe('connected');
      expect([broker.isReady, changes]).toEqual([true, 2]);
      expect(await first).toEqual([{ outcome: 'confirmed' }]);
      expect(await outcomes(broker, [message(queue)])).toEqual(['confirmed']);
    });
  });

  describe('a connection that breaks', () => {
    it('comes back when the broker ends it', async () => {
      const queue = 'closed-by-a-test';
      const broker = await opened(server.url);
      const got: string[] = [];
      await broker.consume(queue, limits, (one) => got.push(textOf(one)));
      await server.closeConnections();
      await expect.poll(() => said.join(), soon).toContain('closed by a test');
      await expect.poll(() => broker.state.state, soon).toBe('connected');
      expect(await outcomes(broker, [message(queue, 'after')])).toEqual(['confirmed']);
      await expect.poll(() => got, soon).toEqual(['after']);
    });

    it('in the middle of a batch leaves each message confirmed or lost, and says nothing wrong of any', async () => {
      await using client = await rabbitmqClient(server.url);
      await using proxy = await startProxy(server.url);
      const queue = await client.queue();
      const broker = await opened(proxy.url);
      const cut = proxy.cutAfter(30_000);
      const batch = Array.from({ length: 500 }, (_, i) =>
        message(queue, `${i} ${'x'.repeat(300)}`),
      );
      const results = await publish(broker, batch);
      await cut;
      const words = new Set<string>(results.map(({ outcome }) => outcome));
      expect(without(words, new Set(['confirmed', 'lost']))).toEqual([]);
      expect(results.at(-1)).toMatchObject({
        outcome: 'lost',
        failure: { class: 'transient', code: 'CONNECTION_LOST' },
      });
      const confirmed = results.filter(({ outcome }) => outcome === 'confirmed').length;
      // What was lost may have arrived; what was confirmed must have.
      expect(await client.depth(queue)).toBeGreaterThanOrEqual(confirmed);
      await expect.poll(() => broker.state.state, soon).toBe('connected');
      expect(await outcomes(broker, batch)).toEqual(batch.map(() => 'confirmed'));
    });

    it('is given up when nothing comes over it any more', async () => {
      await using proxy = await startProxy(server.url);
      const broker = await opened(proxy.url, { heartbeat: '1s' });
      proxy.stall();
      await expect
        .poll(() => broker.state, soon)
        .toMatchObject({
          state: 'connecting',
          why: expect.stringContaining('Heartbeat timeout') as string,
        });
      proxy.resume();
      await expect.poll(() => broker.state.state, soon).toBe('connected');
    });
  });

  describe('a confirm that comes late', () => {
    it('is not awaited for ever, and not taken for that of another message', async () => {
      await using client = await rabbitmqClient(server.url);
      await using proxy = await startProxy(server.url);
      const queue = await client.queue();
      const broker = await opened(proxy.url);
      // A channel that both use.
      expect(await outcomes(broker, [message(queue)])).toEqual(['confirmed']);
      proxy.stall();
      const late = await publish(broker, [message(queue), message(queue)], 50);
      expect(late.map(({ outcome }) => outcome)).toEqual(['unknown', 'unknown']);
      expect(late[0]).toMatchObject({ failure: { code: 'CONFIRM_TIMEOUT', class: 'transient' } });
      const next = outcomes(broker, [message('nowhere'), message(queue), message('nowhere')]);
      proxy.resume();
      expect(await next).toEqual(['unroutable', 'confirmed', 'unroutable']);
      await expect.poll(() => client.depth(queue), soon).toBe(4);
    });
  });

  describe('a channel that the broker closes', () => {
    it('takes its batch along, after which the cause is known and the others go', async () => {
      await using client = await rabbitmqClient(server.url);
      const queue = await client.queue();
      const broker = await opened(server.url);
      const large = { ...message(queue), payload: new Uint8Array(MAX_MESSAGE_BYTES + 1) };
      const batch = [message(queue), large, message(queue)];
      const results = await publish(broker, batch);
      expect(results[1]).toMatchObject({ outcome: 'lost', failure: { code: 'CHANNEL_CLOSED' } });
      expect(broker.state.state).toBe('connected');
      const again = await publish(broker, batch);
      expect(again).toMatchObject([
        { outcome: 'confirmed' },
        { outcome: 'impossible', failure: { class: 'technical', code: 'MESSAGE_TOO_LARGE' } },
        { outcome: 'confirmed' },
      ]);
    });

    it('takes a message that was over the limit of the broker once that has a larger one', async () => {
      await using client = await rabbitmqClient(server.url);
      const queue = await client.queue();
      const broker = await opened(server.url);
      const large = { ...message(queue), payload: new Uint8Array(MAX_MESSAGE_BYTES + 1) };
      expect(await outcomes(broker, [large])).toEqual(['lost']);
      expect(await outcomes(broker, [large])).toEqual(['impossible']);
      const setLimit = (bytes: number) =>
        server.ctl('eval', `application:set_env(rabbit, max_message_size, ${bytes}).`);
      await setLimit(2 * MAX_MESSAGE_BYTES);
      try {
        // As after a cut: the next connection learns the limit anew.
        await broker.close();
        await broker.open();
        expect(await outcomes(broker, [large])).toEqual(['confirmed']);
      } finally {
        await setLimit(MAX_MESSAGE_BYTES);
      }
    });

    it('says why where a user may not publish or consume', async () => {
      await server.ctl('add_user', 'reader', 'secret-of-reader');
      await server.ctl('set_permissions', 'reader', '', '', 'allowed');
      const url = new URL(server.url);
      url.username = 'reader';
      url.password = 'secret-of-reader';
      const broker = await opened(url.href);
      const [result] = await publish(broker, [message('anywhere')]);
      expect(result).toMatchObject({
        outcome: 'lost',
        failure: { message: expect.stringContaining('ACCESS_REFUSED') as string },
      });
      const consumer = await broker.consume('forbidden', limits, () => undefined);
      expect(consumer.state).toMatchObject({
        state: 'waiting',
        why: expect.stringContaining('forbidden') as string,
      });
      expect(JSON.stringify([result, consumer.state, said])).not.toContain('secret-of-reader');
    });
  });

  describe('a broker that is away when it is opened', () => {
    it('is no error, and everything begins when it is there', async () => {
      await using client = await rabbitmqClient(server.url);
      await using proxy = await startProxy(server.url);
      const [queue, wanted] = [await client.queue(), client.name()];
      proxy.refuse();
      const broker = brokerAt(proxy.url, { topology: { queues: [{ name: wanted }] } });
      await broker.open();
      expect(broker.state).toMatchObject({
        state: 'connecting',
        why: expect.stringContaining('The broker cannot be reached: ') as string,
      });
      const got: string[] = [];
      const consumer = await broker.consume(queue, limits, (one) => got.push(textOf(one)));
      expect(consumer.state.state).toBe('waiting');
      expect(await publish(broker, [message(queue)])).toMatchObject([
        { outcome: 'away', failure: { code: 'BROKER_AWAY', notExecuted: true } },
      ]);
      proxy.admit();
      await expect.poll(() => broker.isReady, soon).toBe(true);
      await expect.poll(() => broker.state.state, soon).toBe('connected');
      expect(await outcomes(broker, [message(queue, 'now'), message(wanted)])).toEqual([
        'confirmed',
        'confirmed',
      ]);
      await expect.poll(() => got, soon).toEqual(['now']);
    });

    it('says so when the password is wrong, and tells nobody what it was', async () => {
      const url = new URL(server.url);
      url.password = 'not-the-password';
      const states: RabbitState[] = [];
      const broker = brokerAt(url.href, { onState: (state) => states.push(state) });
      await broker.open();
      expect(broker.state).toMatchObject({
        state: 'connecting',
        why: 'RabbitMQ refuses the user or the password in the URL.',
      });
      const answer = await publish(broker, [message('q')]);
      expect(JSON.stringify([states, answer, said])).not.toContain('not-the-password');
    });

    it('says so when the virtual host is missing', async () => {
      const broker = brokerAt(`${server.url}/nowhere`);
      await broker.open();
      expect(broker.state.why).toContain('virtual host');
    });

    it('is closed at once while it is tried again, and leaves no timer', async () => {
      const timers = new Set<unknown>();
      const clock: Clock = {
        ...systemClock,
        setTimer(callback, ms, unref) {
          const timer: unknown = systemClock.setTimer(
            () => {
              timers.delete(timer);
              callback();
            },
            ms,
            unref,
          );
          timers.add(timer);
          return timer;
        },
        clearTimer(timer) {
          timers.delete(timer);
          systemClock.clearTimer(timer);
        },
      };
      await using proxy = await startProxy(server.url);
      proxy.refuse();
      const broker = brokerAt(proxy.url, {
        clock,
        policy: { base: '1h', cap: '1h', jitter: 'none' },
      });
      await broker.open();
      await broker.consume('any', limits, () => undefined);
      expect(timers.size).toBe(2);
      await broker.close();
      expect(timers.size).toBe(0);
      expect(broker.state.state).toBe('closed');
      proxy.admit();
      await broker.open();
      expect(broker.state.state).toBe('connected');
      await broker.close();
      expect(timers.size).toBe(0);
      await expect.poll(() => proxy.connections, soon).toBe(0);
    });

    it('is closed also where nobody answers any more', async () => {
      const clock: Clock = {
        ...systemClock,
        setTimer: (callback, ms, unref) => systemClock.setTimer(callback, ms / 50, unref),
      };
      await using proxy = await startProxy(server.url);
      const broker = await opened(proxy.url, { clock });
      await broker.consume('closed-in-silence', limits, () => undefined);
      proxy.stall();
      await broker.close();
      expect(broker.state.state).toBe('closed');
      proxy.resume();
      await expect.poll(() => proxy.connections, soon).toBe(0);
    });

    it('can be opened again while it is still closing', async () => {
      const broker = await opened(server.url);
      const queue = 'opened-again';
      await broker.consume(queue, limits, () => undefined);
      const closing = broker.close();
      await broker.open();
      await closing;
      expect(broker.isReady).toBe(true);
      expect(await outcomes(broker, [message(queue)])).toEqual(['confirmed']);
    });
  });
});
