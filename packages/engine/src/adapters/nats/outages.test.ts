import { setImmediate } from 'node:timers/promises';
import {
  type NatsCluster,
  type NatsServer,
  type NatsVersion,
  startNats,
  startNatsCluster,
  startProxy,
} from '@redrive/services';
import { describeService, natsClient } from '@redrive/services/vitest';
import { afterEach, expect, it, vi } from 'vitest';
import type { Received } from '../../ports/broker.ts';
import { type NatsBroker, nats } from './index.ts';

const soon = { timeout: 40_000, interval: 5 };
const limits = { maxMessages: 100, maxBytes: 1 << 24 };
const policy = { base: '10ms', cap: '200ms' } as const;
const TEST_MS = 120_000;

const brokers: NatsBroker[] = [];
afterEach(async () => {
  await Promise.all(brokers.splice(0).map((broker) => broker.close()));
});

function brokerAt(url: string | readonly string[]): NatsBroker {
  const quiet = () => undefined;
  const log = { debug: quiet, info: quiet, warn: quiet, error: quiet };
  // As short as the server's patience may be: what a lost acknowledgement brings again comes soon.
  const broker = nats({ url, policy, log, ackWait: 2000, heartbeat: 1000, connectTimeout: 2000 });
  brokers.push(broker);
  return broker;
}

/** Publishes without a pause, and takes in at the same time, until it is told to stop. */
async function traffic(broker: NatsBroker, subject: string) {
  const confirmed = new Set<string>();
  const unsure = new Set<string>();
  const received = new Map<string, { times: number; redelivered: boolean }>();
  const outcomes = new Set<string>();
  const ending = new AbortController();
  const consumer = await broker.consume(subject, limits, (one: Received) => {
    const text = Buffer.from(one.payload).toString();
    const { times = 0, redelivered = false } = received.get(text) ?? {};
    received.set(text, { times: times + 1, redelivered: redelivered || one.redelivered });
    void consumer.ack([one]);
  });
  const publishing = (async () => {
    for (let i = 0; !ending.signal.aborted; i++) {
      const texts = Array.from({ length: 20 }, (_, k) => `${i}-${k}`);
      const messages = texts.map((text) => ({
        address: subject,
        payload: Buffer.from(text),
        headers: {
          'x-retry-scheduler': 'true',
          'x-message-id': text,
          'x-redrive-generation': 0,
          'x-retry-count': 1,
          'x-redrive-body': 'b',
        },
      }));
      const answers = await Promise.all(broker.publish(messages, { timeoutMs: 2000 }));
      for (const [k, { outcome }] of answers.entries()) {
        outcomes.add(outcome);
        if (outcome === 'confirmed') confirmed.add(texts[k]!);
        else if (outcome !== 'away') unsure.add(texts[k]!);
      }
      // An answer of "away" takes no time, and nothing else would get any.
      await setImmediate();
    }
  })();
  return {
    confirmed,
    received,
    outcomes,
    async isWorking() {
      const before = confirmed.size;
      await vi.waitFor(() => expect(confirmed.size).toBeGreaterThan(before + 100), soon);
    },
    /** `forgets`: a server that was killed does not know any more what it handed out last, and hands it out as if new. */
    async end({ forgets }: { forgets: boolean }) {
      ending.abort();
      await publishing;
      const missing = () => [...confirmed].filter((text) => !received.has(text));
      // A pull that the server forgot shows after 5 s of silence, and more than one may be forgotten.
      await vi.waitFor(() => expect(missing()).toEqual([]), { ...soon, timeout: 80_000 });
      await consumer.stop();
      // Twice only where an acknowledgement was lost, and then it says so.
      const unexplained = [...received.values()].filter(
        ({ times, redelivered }) => times > 1 && !redelivered && !forgets,
      );
      expect(unexplained).toEqual([]);
      // What came in without a confirm is what was not sure.
      const strange = [...received.keys()].filter((one) => !confirmed.has(one) && !unsure.has(one));
      expect(strange).toEqual([]);
    },
  };
}

