import { type NatsServer, startNats, startProxy } from '@redrive/services';
import { describeService, natsClient, type NatsClient } from '@redrive/services/vitest';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Publication, Received } from '../../ports/broker.ts';
import { type NatsBroker, nats, type NatsOptions } from './index.ts';

const soon = { timeout: 20_000, interval: 5 };
const policy = { base: '10ms', cap: '100ms' } as const;

const message = (address: string, changes: Partial<Publication> = {}): Publication => ({
  address,
  payload: Buffer.from('x'),
  headers: {},
  ...changes,
});

describeService('NATS 2.15', () => {
  let server: NatsServer;
  let client: NatsClient;
  let said: string[] = [];
  const brokers: NatsBroker[] = [];
  beforeAll(async () => {
    const settings = ['max_payload: 4096'];
    server = await startNats({ settings });
    client = await natsClient(server.url);
  });
  afterAll(async () => {
    await client.close();
    await server.stop();
  });
  afterEach(async () => {
    said = [];
    await Promise.all(brokers.splice(0).map((broker) => broker.close()));
  });

  async function opened(options: Partial<NatsOptions> = {}): Promise<NatsBroker> {
    const keep = (fields: object, text: string) => {
      said.push(`${text} ${JSON.stringify(fields)}`);
    };
    const log = { debug: keep, info: keep, warn: keep, error: keep };
    const broker = nats({ url: server.url, policy, log, ...options });
    brokers.push(broker);
    await broker.open();
    return broker;
  }

  async function publish(broker: NatsBroker, one: Publication, timeoutMs = 20_000) {
    return (await Promise.all(broker.publish([one], { timeoutMs })))[0];
  }

  describe('a message for JetStream', () => {
    it('is unroutable where no stream has its subject, and the failure says what mends that', async () => {
      const address = `${client.name()}.it's`;
      const published = await publish(await opened(), message(address));
      const command = `nats stream add ${address.split('.')[0]!.toUpperCase()} --subjects '${address.replace("'", String.raw`'\''`)}' --defaults`;
      expect(published).toEqual({
        outcome: 'unroutable',
        failure: {
          class: 'technical',
          code: 'NO_STREAM',
          message: `No stream has the subject ${address}. Create one: ${command} Then replay the message.`,
          notExecuted: true,
        },
      });
    });

    it('is impossible when the server would take no message of this size', async () => {
      const subject = await client.subject();
      const broker = await opened();
      const large = message(subject, { payload: Buffer.alloc(5000) });
      const [first, second] = await Promise.all(
        broker.publish([large, message(subject)], { timeoutMs: 20_000 }),
      );
      expect(first).toMatchObject({
        outcome: 'impossible',
        failure: { code: 'MESSAGE_TOO_LARGE', message: expect.stringContaining('4096') as string },
      });
      expect(second).toEqual({ outcome: 'confirmed' });
      expect(said).toEqual([]);
    });

    it('is impossible when its stream takes no message of this size', async () => {
      const subject = await client.subject({ max_msg_size: 100 });
      const published = await publish(
        await opened(),
        message(subject, { payload: Buffer.alloc(200) }),
      );
      expect(published).toMatchObject({
        outcome: 'impossible',
        failure: { code: 'MESSAGE_TOO_LARGE' },
      });
    });

    it('is refused by a stream that is full', async () => {
      const subject = await client.subject({ max_msgs: 1, discard: 'new' as never });
      const broker = await opened();
      expect(await publish(broker, message(subject))).toEqual({ outcome: 'confirmed' });
      expect(await publish(broker, message(subject))).toMatchObject({
        outcome: 'refused',
        failure: { code: 'BROKER_REFUSED', class: 'transient', notExecuted: true },
      });
    });

    it('is stored once, however often the same attempt is sent', async () => {
      const subject = await client.subject();
      const broker = await opened();
      const headers = { 'x-retry-scheduler': 'true', 'x-message-id': 'a', 'x-retry-count': 1 };
      for (const count of [1, 1, 2]) {
        const one = message(subject, { headers: { ...headers, 'x-retry-count': count } });
        expect(await publish(broker, one)).toEqual({ outcome: 'confirmed' });
      }
      expect(await client.depth(subject)).toBe(2);
    });

    it('waits for the word of the stream, whoever else answers', async () => {
      const subject = await client.subject();
      const listening = client.connection.subscribe(subject, {
        callback: (_, { reply }) => client.connection.publish(reply!, 'thanks'),
      });
      await client.connection.flush();
      expect(await publish(await opened(), message(subject))).toEqual({ outcome: 'confirmed' });
      listening.unsubscribe();
    });

    it('is unknown when nobody confirms it in time', async () => {
      const subject = client.name();
      const listening = client.connection.subscribe(subject, { callback: () => undefined });
      await client.connection.flush();
      expect(await publish(await opened(), message(subject), 50)).toMatchObject({
        outcome: 'unknown',
        failure: { code: 'CONFIRM_TIMEOUT' },
      });
      listening.unsubscribe();
    });

    it('is lost with the connection that it was sent over, long before its time is up', async () => {
      const subject = client.name();
      const sent = new Promise<void>((resolve) => {
        client.connection.subscribe(subject, { max: 1, callback: () => resolve() });
      });
      await client.connection.flush();
      await using proxy = await startProxy(server.url);
      const broker = await opened({ url: proxy.url });
      const published = publish(broker, message(subject), 600_000);
      await sent;
      proxy.cut();
      expect(await published).toMatchObject({
        outcome: 'lost',
        failure: { code: 'CONNECTION_LOST' },
      });
    });

    it('makes the stream that the options have for it, when it is first needed', async () => {
      const name = client.name();
      const streams = [{ name, subjects: [`${name}.late`], onDemand: true }];
      const broker = await opened({ streams });
      await expect(client.manager.streams.info(name)).rejects.toThrow('stream not found');
      expect(await publish(broker, message(`${name}.late`))).toMatchObject({
        outcome: 'refused',
        failure: { code: 'STREAM_UNAVAILABLE' },
      });
      expect(await publish(broker, message(`${name}.late`))).toEqual({ outcome: 'confirmed' });
    });

    it('is sent when there is room, of more than may be on their way', async () => {
      const subject = await client.subject();
      const broker = await opened();
      // More than 32 MiB, and more than 4096.
      const payload = Buffer.alloc(4000);
      const all = Array.from({ length: 9000 }, () => message(subject, { payload }));
      const published = await Promise.all(broker.publish(all, { timeoutMs: 20_000 }));
      expect(new Set(published.map(({ outcome }) => outcome))).toEqual(new Set(['confirmed']));
      expect(await client.depth(subject)).toBe(9000);
    });
  });

  describe('a connection', () => {
    it('declares the streams of its options, and says what stands in the way', async () => {
      const name = client.name();
      const [fresh, lacking] = [`${name}.a`, `${name}.b`];
      const broker = await opened({
        streams: [{ name, subjects: [fresh], retention: 'workqueue' }],
      });
      expect(broker.state).toMatchObject({ state: 'connected' });
      expect((await client.manager.streams.info(name)).config).toMatchObject({
        subjects: [fresh],
        retention: 'workqueue',
      });
      const other = await opened({ streams: [{ name, subjects: [fresh, lacking] }] });
      expect(other.state.why).toContain(
        `nats stream edit ${name} --force --subjects '${fresh}' --subjects '${lacking}'`,
      );
      await client.manager.streams.update(name, { subjects: [fresh, lacking] });
      await vi.waitFor(() => expect(other.state.why).toBeUndefined(), soon);
    });

    it('uses the stream that somebody else has made for a subject', async () => {
      const subject = await client.subject();
      const name = client.name();
      const broker = await opened({ streams: [{ name, subjects: [subject] }] });
      expect(broker.state.why).toBeUndefined();
      await expect(client.manager.streams.info(name)).rejects.toThrow('stream not found');
    });

    it('says that the credentials are refused, and never what they are', async () => {
      const url = new URL(server.url);
      url.password = 's3cret';
      const broker = await opened({ url: url.href });
      expect(broker.state).toMatchObject({ state: 'connecting' });
      expect(broker.state.why).toContain('refused the credentials');
      expect(JSON.stringify([said, broker.state])).not.toContain('s3cret');
    });

    it('says that the file of credentials is missing', async () => {
      const broker = await opened({ credsFile: '/nowhere/user.creds' });
      expect(broker.state.why).toContain('/nowhere/user.creds cannot be read (ENOENT)');
    });
  });

  describe('without JetStream', () => {
    it('publishes to whoever listens, and confirms nothing but that the server has it', async () => {
      const broker = await opened({ confirms: false });
      expect(broker.capabilities).toMatchObject({ confirms: false, returnsUnroutable: false });
      const subject = client.name();
      const got: string[] = [];
      const listening = client.connection.subscribe(subject, {
        callback: (_, one) => void got.push(`${one.string()} ${one.headers?.get('x-a')}`),
      });
      await client.connection.flush();
      const one = message(subject, { headers: { 'x-a': 'b' } });
      expect(await publish(broker, one)).toEqual({ outcome: 'confirmed' });
      await vi.waitFor(() => expect(got).toEqual(['x b']), soon);
      listening.unsubscribe();
      // Nobody is there, and nobody says so.
      expect(await publish(broker, one)).toEqual({ outcome: 'confirmed' });
    });
  });
});

