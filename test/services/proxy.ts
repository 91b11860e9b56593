/** A TCP proxy in front of a server, for tests that cut or stall connections in the middle of something. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface Proxy extends AsyncDisposable {
  /** The server's address with the port of the proxy. */
  readonly url: string;
  /** Connections that are open now. */
  readonly connections: number;
  /** Passed so far, in both directions. */
  readonly bytes: number;
  /** Ends all connections on both sides, as a broken network does: by a reset. */
  cut(): void;
  /** Forwards so many more bytes to the server, and then cuts whichever connection sent them. Resolves then. */
  cutAfter(bytes: number): Promise<void>;
  /** Connections stay, and nothing passes in either direction until `resume`. */
  stall(): void;
  /** The server hears everything, and what it answers does not pass until `resume`. */
  mute(): void;
  resume(): void;
  /** New connections are cut at once, as if the server were away, until `admit`. */
  refuse(): void;
  admit(): void;
  stop(): Promise<void>;
}

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
}

export async function startProxy(serverUrl: string): Promise<Proxy> {
  const target = new URL(serverUrl);
  const pairs = new Set<Pair>();
  let bytes = 0;
  let isStalled = false;
  let isMuted = false;
  let isRefusing = false;
  let limit: { left: number; done: () => void } | undefined;

  const listener = createServer({ allowHalfOpen: true }, (client) => {
    if (isRefusing) return void client.resetAndDestroy();
    const server = connect({
      port: Number(target.port),
      host: target.hostname,
      allowHalfOpen: true,
    });
    const pair = { client, server };
    pairs.add(pair);
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      // Of a side that is gone the other is told; what kind of end it was does not matter here.
      socket.on('error', () => end(pair)).on('close', () => end(pair));
    }
    client.on('data', (chunk: Buffer) => forward(pair, chunk));
    server.on('data', (chunk: Buffer) => pass(server, client, chunk));
    client.on('end', () => server.end());
    server.on('end', () => client.end());
    if (isStalled) hold(pair);
    if (isMuted) server.pause();
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');

  const url = new URL(serverUrl);
  url.hostname = '127.0.0.1';
  url.port = String((listener.address() as AddressInfo).port);
  const stop = async () => {
    if (!listener.listening) return;
    const closed = once(listener, 'close');
    listener.close();
    cut();
    await closed;
  };
  return {
    url: url.href,
    get connections() {
      return pairs.size;
    },
    get bytes() {
      return bytes;
    },
    cut,
    cutAfter: (count) =>
      new Promise((resolve) => {
        limit = { left: count, done: resolve };
      }),
    stall() {
      isStalled = true;
      for (const pair of pairs) hold(pair);
    },
    mute() {
      isMuted = true;
      for (const { server } of pairs) server.pause();
    },
    resume() {
      isStalled = false;
      isMuted = false;
      for (const pair of pairs) {
        if (pair.client.destroyed || pair.server.destroyed) end(pair);
        pair.client.resume();
        pair.server.resume();
      }
    },
    refuse() {
      isRefusing = true;
    },
    admit() {
      isRefusing = false;
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };

  function forward(pair: Pair, chunk: Buffer): void {
    if (!limit || chunk.length < limit.left) {
      if (limit) limit.left -= chunk.length;
      return pass(pair.client, pair.server, chunk);
    }
    const { left, done } = limit;
    limit = undefined;
    // Not reset: what was let through must reach the server.
    pair.server.end(chunk.subarray(0, left));
    pair.client.resetAndDestroy();
    done();
  }

  function pass(from: Socket, to: Socket, chunk: Buffer): void {
    bytes += chunk.length;
    if (to.write(chunk)) return;
    from.pause();
    to.once('drain', () => {
      if (!isStalled && !isHeldBack(from)) from.resume();
    });
  }

  function isHeldBack(socket: Socket): boolean {
    return isMuted && [...pairs].some(({ server }) => server === socket);
  }

  function hold({ client, server }: Pair): void {
    client.pause();
    server.pause();
  }

  function cut(): void {
    for (const pair of pairs) {
      pair.client.resetAndDestroy();
      pair.server.resetAndDestroy();
    }
  }

  function end(pair: Pair): void {
    // One that is stalled does not even learn that the other side is gone.
    if (isStalled && !(pair.client.destroyed && pair.server.destroyed)) return;
    if (!pairs.delete(pair)) return;
    pair.client.destroy();
    // What was already let through may still be on its way.
    if (pair.server.writableFinished || !pair.server.writableEnded) pair.server.destroy();
  }
}
