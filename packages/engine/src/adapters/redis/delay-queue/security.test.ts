/** A Redis that takes TLS alone: what works, and what is said where it does not. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { certificate, freePort, type RedisServer, startRedis } from '@redrive/services';
import { describeService } from '@redrive/services/vitest';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type RedisDelayQueueOptions } from './options.ts';
import { redisDelayQueue } from './queue.ts';

const DAY_MS = 86_400_000;
const validNow = () => certificate('localhost', Date.now() - DAY_MS, Date.now() + DAY_MS);
const { key, cert } = validNow();
const payload = new Uint8Array([1]);

describeService('Redis', () => {
  let server: RedisServer;
  let folder: string;
  let url: URL;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'redrive-redis-tls-'));
    // The server runs as another user where the tests run as root.
    chmodSync(folder, 0o755);
    const files = { key: join(folder, 'key.pem'), cert: join(folder, 'cert.pem') };
    writeFileSync(files.key, key, { mode: 0o644 });
    writeFileSync(files.cert, cert);
    const port = await freePort();
    server = await startRedis({
      settings: {
        'tls-port': String(port),
        'tls-cert-file': files.cert,
        'tls-key-file': files.key,
        'tls-ca-cert-file': files.cert,
        'tls-auth-clients': 'no',
      },
    });
    url = new URL(server.url.replace('redis:', 'rediss:'));
    url.host = `localhost:${port}`;
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const queueOn = (options: RedisDelayQueueOptions) => redisDelayQueue(options);
  const trusting = { client: { socket: { ca: cert } } } as unknown as RedisDelayQueueOptions;

  it('is reached by rediss:// with the certificate of its authority', async () => {
    const queue = queueOn({ ...trusting, url: url.href });
    await queue.open();
    await queue.schedule([{ id: 'a', delayMs: 0, payload }]);
    const handed = Promise.withResolvers<string[]>();
    await queue.consume(async (batch) => {
      handed.resolve(batch.map(({ id }) => id));
      return batch.map(() => ({ type: 'done' }));
    }, {});
    expect(await handed.promise).toEqual(['a']);
    await queue.close();
  });

  it.each([
    ['an unknown authority', {}, /DEPTH_ZERO_SELF_SIGNED_CERT.*socket\.ca/],
    ['a wrong password', { ...trusting, isWrong: true }, /refuses the user or the password/],
  ])('is met with %s: the error says what to do, and no secret', async (_, more, sentence) => {
    const { isWrong, ...options } = more as RedisDelayQueueOptions & { isWrong?: boolean };
    const to = new URL(url);
    if (isWrong) to.password = 'wr0ng-secret';
    const queue = queueOn({ ...options, url: to.href });
    const error: unknown = await queue.open().catch((one: unknown) => one);
    expect(error).toMatchObject({
      code: 'STORE_DENIED',
      message: expect.stringMatching(sentence) as string,
    });
    await queue.close();
    const all = inspect(error, { depth: Infinity, showHidden: true });
    expect(all).not.toContain('wr0ng-secret');
    expect(all).not.toContain(url.password);
  });
});