for (const version of ['2.9', '2.15'] satisfies NatsVersion[]) {
  describeService(`NATS ${version}`, () => {
    async function withStream(server: NatsServer): Promise<string> {
      const client = await natsClient(server.url);
      await client.manager.streams.add({ name: 'WORK', subjects: ['work.*'] });
      await client.connection.close();
      return 'work.a';
    }

    it.each(['kill', 'end'] as const)(
      'loses nothing when its server goes by %s and comes back, twice',
      async (how) => {
        await using server = await startNats({ version });
        const subject = await withStream(server);
        const broker = brokerAt(server.url);
        await broker.open();
        const flow = await traffic(broker, subject);
        await flow.isWorking();
        for (let round = 0; round < 2; round++) {
          await server[how]();
          await vi.waitFor(() => expect(broker.state.state).toBe('connecting'), soon);
          expect(broker.isReady).toBe(false);
          await server.start();
          await flow.isWorking();
        }
        await flow.end({ forgets: how === 'kill' });
        expect(flow.outcomes).not.toContain('unroutable');
        expect(flow.outcomes).not.toContain('impossible');
      },
      TEST_MS,
    );

    it(
      'begins when its server comes, and answers "away" until then',
      async () => {
        await using server = await startNats({ version });
        const subject = await withStream(server);
        await server.kill();
        const broker = brokerAt(server.url);
        await broker.open();
        expect(broker.state).toMatchObject({ state: 'connecting' });
        const message = { address: subject, payload: Buffer.from('x'), headers: {} };
        const [early] = await Promise.all(broker.publish([message], { timeoutMs: 1000 }));
        expect(early).toMatchObject({ outcome: 'away', failure: { code: 'BROKER_AWAY' } });
        const got: Received[] = [];
        const consumer = await broker.consume(subject, limits, (one) => got.push(one));
        expect(consumer.state.state).toBe('waiting');
        await server.start();
        await vi.waitFor(() => expect(broker.isReady).toBe(true), soon);
        await Promise.all(broker.publish([message], { timeoutMs: 5000 }));
        await vi.waitFor(() => expect(got.length).toBe(1), soon);
      },
      TEST_MS,
    );

    it(
      'acknowledges over the next connection what came over the one before',
      async () => {
        await using server = await startNats({ version });
        const subject = await withStream(server);
        await using proxy = await startProxy(server.url);
        const broker = brokerAt(proxy.url);
        await broker.open();
        const got: Received[] = [];
        const consumer = await broker.consume(subject, limits, (one) => got.push(one));
        const message = { address: subject, payload: Buffer.from('x'), headers: {} };
        await Promise.all(broker.publish([message], { timeoutMs: 5000 }));
        await vi.waitFor(() => expect(got.length).toBe(1), soon);
        const away = new Promise<void>((resolve) => {
          broker.watch(() => {
            if (broker.state.state === 'connecting') resolve();
          });
        });
        proxy.cut();
        await away;
        await consumer.ack(got);
        await vi.waitFor(() => expect(broker.isReady).toBe(true), soon);
        await using client = await natsClient(server.url);
        await vi.waitFor(async () => {
          const info = await client.manager.consumers.info('WORK', 'redrive-work_a');
          expect(info).toMatchObject({ num_ack_pending: 0, num_pending: 0 });
        }, soon);
        expect(got.length).toBe(1);
      },
      TEST_MS,
    );
  });
}

describeService('NATS 2.15', () => {
  it(
    'loses nothing when one of three servers is killed, and never takes an election for a missing stream',
    async () => {
      await using cluster: NatsCluster = await startNatsCluster();
      const client = await natsClient(cluster.urls);
      const config = { name: 'WORK', subjects: ['work.*'], num_replicas: 3 };
      await vi.waitFor(() => client.manager.streams.add(config), soon);
      const { cluster: group } = await client.manager.streams.info('WORK');
      await client.connection.close();
      const broker = brokerAt(cluster.urls);
      await vi.waitFor(async () => {
        await broker.open();
        expect(broker.isReady).toBe(true);
      }, soon);
      const flow = await traffic(broker, 'work.a');
      await flow.isWorking();
      // The leader of the stream, so that there is an election.
      const leader = cluster.servers.find(
        ({ url }) => `server-${new URL(url).port}` === group?.leader,
      );
      await leader!.kill();
      await flow.isWorking();
      await leader!.start();
      await flow.isWorking();
      await flow.end({ forgets: false });
      expect(flow.outcomes).not.toContain('unroutable');

      // Without a majority nothing is taken, and nothing is given up.
      const [first, second, third] = cluster.servers;
      await Promise.all([first!.kill(), second!.kill()]);
      const alone = brokerAt(third!.url);
      await alone.open();
      const message = { address: 'work.a', payload: Buffer.from('x'), headers: {} };
      // The one that is left does not know at once that it has no majority.
      await vi.waitFor(async () => {
        const [published] = await Promise.all(alone.publish([message], { timeoutMs: 5000 }));
        expect(published).toMatchObject({ outcome: 'away', failure: { code: 'JETSTREAM_AWAY' } });
      }, soon);
      expect(alone.state.state).toBe('blocked');
      await first!.start();
      await vi.waitFor(() => expect(alone.isReady).toBe(true), soon);
      await vi.waitFor(async () => {
        const [again] = await Promise.all(alone.publish([message], { timeoutMs: 5000 }));
        expect(again).toEqual({ outcome: 'confirmed' });
      }, soon);
    },
    2 * TEST_MS,
  );
});
