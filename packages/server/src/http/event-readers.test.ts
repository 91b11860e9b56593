import { once } from 'node:events';
import { type ClientRequest, get, type IncomingMessage } from 'node:http';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { stage, type Stage } from './harness.test.ts';

const path = '/api/v1/events';

const requests: ClientRequest[] = [];
afterEach(() => {
  vi.useRealTimers();
  for (const request of requests.splice(0)) request.destroy();
});

async function listening(options = {}): Promise<Stage & { address: string }> {
  const made = await stage(options);
  const address = await made.app.listen({ host: '127.0.0.1', port: 0 });
  return { ...made, address };
}

async function follow(address: string, headers = {}): Promise<IncomingMessage> {
  const request = get(`${address}${path}`, { headers, agent: false });
  requests.push(request);
  request.on('error', () => undefined);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  response.on('error', () => undefined);
  return response;
}

async function chunkOf(response: IncomingMessage): Promise<string> {
  const [chunk] = (await once(response, 'data')) as [Buffer];
  return chunk.toString();
}

describe('following the events', () => {
  it('gets them as they happen', async () => {
    const { address, feed } = await listening();
    const response = await follow(address);
    expect(response.statusCode).toBe(200);
    expect(response.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    });
    feed.say('id: test-1-1\nevent: accepted\ndata: {}\n\n');
    expect(await chunkOf(response)).toBe('id: test-1-1\nevent: accepted\ndata: {}\n\n');
    expect(feed.lastIds).toEqual([undefined]);
  });

  it('goes on after the last event that was seen', async () => {
    const { address, feed } = await listening();
    await follow(address, { 'last-event-id': 'test-1-7' });
    expect(feed.lastIds).toEqual(['test-1-7']);
  });

  it('beats in between, so that nobody takes it for dead', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const { address } = await listening();
    const response = await follow(address);
    const beat = chunkOf(response);
    vi.advanceTimersByTime(15_000);
    expect(await beat).toBe(':\n\n');
  });

  it('ends when the reader goes', async () => {
    const { address, feed } = await listening();
    const response = await follow(address);
    expect(feed.readers.size).toBe(1);
    response.destroy();
    await vi.waitFor(() => expect(feed.readers.size).toBe(0), { timeout: 20_000 });
  });

  it('ends when the service stops', async () => {
    const { app, address, feed } = await listening();
    const response = await follow(address);
    const ended = once(response.resume(), 'end');
    await app.close();
    await ended;
    expect(feed.readers.size).toBe(0);
    feed.say('too late');
  });

  it('cuts off who reads too slowly, and nobody else', async () => {
    const { address, feed } = await listening();
    // Never resumed: what comes stays in the buffers on the way.
    await follow(address);
    const quick = await follow(address);
    let received = 0;
    quick.on('data', (chunk: Buffer) => (received += chunk.length));
    const text = `data: ${'x'.repeat(100_000)}\n\n`;
    let sent = 0;
    while (feed.readers.size === 2) {
      feed.say(text);
      sent += text.length;
      await vi.waitFor(() => expect(received).toBe(sent), { timeout: 20_000 });
      expect(sent).toBeLessThan(100_000_000);
    }
    expect(feed.readers.size).toBe(1);
  });

  it('is for a hundred at a time', async () => {
    const { address, feed } = await listening();
    const first = await follow(address);
    for (let i = 1; i < 100; i++) await follow(address);
    const refused = await follow(address);
    expect(refused.statusCode).toBe(503);
    expect(refused.headers).toMatchObject({
      'content-type': 'application/problem+json; charset=utf-8',
      'retry-after': '5',
    });
    expect(await chunkOf(refused)).toContain('TOO_MANY_READERS');
    first.destroy();
    await vi.waitFor(() => expect(feed.readers.size).toBe(99), { timeout: 20_000 });
    expect((await follow(address)).statusCode).toBe(200);
  });

  it('is not cut off by the limit of time that requests have', async () => {
    const { address, feed, engine, get: ask } = await listening({ requestTimeoutMs: 25 });
    await follow(address);
    // Others run into it meanwhile, again and again.
    const never = Promise.withResolvers<never[]>();
    engine.list = () => never.promise;
    for (let i = 0; i < 4; i++) expect((await ask('/api/v1/retries')).status).toBe(503);
    expect(feed.readers.size).toBe(1);
  });

  it('is refused with an id that is none', async () => {
    const { ask } = await stage();
    const headers = { 'last-event-id': 'x'.repeat(201) };
    expect(await ask({ url: path, headers })).toMatchObject({
      status: 400,
      body: { errors: [{ in: 'header', path: '/last-event-id' }] },
    });
  });
});
