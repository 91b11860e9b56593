import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { readRetryMessage } from '../../packages/server/src/scheduler/retry-message.ts';
import { HttpClient, readResponse } from './http-client.ts';
import { dueAtOf, numberOf, payloadOf, retryMessage } from './stage/messages.ts';
import { Running } from './stage/program.ts';

describe('a message', () => {
  it('has 300 bytes whatever its number and due time, and both are found in it', () => {
    for (const [n, dueAtMs] of [
      [0, 0],
      [1_999_999, 1_800_000_000_000],
    ] as const) {
      const payload = payloadOf(n, dueAtMs);
      expect(payload.length).toBe(300);
      expect(numberOf(payload)).toBe(n);
      expect(dueAtOf(payload)).toBe(dueAtMs);
    }
  });

  it('is one that the service can read', () => {
    const dueAtMs = 1_800_000_000_000;
    const bytes = retryMessage('work', 7, dueAtMs);
    expect(readRetryMessage(bytes, 'application/json')).toMatchObject({
      type: 'message',
      message: {
        originalQueue: 'work',
        originalPayload: payloadOf(7, dueAtMs),
        nextRetryAtMs: dueAtMs,
      },
    });
  });
});

describe('the client for requests', () => {
  it('takes a response for one only when all of it is there', () => {
    const response = Buffer.from('HTTP/1.1 202 Accepted\r\nContent-Length: 4\r\n\r\nbody');
    for (let end = 0; end < response.length; end++) {
      expect(readResponse(response.subarray(0, end))).toBeUndefined();
    }
    expect(readResponse(response)).toEqual({ status: 202 });
    const chunked = Buffer.from(
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n',
    );
    for (let end = 0; end < chunked.length; end++) {
      expect(readResponse(chunked.subarray(0, end))).toBeUndefined();
    }
    expect(readResponse(chunked)).toEqual({ status: 200 });
    const endless = Buffer.from('HTTP/1.1 202 Accepted\r\n\r\n');
    expect(readResponse(endless)).toEqual({ status: Number.NaN });
  });

  it('counts what was answered, over connections that it keeps', async () => {
    let requests = 0;
    let connections = 0;
    const server = createServer((request, response) => {
      requests += 1;
      request.resume().on('end', () => response.writeHead(202, { 'content-length': 2 }).end('{}'));
    });
    server.on('connection', () => (connections += 1));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    {
      await using client = new HttpClient(`http://127.0.0.1:${port}`, '/', '{}', 3);
      const { answers } = await client.ask(100);
      expect(answers).toBeGreaterThanOrEqual(3);
      expect(answers).toBe(requests);
      expect(connections).toBe(3);
    }
    server.close();
  });

  it('objects to any other answer', async () => {
    const server = createServer((request, response) => {
      request.resume().on('end', () => response.writeHead(429, { 'content-length': 2 }).end('{}'));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    {
      await using client = new HttpClient(`http://127.0.0.1:${port}`, '/', '{}', 1);
      await expect(client.ask(1)).rejects.toThrow('429');
    }
    server.close();
  });
});

describe('a program', () => {
  it('that ends before it is ready is told with what it said', async () => {
    const script = new URL('./no-such-program.ts', import.meta.url).pathname;
    await expect(Running.start({ script }, {})).rejects.toThrow('no-such-program');
  });
});
