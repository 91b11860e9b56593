import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { answerBroken } from './broken-request.ts';

/** What a client is told whose request ended with that error. */
async function answerTo(code: string): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const client = connect(port, '127.0.0.1');
  const [socket] = (await once(server, 'connection')) as [Socket];
  socket.on('error', () => undefined);
  answerBroken(Object.assign(new Error('broken'), { code }), socket);
  let text = '';
  for await (const chunk of client) text += String(chunk);
  server.close();
  return text;
}

describe('requests that did not come in', () => {
  it.each([
    ['ERR_HTTP_REQUEST_TIMEOUT', 408, 'REQUEST_TIMEOUT'],
    ['HPE_HEADER_OVERFLOW', 431, 'REQUEST_HEADERS_TOO_LARGE'],
    ['HPE_INVALID_METHOD', 400, 'MALFORMED_REQUEST'],
  ])('are answered as problems: %s', async (code, status, problem) => {
    const [head = '', body = ''] = (await answerTo(code)).split('\r\n\r\n');
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} ${problem}\r\n`));
    expect(head).toContain('connection: close');
    expect(head).toContain(`content-length: ${body.length}`);
    expect(JSON.parse(body)).toMatchObject({ status, code: problem });
  });

  it('hold no connection, also where the other side neither reads nor ends', async () => {
    const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    const [socket] = (await once(server, 'connection')) as [Socket];
    answerBroken(Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket);
    await once(socket, 'close');
    expect(client.destroyed).toBe(false);
    client.destroy();
    server.close();
  });

  it('are not answered where nobody listens any more', async () => {
    expect(await answerTo('ECONNRESET')).toBe('');
  });
});
