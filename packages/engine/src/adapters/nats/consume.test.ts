import { AckPolicy, jetstream } from '@nats-io/jetstream';
import {
  describeService,
  natsClient,
  type NatsClient,
  sharedServer,
} from '@redrive/services/vitest';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import type { Received } from '../../ports/broker.ts';
import { type NatsBroker, nats, natsExtraOf, type NatsOptions } from './index.ts';

const soon = { timeout: 25_000, interval: 5 };
const policy = { base: '10ms', cap: '100ms' } as const;
const limits = { maxMessages: 100, maxBytes: 1 << 24 };

for (const version of ['2.9', '2.15'] as const) {
  describeService(`NATS ${version}`, () => {
    let url: string;
    let client: NatsClient;
    const said: string[] = [];
    const brokers: NatsBroker[] = [];
    beforeAll(async () => {
      url = await sharedServer(`NATS ${version}`);
      client = await natsClient(url);
    });
    afterAll(() => client.close());
    afterEach(async () => {
      said.length = 0;
      await Promise.all(brokers.splice(0).map((broker) => broker.close()));
    });

    async function opened(options: Partial<NatsOptions> = {}): Promise<NatsBroker> {
      const keep = (fields: object, text: string) => {
        said.push(`${text} ${JSON.stringify(fields)}`);
      };
      const log = { debug: keep, info: keep, warn: keep, error: keep };
      const broker = nats({ url, policy, log, ...options });
      brokers.push(broker);
      await broker.open();
      return broker;
    }

    async function listen(broker: NatsBroker, source: string, most = limits) {
      const got: Received[] = [];
      const consumer = await broker.consume(source, most, (one) => got.push(one));
      return { got, consumer };
    }

    const textOf = ({ payload }: Received) => Buffer.from(payload).toString();
    const send = (subject: string, text: string) =>
      jetstream(client.connection).publish(subject, text);

    it('keeps a message as long as it shows signs of life', async () => {
      const subject = await client.subject();
      await send(subject, 'slow');
      const broker = await opened({ ackWait: 1000 });
      const { got, consumer } = await listen(broker, subject);
      await vi.waitFor(() => expect(got.length).toBe(1), soon);
      const [stream = ''] = subject.split('.');
      const name = `redrive-${subject.replaceAll('.', '_')}`;
      // Three times as long as the server waits without a sign.
      const endMs = performance.now() + 3000;
      await vi.waitFor(() => expect(performance.now()).toBeGreaterThan(endMs), soon);
      const info = await client.manager.consumers.info(stream, name);
      expect(info).toMatchObject({ num_redelivered: 0, num_ack_pending: 1 });
      expect(got.length).toBe(1);
      await consumer.ack(got);
      await vi.waitFor(async () => {
        expect((await client.manager.consumers.info(stream, name)).num_ack_pending).toBe(0);
      }, soon);
    });

    it('waits for a stream that is missing, with the command that makes it, and goes on by itself', async () => {
      const name = client.name();
      const broker = await opened();
      const { got, consumer } = await listen(broker, `${name}.in`);
      expect(consumer.state).toEqual({
        state: 'waiting',
        why: `No stream has the subject ${name}.in. Create one: nats stream add ${name.toUpperCase()} --subjects '${name}.in' --defaults`,
      });
      await client.manager.streams.add({ name, subjects: [`${name}.in`] });
      await send(`${name}.in`, 'here');
      await vi.waitFor(() => expect(got.map(textOf)).toEqual(['here']), soon);
      expect(consumer.state).toEqual({ state: 'consuming' });
      // Said once, and not at every try.
      expect(said.filter((one) => one.startsWith('not consuming')).length).toBe(1);
    });

    it('makes its consumer again when somebody deletes it', async () => {
      const subject = await client.subject();
      const [stream = ''] = subject.split('.');
      const broker = await opened();
      const { got, consumer } = await listen(broker, subject);
      await client.manager.consumers.delete(stream, `redrive-${subject.replaceAll('.', '_')}`);
      await send(subject, 'after');
      await vi.waitFor(() => expect(got.map(textOf)).toEqual(['after']), soon);
      await consumer.ack(got);
    });

    it.each([
      ['is not acknowledged one by one', { ack_policy: AckPolicy.All }],
      ['gives messages up after 3 deliveries', { max_deliver: 3 }],
      ['has another subject', { filter_subject: 'elsewhere' }],
      ['is a push consumer', { deliver_subject: 'pushed' }],
    ])('refuses a consumer of somebody else that %s', async (why, config) => {
      const subject = await client.subject();
      const [stream = ''] = subject.split('.');
      const name = `redrive-${subject.replaceAll('.', '_')}`;
      const filter = 'filter_subject' in config ? `${stream}.elsewhere` : subject;
      await client.manager.consumers.add(stream, {
        durable_name: name,
        ack_policy: AckPolicy.Explicit,
        ...config,
        filter_subject: filter,
      });
      const { consumer } = await listen(await opened(), subject);
      expect(consumer.state.why).toContain(why);
      expect(consumer.state.why).toContain(`nats consumer rm ${stream} ${name} --force`);
    });

    it('brings the message that another consumer gave up, whole', async () => {
      const subject = await client.subject();
      const [stream = ''] = subject.split('.');
      const captured = client.name();
      const advisories = `$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.${stream}.*`;
      const streams = [{ name: captured, subjects: [advisories] }];
      const broker = await opened({ streams });
      await broker.publish(
        [{ address: subject, payload: Buffer.from([0, 255]), headers: { 'x-a': ' ü\r\n' } }],
        { timeoutMs: 20_000 },
      )[0];
      const [stored] = await giveUp(stream, subject, 1);
      const { got, consumer } = await listen(broker, captured);
      await vi.waitFor(() => expect(got.length).toBe(1), soon);
      expect(Buffer.from(got[0]!.payload)).toEqual(Buffer.from([0, 255]));
      expect(got[0]!.headers).toMatchObject({ 'x-a': ' ü\r\n' });
      expect(natsExtraOf(got[0]!)).toMatchObject({
        subject,
        stream,
        sequence: stored,
        maxDeliveries: { stream, consumer: 'worker', sequence: stored, deliveries: 1 },
      });
      await consumer.ack(got);
    });

    it('says when the message that was given up is gone', async () => {
      const subject = await client.subject();
      const [stream = ''] = subject.split('.');
      const captured = client.name();
      const advisories = `$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.${stream}.*`;
      await client.manager.streams.add({ name: captured, subjects: [advisories] });
      await send(subject, 'gone');
      await giveUp(stream, subject, 1);
      await client.manager.streams.purge(stream);
      const broker = await opened({ streams: [{ name: captured, subjects: [advisories] }] });
      const { got } = await listen(broker, captured);
      await vi.waitFor(() => expect(got.length).toBe(1), soon);
      expect(natsExtraOf(got[0]!)?.maxDeliveries).toMatchObject({ stream, isGone: true });
      expect(JSON.parse(textOf(got[0]!))).toMatchObject({ stream, consumer: 'worker' });
    });

    it('fetches no more messages at once than there is room for', async () => {
      const subject = await client.subject();
      const [stream = ''] = subject.split('.');
      const captured = client.name();
      const advisories = `$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.${stream}.*`;
      await client.manager.streams.add({ name: captured, subjects: [advisories] });
      for (let i = 0; i < 30; i++) await send(subject, 'x'.repeat(50_000));
      await giveUp(stream, subject, 30);
      const broker = await opened({ streams: [{ name: captured, subjects: [advisories] }] });
      const { got, consumer } = await listen(broker, captured, {
        maxMessages: 100,
        maxBytes: 100_000,
      });
      let [all, most, settled] = [0, 0, 0];
      while (all < 30) {
        await vi.waitFor(() => expect(got.length).toBeGreaterThan(settled), soon);
        const fresh = got.slice(settled);
        most = Math.max(most, fresh.length);
        settled = got.length;
        all += fresh.length;
        await consumer.ack(fresh);
      }
      // Two fit. Those on their way when the room was used up come on top.
      expect(most).toBeLessThanOrEqual(2 + 8);
    });

    /** A worker that acknowledges nothing, until the server has given up so many messages. */
    async function giveUp(stream: string, subject: string, count: number): Promise<number[]> {
      const { manager, connection } = client;
      await manager.consumers.add(stream, {
        durable_name: 'worker',
        ack_policy: AckPolicy.Explicit,
        max_deliver: 1,
        ack_wait: 100e6,
        filter_subject: subject,
      });
      const advised: number[] = [];
      const listening = connection.subscribe(
        `$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.${stream}.worker`,
        { callback: (_, one) => void advised.push(one.json<{ stream_seq: number }>().stream_seq) },
      );
      const worker = await jetstream(connection).consumers.get(stream, 'worker');
      const messages = await worker.consume({ max_messages: 100, callback: () => undefined });
      await vi.waitFor(() => expect(advised.length).toBe(count), soon);
      messages.stop();
      listening.unsubscribe();
      return advised;
    }
  });
}
