import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { stage } from './harness.test.ts';

/** Sends these bytes and gives all that comes back until the server ends the connection. */
async function exchange(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(text);
  let answer = '';
  for await (const chunk of socket) answer += String(chunk);
  return answer;
}

async function listening(): Promise<number> {
  const { app } = await stage();
  return Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port);
}

describe('the header Host', () => {
  it.each([
    ['none', 'GET / HTTP/1.1\r\n'],
    ['two that differ', 'GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n'],
    ['two that are the same', 'GET / HTTP/1.1\r\nHost: localhost\r\nhOST: localhost\r\n'],
    ['two of HTTP/1.0', 'GET / HTTP/1.0\r\nHost: localhost\r\nHost: localhost\r\n'],
    ['two for health', 'GET /health/live HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n'],
    ['a list', 'GET / HTTP/1.1\r\nHost: localhost, localhost\r\n'],
    ['credentials', 'GET / HTTP/1.1\r\nHost: a@localhost\r\n'],
    ['another host in the target', 'GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n'],
    ['another host for what is not there', 'GET http://a/nowhere HTTP/1.1\r\nHost: localhost\r\n'],
  ])('is refused where it says nothing or two things: %s', async (_, head) => {
    const port = await listening();
    const answer = await exchange(port, `${head}Connection: close\r\n\r\n`);
    expect(answer).toContain('HTTP/1.1 400');
    expect(answer).toContain('"code":"MALFORMED_REQUEST"');
    expect(answer).toMatch(/"detail":"[^"]*Host/);
  });

  it.each([
    'GET /health/live HTTP/1.1\r\nHost: localhost\r\n',
    'GET /health/live HTTP/1.1\r\nHost: [::1]:8086\r\nX-Host: evil.example\r\n',
    'GET http://LOCALHOST/health/live HTTP/1.1\r\nHost: localhost\r\n',
  ])('is taken where it is one: %j', async (head) => {
    const port = await listening();
    expect(await exchange(port, `${head}Connection: close\r\n\r\n`)).toContain('HTTP/1.1 200');
  });
});
