import { once } from 'node:events';
import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { Connection } from './connection.ts';

async function listening(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return `http://127.0.0.1:${port}`;
}

it('gives no stream once it is closed', async () => {
  const connection = new Connection(await listening(), {});
  const stream = await connection.request('POST', '/', {});
  stream.on('error', () => undefined);
  connection.close();
  await expect(connection.request('POST', '/', {})).rejects.toThrow('the connection was closed');
});

it('can be closed at any moment of its beginning', async () => {
  const url = await listening();
  for (let turns = 0; turns < 20; turns++) {
    const connection = new Connection(url, {});
    const asked = connection.request('POST', '/', {}).then(
      (stream) => {
        stream.on('error', () => undefined);
        return 'opened';
      },
      (error: unknown) => String(error),
    );
    for (let n = 0; n < turns; n++) await new Promise(setImmediate);
    connection.close();
    connection.close();
    expect(await asked).toMatch(/opened|unavailable/);
  }
});