describeService('NATS 2.15', () => {
  it('is blocked while JetStream is off, and says what to do', async () => {
    await using server = await startNats({ jetStream: false });
    const broker = nats({ url: server.url, policy, log: quiet });
    await broker.open();
    expect(broker.state.state).toBe('blocked');
    expect(broker.state.why).toContain('enable JetStream');
    expect(broker.isReady).toBe(false);
    expect(await publishTo(broker, 'a.b')).toMatchObject({
      outcome: 'away',
      failure: { code: 'JETSTREAM_AWAY' },
    });
    await broker.close();
  });

  it('works with the permissions that the guide names, and says what the user may not do', async () => {
    const permissions =
      '{ publish: { allow: ["$JS.API.>", "$JS.ACK.>", "orders.>"] }, subscribe: { allow: "_INBOX.>" } }';
    const users = `authorization { users: [ { user: u, password: p, permissions: ${permissions} } ] }`;
    await using server = await startNats({ settings: [users] });
    const { host } = new URL(server.url);
    const streams = [{ name: 'ORDERS', subjects: ['orders.*'] }];
    const broker = nats({ url: `nats://u:p@${host}`, streams, policy, log: quiet });
    await broker.open();
    expect(broker.state).toMatchObject({ state: 'connected' });
    expect(broker.state.why).toBeUndefined();
    expect(await publishTo(broker, 'secret.a')).toMatchObject({
      outcome: 'refused',
      failure: { code: 'NOT_PERMITTED', message: expect.stringContaining('secret.a') as string },
    });
    expect(await publishTo(broker, 'orders.a')).toEqual({ outcome: 'confirmed' });
    const got: Received[] = [];
    const limits = { maxMessages: 10, maxBytes: 1 << 20 };
    const consumer = await broker.consume('orders.a', limits, (one) => got.push(one));
    await vi.waitFor(() => expect(got.length).toBe(1), soon);
    await consumer.ack(got);
    await consumer.stop();
    await broker.close();
  });
});

describeService('NATS 2.15', () => {
  it('never takes a question without an answer for a missing stream', async () => {
    const permissions = '{ publish: { deny: "$JS.API.STREAM.NAMES" } }';
    const users = `authorization { users: [ { user: u, password: p, permissions: ${permissions} } ] }`;
    await using server = await startNats({ settings: [users] });
    const url = `nats://u:p@${new URL(server.url).host}`;
    const broker = nats({ url, policy, log: quiet, connectTimeout: 500 });
    await broker.open();
    expect(await publishTo(broker, 'orders.a')).toMatchObject({
      outcome: 'refused',
      failure: { code: 'STREAM_UNAVAILABLE', class: 'transient' },
    });
    expect(broker.isReady).toBe(true);
    await broker.close();
  });
});

const quiet = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

async function publishTo(broker: NatsBroker, address: string) {
  return (await Promise.all(broker.publish([message(address)], { timeoutMs: 20_000 })))[0];
}
