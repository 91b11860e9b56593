import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it, vi } from 'vitest';
import { answerBroken } from '../http/reading/broken-request.ts';
import { Problem } from '../http/problem.ts';
import { openDoor } from './door.ts';
import { raw, send } from './stage.test.ts';

const cleanups: (() => unknown)[] = [];
afterEach(() => {
  for (const clean of cleanups.splice(0)) clean();
});

async function open(
  requestTimeoutMs: number,
  refusal: () => Problem | undefined = () => undefined,
) {
  const server = createServer((_, response) => response.end('api'));
  server.on('clientError', answerBroken);
  const handle = vi.fn((_: unknown, response: { end(text: string): unknown }) =>
    response.end('gateway'),
  );
  openDoor(server, { handle }, { requestTimeoutMs, refusal });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  cleanups.push(() => (server.closeAllConnections(), server.close()));
  return { port: (server.address() as AddressInfo).port, handle };
}

it('parts the gateway from the API by the path', async () => {
  const full = new Problem('TOO_MANY_CONNECTIONS', 'full');
  const { port, handle } = await open(1000, () => full);
  const textOf = async (path: string) => (await send(port, { method: 'GET', path })).text;
  expect(await textOf('/gateway/a/b')).toBe('gateway');
  expect(handle.mock.calls[0]?.at(2)).toBe(full);
  expect(await textOf('/gateway')).toBe('api');
  expect(await textOf('/gateways/a')).toBe('api');
  expect(await textOf('/api/v1/tasks')).toBe('api');
});

it('still ends a request to the API that does not come in whole in time', async () => {
  const server = createServer(() => undefined);
  server.on('clientError', answerBroken);
  openDoor(server, { handle: vi.fn() }, { requestTimeoutMs: 50, refusal: () => undefined });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  cleanups.push(() => (server.closeAllConnections(), server.close()));
  const { port } = server.address() as AddressInfo;
  const answer = await raw(port, 'POST /api HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf');
  expect(answer).toMatch(/^HTTP\/1\.1 408 [^]*REQUEST_TIMEOUT/);
});

it('ends no request of the gateway by the limit of the API', async () => {
  const server = createServer(() => undefined);
  server.on('clientError', answerBroken);
  openDoor(
    server,
    { handle: (request, response) => void request.resume().on('end', () => response.end('done')) },
    { requestTimeoutMs: 20, refusal: () => undefined },
  );
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  cleanups.push(() => (server.closeAllConnections(), server.close()));
  const { port } = server.address() as AddressInfo;
  // The one that is cut off says that the time of the other is over as well.
  const head = 'Host: a\r\nConnection: close\r\nContent-Length: 8\r\n\r\nhalf';
  const slow = new Promise<string>((resolve) => {
    void raw(port, `POST /gateway/a HTTP/1.1\r\n${head}`, async (write) => {
      await raw(port, `POST /api HTTP/1.1\r\n${head}`);
      write('half');
    }).then(resolve);
  });
  expect(await slow).toMatch(/^HTTP\/1\.1 200 [^]*done/);
});
