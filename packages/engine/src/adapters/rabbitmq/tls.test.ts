import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import { describeService, sharedServer } from '@redrive/services/vitest';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type RabbitOptions, rabbitmq } from './index.ts';

/** The server may have to start first, on a busy machine. */
const START_MS = 60_000;

const key = Buffer.from('a key that both sides know');

describeService('RabbitMQ', () => {
  let url: URL;
  /** Takes TLS off, with a shared key instead of certificates. */
  const gate = createServer({
    ciphers: 'PSK',
    pskCallback: (_, identity) => (identity === 'redrive' ? key : null),
  });
  beforeAll(async () => {
    const server = new URL(await sharedServer('RabbitMQ'));
    gate.on('secureConnection', (socket: TLSSocket) => {
      const plain = connect(Number(server.port), server.hostname);
      socket.pipe(plain).pipe(socket);
      socket.on('error', () => plain.destroy());
      plain.on('error', () => socket.destroy());
    });
    gate.on('tlsClientError', () => undefined);
    gate.listen(0, '127.0.0.1');
    await once(gate, 'listening');
    url = new URL(server);
    url.protocol = 'amqps:';
    url.port = String((gate.address() as AddressInfo).port);
  }, START_MS);
  afterAll(() => void gate.close());

  const tls = {
    ciphers: 'PSK',
    pskCallback: () => ({ psk: key, identity: 'redrive' }),
    checkServerIdentity: () => undefined,
  };

  async function stateWith(options: Partial<RabbitOptions>) {
    const quiet = () => undefined;
    const log = { debug: quiet, info: quiet, warn: quiet, error: quiet };
    const broker = rabbitmq({ url: url.href, log, ...options });
    await broker.open();
    const { state, why } = broker.state;
    await broker.close();
    return { state, why };
  }

  it('is reached over TLS with the options that were given', async () => {
    expect(await stateWith({ tls })).toEqual({ state: 'connected', why: undefined });
  });

  it('is not reached without them, and says why', async () => {
    const { state, why } = await stateWith({});
    expect(state).toBe('connecting');
    expect(why).toMatch(/^The broker cannot be reached: .*(handshake|SSL|TLS)/i);
    expect(why).not.toContain('guest');
  });
});
