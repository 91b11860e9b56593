import { nanos } from '@nats-io/transport-node';
import { startProxy } from '@redrive/services';
import {
  describeService,
  natsClient,
  type NatsClient,
  sharedServer,
} from '@redrive/services/vitest';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import {
  connectWithRetry,
  createStream,
  kvCreate,
  kvDelete,
  kvGet,
  kvPut,
  publish,
  subscribe,
} from '../index.ts';
import { managed, soon, text } from './stage.test.ts';

for (const version of ['2.9', '2.15'] as const) {
  describeService(`NATS ${version}`, () => {
    let url: string;
    let client: NatsClient;
    beforeAll(async () => {
      url = await sharedServer(`NATS ${version}`);
      client = await natsClient(url);
    });
    afterAll(() => client.close());

    /** A bucket that goes away with the client, and a connection through a proxy. */
    async function stage(duplicateWindowMs?: number) {
      const bucket = client.name();
      const stream = `KV_${bucket}`;
      if (duplicateWindowMs !== undefined) {
        await client.manager.streams.add({
          name: stream,
          subjects: [`$KV.${bucket}.>`],
          max_msgs_per_subject: 1,
          duplicate_window: nanos(duplicateWindowMs),
        });
      } else {
        await kvCreate(client.connection, bucket);
      }
      const proxy = await startProxy(url);
      const connection = await connectWithRetry(proxy.url, { heartbeat: 1000 });
      const { manager, told } = managed();
      const lastRevision = async () => (await client.manager.streams.info(stream)).state.last_seq;
      return {
        bucket,
        proxy,
        connection,
        told,
        lastRevision,
        options: { manager, timeoutMs: 400 },
        /** The server hears it, and its answer is lost. */
        async loseAnswer<T>(
          work: () => Promise<T>,
          meanwhile?: () => Promise<unknown>,
        ): Promise<T> {
          const before = await lastRevision();
          proxy.mute();
          const working = work();
          working.catch(() => undefined);
          await vi.waitFor(async () => expect(await lastRevision()).toBeGreaterThan(before), soon);
          await meanwhile?.();
          proxy.cut();
          proxy.resume();
          return working;
        },
        async [Symbol.asyncDispose]() {
          await connection.close();
          await proxy.stop();
          await client.manager.streams.delete(stream).catch(() => false);
        },
      };
    }

    it('stores one message although the answer to an attempt was lost', async () => {
      await using one = await stage();
      const subject = await client.subject();
      one.proxy.mute();
      const publishing = publish(one.connection, subject, 'once', one.options);
      await vi.waitFor(async () => expect(await client.depth(subject)).toBe(1), soon);
      one.proxy.cut();
      one.proxy.resume();
      expect(await publishing).toMatchObject({ sequence: 1, duplicate: true });
      expect(await client.depth(subject)).toBe(1);
      expect(await one.told()).toContain('retry_attempt RETRY_NATS_PUBLISH');
    });

    it('gives up after its attempts, and says that the outcome is not known', async () => {
      await using one = await stage();
      const subject = await client.subject();
      one.proxy.stall();
      const options = { ...one.options, timeoutMs: 100 };
      const error: unknown = await publish(one.connection, subject, 'x', options).catch(
        (reason: unknown) => reason,
      );
      expect(error).toMatchObject({
        code: 'EXHAUSTED',
        attempts: 3,
        cause: {
          code: 'NATS_UNAVAILABLE',
          message: expect.stringContaining('not known') as unknown,
        },
      });
      one.proxy.resume();
    });

    it('tries again over the next connection, and leaves no other subscription behind', async () => {
      await using one = await stage();
      const subject = client.name();
      one.proxy.stall();
      const subscribing = subscribe(one.connection, subject, one.options);
      await vi.waitFor(async () => {
        expect(await one.told()).toContain('retry_attempt RETRY_NATS_SUBSCRIBE');
      }, soon);
      one.proxy.cut();
      one.proxy.resume();
      const subscription = await subscribing;
      await client.connection.flush();
      const before = one.connection.stats().inMsgs;
      client.connection.publish(subject, 'one');
      await client.connection.flush();
      await one.connection.flush();
      expect(subscription.getReceived()).toBe(1);
      expect(one.connection.stats().inMsgs - before).toBe(1);
    });

    it('tries again after a lost answer, and finds what it made', async () => {
      await using one = await stage();
      const name = client.name();
      one.proxy.mute();
      const spec = { name, subjects: [`${name}.a`] };
      const creating = createStream(one.connection, spec, one.options);
      // The first question of an attempt is not answered: the second attempt makes it.
      await vi.waitFor(async () => {
        expect(await one.told()).toContain('retry_attempt RETRY_NATS_STREAM_CREATE');
      }, soon);
      one.proxy.resume();
      await creating;
      expect((await client.manager.streams.info(name)).config.subjects).toEqual([`${name}.a`]);
    });

    it('tries again when no answer came', async () => {
      await using one = await stage();
      one.proxy.stall();
      const creating = kvCreate(one.connection, one.bucket, one.options);
      await vi.waitFor(async () => {
        expect(await one.told()).toContain('retry_attempt RETRY_KV_CREATE');
      }, soon);
      one.proxy.resume();
      await creating;
    });

    it('is read again when the connection is cut', async () => {
      await using one = await stage();
      const { bucket, connection, options } = one;
      await kvPut(client.connection, bucket, 'k', 'v');
      one.proxy.mute();
      const reading = kvGet(connection, bucket, 'k', options);
      await vi.waitFor(async () => {
        expect(await one.told()).toContain('retry_attempt RETRY_KV_GET');
      }, soon);
      one.proxy.cut();
      one.proxy.resume();
      expect(text((await reading)?.value)).toBe('v');
    });

    it.each([
      ['remembers its id', undefined],
      ['has forgotten its id', 100],
    ])('counts one write whose answer was lost, where the stream %s', async (_, windowMs) => {
      await using one = await stage(windowMs);
      const { bucket, connection, options } = one;
      const first = await kvPut(connection, bucket, 'k', '1', options);
      const put = () => kvPut(connection, bucket, 'k', '2', { ...options, revision: first });
      const second = await one.loseAnswer(put);
      expect(second).toBe(first + 1);
      expect(await one.lastRevision()).toBe(second);
      expect(await one.told()).toContain('retry_attempt RETRY_KV_PUT');
      const remove = () => kvDelete(connection, bucket, 'k', { ...options, revision: second });
      await one.loseAnswer(remove);
      expect(await one.lastRevision()).toBe(second + 1);
      expect(await one.told()).toContain('retry_attempt RETRY_KV_DELETE');
    });

    it('says that it does not know where somebody else wrote after a lost answer', async () => {
      await using one = await stage(100);
      const { bucket, connection, options } = one;
      const first = await kvPut(connection, bucket, 'k', '1', options);
      const put = () => kvPut(connection, bucket, 'k', '2', { ...options, revision: first });
      const other = () => kvPut(client.connection, bucket, 'k', 'of another');
      await expect(one.loseAnswer(put, other)).rejects.toMatchObject({
        code: 'NATS_OUTCOME_UNKNOWN',
      });
      expect(text((await kvGet(connection, bucket, 'k'))?.value)).toBe('of another');
    });
  });
}
