import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Proxy, startProxy } from './index.ts';

describe('a proxy', () => {
  let server: Server;
  let proxy: Proxy;
  let accepted: Socket[];
  beforeEach(async () => {
    accepted = [];
    server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => socket.destroy());
      accepted.push(socket);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    proxy = await startProxy(`tcp://127.0.0.1:${(server.address() as AddressInfo).port}`);
  });
  afterEach(async () => {
    await proxy.stop();
    for (const socket of accepted) socket.destroy();
    server.close();
  });

  /** Both ends of a connection through the proxy. */
  async function connected(): Promise<{ client: Socket; far: Socket }> {
    const client = connect(Number(new URL(proxy.url).port), '127.0.0.1');
    client.on('error', () => client.destroy());
    const [far] = (await once(server, 'connection')) as [Socket];
    return { client, far };
  }

  async function next(socket: Socket): Promise<string> {
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    return chunk.toString();
  }

  it('forwards in both directions, also the end', async () => {
    const { client, far } = await connected();
    client.end('question');
    expect(await text(far)).toBe('question');
    far.end('answer');
    expect(await text(client)).toBe('answer');
  });

  it('cuts both sides at once', async () => {
    const { client, far } = await connected();
    const ends = Promise.all([once(client, 'error'), once(far, 'error')]);
    expect(proxy.connections).toBe(1);
    proxy.cut();
    for (const [error] of (await ends) as Error[][]) expect(error!.message).toContain('ECONNRESET');
    expect(proxy.connections).toBe(0);
  });

  it('lets so many bytes through to the server, and then cuts', async () => {
    const { client, far } = await connected();
    const isCut = proxy.cutAfter(5);
    const reset = once(client, 'error');
    client.write('123');
    client.write('45678');
    expect(await text(far)).toBe('12345');
    await isCut;
    await reset;
    const other = await connected();
    other.client.write('whole');
    expect(await next(other.far)).toBe('whole');
  });

  it('holds back everything while it is stalled, and loses nothing of it', async () => {
    const before = await connected();
    proxy.stall();
    const after = await connected();
    const received: string[] = [];
    for (const { far, client } of [before, after]) {
      far.on('data', (chunk: Buffer) => received.push(chunk.toString()));
      client.write('held');
    }
    // What travels outside the proxy meanwhile has had the time to arrive.
    const direct = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const [far] = (await once(server, 'connection')) as [Socket];
    direct.write('direct');
    expect(await next(far)).toBe('direct');
    direct.destroy();
    expect(received).toEqual([]);
    proxy.resume();
    await expect.poll(() => received).toEqual(['held', 'held']);
  });

  it('lets the server hear everything while it is muted, and holds its answers back', async () => {
    const { client, far } = await connected();
    const answers: string[] = [];
    client.on('data', (chunk: Buffer) => answers.push(chunk.toString()));
    proxy.mute();
    client.write('question');
    expect(await next(far)).toBe('question');
    far.write('answer');
    // What travels outside the proxy meanwhile has had the time to arrive.
    const direct = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const [other] = (await once(server, 'connection')) as [Socket];
    direct.write('direct');
    expect(await next(other)).toBe('direct');
    direct.destroy();
    expect(answers).toEqual([]);
    proxy.resume();
    await expect.poll(() => answers).toEqual(['answer']);
  });

  it('tells nobody of an end either while it is stalled', async () => {
    const { client, far } = await connected();
    proxy.stall();
    far.destroy();
    let isOver = false;
    client.on('close', () => (isOver = true));
    // What travels outside the proxy meanwhile has had the time to arrive.
    const direct = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const [other] = (await once(server, 'connection')) as [Socket];
    direct.write('direct');
    expect(await next(other)).toBe('direct');
    direct.destroy();
    expect(isOver).toBe(false);
    proxy.resume();
    await expect.poll(() => isOver).toBe(true);
  });

  it('turns new connections away, and leaves the old ones', async () => {
    const { client, far } = await connected();
    proxy.refuse();
    const refused = connect(Number(new URL(proxy.url).port), '127.0.0.1');
    await once(refused, 'error');
    client.write('still there');
    expect(await next(far)).toBe('still there');
    proxy.admit();
    await connected();
    expect(proxy.connections).toBe(2);
  });
});
