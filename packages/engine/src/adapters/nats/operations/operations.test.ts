import { startNats, startProxy } from '@redrive/services';
import {
  describeService,
  natsClient,
  type NatsClient,
  sharedServer,
} from '@redrive/services/vitest';
import { isRetryError } from 'redrive';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
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

    /** A bucket that goes away with the client. */
    async function stage() {
      const bucket = client.name();
      await kvCreate(client.connection, bucket);
      const connection = await connectWithRetry(url);
      const { manager, told } = managed();
      return {
        bucket,
        connection,
        told,
        options: { manager },
        async [Symbol.asyncDispose]() {
          await connection.close();
          await client.manager.streams.delete(`KV_${bucket}`).catch(() => false);
        },
      };
    }

    describe('connectWithRetry', () => {
      it('tries again until the server is there, under NATS_CONNECT', async () => {
        await using proxy = await startProxy(url);
        proxy.refuse();
        const { manager, told } = managed();
        const connecting = connectWithRetry(proxy.url, { manager, timeoutMs: 2000 });
        await vi.waitFor(async () => {
          expect(await told()).toContain('retry_attempt RETRY_NATS_CONNECT');
        }, soon);
        proxy.admit();
        await using connection = await connecting;
        await connection.flush();
      });

      it('gives up after the attempts of its category, and says why', async () => {
        await using proxy = await startProxy(url);
        proxy.refuse();
        const { manager, told } = managed();
        const error: unknown = await connectWithRetry(proxy.url, { manager }).catch(
          (reason: unknown) => reason,
        );
        if (!isRetryError(error)) throw new Error(String(error));
        expect(error).toMatchObject({ category: 'RETRY_NATS_CONNECT', attempts: 5 });
        expect(error.cause).toMatchObject({ code: 'NATS_UNAVAILABLE' });
        expect((await told()).at(-1)).toBe('retry_exhausted RETRY_NATS_CONNECT');
      });

      it('does not repeat refused credentials, and shows none', async () => {
        const wrong = new URL(url);
        wrong.password = 'very-secret';
        const { manager, told } = managed();
        const connecting = connectWithRetry(wrong.href, { manager });
        await expect(connecting).rejects.toMatchObject({ code: 'NATS_REFUSED' });
        await expect(connecting).rejects.not.toThrow(/very-secret/);
        expect(await told()).toEqual(['retry_abandoned RETRY_NATS_CONNECT']);
        const missing = connectWithRetry(url, { manager, credsFile: '/nowhere/redrive.creds' });
        await expect(missing).rejects.toMatchObject({ code: 'NATS_REFUSED' });
      });

      it('ends at once when its signal aborts', async () => {
        await using proxy = await startProxy(url);
        proxy.stall();
        const ending = new AbortController();
        const connecting = connectWithRetry(proxy.url, { signal: ending.signal });
        ending.abort(new Error('enough'));
        await expect(connecting).rejects.toMatchObject({ code: 'ABORTED' });
        proxy.resume();
        // The connection that came too late is closed.
        await vi.waitFor(() => expect(proxy.connections).toBe(0), soon);
      });
    });

    describe('publish', () => {
      it('resolves with the place in the stream, and stores one message per id', async () => {
        const subject = await client.subject();
        const [stream = ''] = subject.split('.');
        const options = { messageId: 'order-17', headers: { 'x-a': 'ü' } };
        const first = await publish(client.connection, subject, '{"order":17}', options);
        expect(first).toEqual({ stream, sequence: 1, duplicate: false });
        const again = await publish(client.connection, subject, '{"order":17}', options);
        expect(again).toEqual({ stream, sequence: 1, duplicate: true });
        expect(await client.depth(subject)).toBe(1);
        await publish(client.connection, subject, 'another');
        await publish(client.connection, subject, 'another');
        expect(await client.depth(subject)).toBe(3);
      });

      it('says which stream is missing, without another attempt', async () => {
        const { manager, told } = managed();
        const subject = `${client.name()}.in`;
        const publishing = publish(client.connection, subject, 'x', { manager });
        await expect(publishing).rejects.toMatchObject({
          code: 'NATS_NO_STREAM',
          message: expect.stringContaining(`nats stream add`) as unknown,
        });
        expect(await told()).toEqual(['retry_abandoned RETRY_NATS_PUBLISH']);
      });

      it('refuses what the server would never take, without another attempt', async () => {
        const { manager, told } = managed();
        const large = Buffer.alloc((client.connection.info?.max_payload ?? 0) + 1);
        const subject = await client.subject();
        for (const [to, bytes] of [
          ['not a subject', 'x'],
          ['$JS.API.STREAM.DELETE.A', 'x'],
          [subject, large],
        ] as const) {
          const publishing = publish(client.connection, to, bytes, { manager });
          await expect(publishing).rejects.toMatchObject({ code: 'NATS_REFUSED' });
        }
        expect(new Set(await told())).toEqual(new Set(['retry_abandoned RETRY_NATS_PUBLISH']));
      });

      it('publishes by core NATS where no confirm is wanted', async () => {
        const subject = client.name();
        const subscription = await subscribe(client.connection, subject, { max: 1 });
        const options = { confirms: false, headers: { 'x-a': '1' } };
        expect(await publish(client.connection, subject, 'bare', options)).toBeUndefined();
        for await (const message of subscription) {
          expect(message.string()).toBe('bare');
          expect(message.headers?.get('x-a')).toBe('1');
        }
      });
    });

    describe('subscribe', () => {
      it('resolves when the server knows of it, and shares messages in a group', async () => {
        const subject = client.name();
        const { manager } = managed();
        const options = { manager, queue: 'workers' };
        const group = [
          await subscribe(client.connection, subject, options),
          await subscribe(client.connection, subject, options),
        ];
        await using other = await natsClient(url);
        for (let i = 0; i < 10; i++) other.connection.publish(subject, String(i));
        await other.connection.flush();
        await client.connection.flush();
        const counts = group.map((one) => one.getReceived());
        expect(counts[0]! + counts[1]!).toBe(10);
        for (const one of group) one.unsubscribe();
      });

      it('is not repeated where the connection is closed', async () => {
        const connection = await connectWithRetry(url);
        await connection.close();
        const { manager, told } = managed();
        await expect(subscribe(connection, 'a', { manager })).rejects.toMatchObject({
          code: 'NATS_CLOSED',
        });
        expect(await told()).toEqual(['retry_abandoned RETRY_NATS_SUBSCRIBE']);
      });
    });

    describe('createStream', () => {
      it('makes a stream, and takes one that is there', async () => {
        const name = client.name();
        const { manager } = managed();
        const spec = { name, subjects: [`${name}.a`], retention: 'workqueue' } as const;
        await createStream(client.connection, spec, { manager });
        await createStream(client.connection, spec, { manager });
        const { config } = await client.manager.streams.info(name);
        expect(config).toMatchObject({ subjects: [`${name}.a`], retention: 'workqueue' });
      });

      it('names the subject that a stream lacks, and what else is wrong, with the command', async () => {
        const name = client.name();
        const { manager, told } = managed();
        await createStream(client.connection, { name, subjects: [`${name}.a`] });
        const lacking = createStream(
          client.connection,
          { name, subjects: [`${name}.b`] },
          { manager },
        );
        await expect(lacking).rejects.toMatchObject({
          code: 'NATS_REFUSED',
          message: `Stream ${name} exists without ${name}.b. Add it: nats stream edit ${name} --force --subjects '${name}.a' --subjects '${name}.b'`,
        });
        const spec = { name, subjects: [`${name}.a`], retention: 'workqueue' } as const;
        await expect(createStream(client.connection, spec)).rejects.toThrow(
          `nats stream rm ${name} --force`,
        );
        expect(await told()).toEqual(['retry_abandoned RETRY_NATS_STREAM_CREATE']);
        const other = client.name();
        const taken = createStream(client.connection, { name: other, subjects: [`${name}.a`] });
        await expect(taken).rejects.toMatchObject({ code: 'NATS_REFUSED' });
      });
    });

    describe('kvCreate', () => {
      it('makes a bucket, and takes one that is there', async () => {
        await using one = await stage();
        const { manager, told } = managed();
        await kvCreate(client.connection, one.bucket, { manager });
        expect(await told()).toEqual([]);
        const { config } = await client.manager.streams.info(`KV_${one.bucket}`);
        expect(config).toMatchObject({ max_msgs_per_subject: 1, storage: 'file', discard: 'new' });
      });

      it('refuses a bucket of other settings by name, with the command that mends it', async () => {
        await using one = await stage();
        const { manager, told } = managed();
        const wish = { history: 5, ttlMs: 60_000, manager };
        const creating = kvCreate(client.connection, one.bucket, wish);
        await expect(creating).rejects.toMatchObject({ code: 'NATS_REFUSED' });
        await expect(creating).rejects.toThrow(
          `Bucket ${one.bucket} exists with other settings. Its history is 1, not 5. Run: nats stream edit KV_${one.bucket} --force --max-msgs-per-subject=5 Its TTL is 0 ms, not 60000 ms. Run: nats stream edit KV_${one.bucket} --force --max-age=60000ms`,
        );
        expect(await told()).toEqual(['retry_abandoned RETRY_KV_CREATE']);
        await expect(kvCreate(client.connection, 'no.name')).rejects.toMatchObject({
          code: 'NATS_REFUSED',
        });
      });
    });

    describe('a value of a bucket', () => {
      it('is written, read and deleted', async () => {
        await using one = await stage();
        const { bucket, connection, options } = one;
        expect(await kvGet(connection, bucket, 'a.b', options)).toBeUndefined();
        const first = await kvPut(connection, bucket, 'a.b', 'on', options);
        const found = await kvGet(connection, bucket, 'a.b', options);
        expect(found).toMatchObject({ revision: first });
        expect(text(found?.value)).toBe('on');
        await kvDelete(connection, bucket, 'a.b', options);
        expect(await kvGet(connection, bucket, 'a.b', options)).toBeUndefined();
        expect(await one.told()).toEqual([]);
      });

      it('is written where the key is at the revision, and nowhere else', async () => {
        await using one = await stage();
        const { bucket, connection, options } = one;
        const first = await kvPut(connection, bucket, 'k', '1', { ...options, revision: 0 });
        const second = await kvPut(connection, bucket, 'k', '2', { ...options, revision: first });
        for (const revision of [0, first]) {
          await expect(
            kvPut(connection, bucket, 'k', '3', { ...options, revision }),
          ).rejects.toMatchObject({
            code: 'NATS_WRONG_REVISION',
            message: expect.stringContaining(`at revision ${second}, not ${revision}`) as unknown,
          });
        }
        await expect(
          kvDelete(connection, bucket, 'k', { ...options, revision: first }),
        ).rejects.toMatchObject({ code: 'NATS_WRONG_REVISION' });
        expect(new Set(await one.told())).toEqual(
          new Set(['retry_abandoned RETRY_KV_PUT', 'retry_abandoned RETRY_KV_DELETE']),
        );
        await kvDelete(connection, bucket, 'k', { ...options, revision: second });
        // Without a value it is as if it had never been there, although a mark of the deletion is.
        await kvPut(connection, bucket, 'k', '4', { ...options, revision: 0 });
        expect(text((await kvGet(connection, bucket, 'k'))?.value)).toBe('4');
      });

      it('names the bucket that does not exist, and keys that cannot be', async () => {
        const bucket = client.name();
        const { manager, told } = managed();
        const options = { manager };
        for (const using of [
          kvGet(client.connection, bucket, 'k', options),
          kvPut(client.connection, bucket, 'k', 'v', options),
          kvDelete(client.connection, bucket, 'k', options),
        ]) {
          await expect(using).rejects.toMatchObject({
            code: 'NATS_NO_STREAM',
            message: expect.stringContaining(`nats kv add ${bucket}`) as unknown,
          });
        }
        expect((await told()).every((one) => one.startsWith('retry_abandoned'))).toBe(true);
        for (const key of ['', 'a b', '*', '.a', 'a.', 'a..b', 'x'.repeat(201)]) {
          await expect(kvGet(client.connection, bucket, key)).rejects.toMatchObject({
            code: 'NATS_REFUSED',
          });
        }
      });
    });
  });
}

