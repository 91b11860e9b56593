import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type RedisServer, startRedis } from './index.ts';
import { describeService } from './vitest.ts';

async function send(url: string, ...commands: string[]): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write([...commands, 'QUIT', ''].join('\r\n'));
  return text(socket);
}

describeService('Redis', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis({ settings: { maxmemory: '64mb' } });
  });
  afterAll(() => server.stop());

  it('answers whoever has the password, and nobody else', async () => {
    const { password } = new URL(server.url);
    expect(await send(server.url, `AUTH ${password}`, 'PING')).toBe('+OK\r\n+PONG\r\n+OK\r\n');
    expect(await send(server.url, 'PING')).toContain('NOAUTH');
  });

  it('keeps nothing on disk, and takes settings', async () => {
    const { password } = new URL(server.url);
    const answer = await send(
      server.url,
      `AUTH ${password}`,
      'CONFIG GET save',
      'CONFIG GET appendonly',
      'CONFIG GET maxmemory',
    );
    expect(answer.split('\r\n').filter((line) => /^[^*$+]|^$/.test(line))).toEqual([
      'save',
      '',
      'appendonly',
      'no',
      'maxmemory',
      String(64 * 1024 * 1024),
      '',
    ]);
  });
});
