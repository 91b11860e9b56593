/** A way to a server on which everything that is asked arrives, and answers can be held back. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface DeafProxy extends AsyncDisposable {
  /** The server's address with the port of the proxy. */
  readonly url: string;
  /** From here on the server answers in vain. */
  hold(): void;
  /** What was held back arrives, and what comes after it. */
  release(): void;
}

export async function startDeafProxy(serverUrl: string): Promise<DeafProxy> {
  const target = new URL(serverUrl);
  const sockets = new Set<Socket>();
  const servers = new Set<Socket>();
  let isHeld = false;
  const listener = createServer((client) => {
    const server = connect({ port: Number(target.port), host: target.hostname, noDelay: true });
    servers.add(server);
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(one);
      // Which side ended, and how, does not matter here.
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
      one.on('data', (chunk) => other.write(chunk));
    }
    if (isHeld) server.pause();
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const url = new URL(serverUrl);
  url.port = String((listener.address() as AddressInfo).port);
  return {
    url: url.href,
    hold() {
      isHeld = true;
      for (const server of servers) server.pause();
    },
    release() {
      isHeld = false;
      for (const server of servers) server.resume();
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      listener.close();
      await once(listener, 'close');
    },
  };
}