describeService('NATS 2.15', () => {
  it('says what the user may not do, without another attempt', async () => {
    const permissions =
      '{ publish: { allow: ["$JS.API.>"] }, subscribe: { allow: ["_INBOX.>", "open.>"] } }';
    const users = `authorization { users: [ { user: u, password: p, permissions: ${permissions} } ] }`;
    await using server = await startNats({ settings: [users] });
    const { host } = new URL(server.url);
    await using connection = await connectWithRetry(`nats://u:p@${host}`);
    const { manager, told } = managed();
    const refusal = (what: string) => ({
      code: 'NATS_REFUSED',
      message: expect.stringContaining(`may not ${what}`) as unknown,
    });
    await expect(subscribe(connection, 'secret.a', { manager })).rejects.toMatchObject(
      refusal('subscribe to secret.a'),
    );
    await expect(publish(connection, 'secret.a', 'x', { manager })).rejects.toMatchObject(
      refusal('publish to secret.a'),
    );
    expect(await told()).toEqual([
      'retry_abandoned RETRY_NATS_SUBSCRIBE',
      'retry_abandoned RETRY_NATS_PUBLISH',
    ]);
    await subscribe(connection, 'open.a', { manager });
  });

  it('says that JetStream is off, without another attempt', async () => {
    await using server = await startNats({ jetStream: false });
    await using connection = await connectWithRetry(server.url);
    const { manager, told } = managed();
    for (const using of [
      publish(connection, 'a', 'x', { manager }),
      createStream(connection, { name: 'A', subjects: ['a'] }, { manager }),
      kvCreate(connection, 'b', { manager }),
      kvGet(connection, 'b', 'k', { manager }),
      kvPut(connection, 'b', 'k', 'v', { manager }),
      kvDelete(connection, 'b', 'k', { manager }),
    ]) {
      await expect(using).rejects.toMatchObject({
        code: 'NATS_REFUSED',
        message: expect.stringContaining('JetStream is not enabled') as unknown,
      });
    }
    expect((await told()).every((one) => one.startsWith('retry_abandoned'))).toBe(true);
  });
});
