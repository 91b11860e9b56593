/** A proxy that lets a question through and cuts the connection before its answer: what was done is not known then. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface Cutter extends AsyncDisposable {
  readonly url: string;
  /** Of the next question that has these bytes the answer is lost. Resolves then. */
  cutAnswer(question: Buffer): Promise<void>;
}

/** basic.publish, by its class and its method. */
export const A_PUBLISH = Buffer.from([0, 60, 0, 40]);

interface Wish {
  readonly question: Buffer;
  readonly done: () => void;
}

export async function startCutter(serverUrl: string): Promise<Cutter> {
  const target = new URL(serverUrl);
  const sockets = new Set<Socket>();
  let wish: Wish | undefined;

  const listener = createServer({ allowHalfOpen: true }, (client) => {
    const server = connect({
      port: Number(target.port),
      host: target.hostname,
      allowHalfOpen: true,
    });
    let asked: Wish | undefined;
    const end = () => {
      // Somebody else ended the connection before the answer: the next question is taken instead.
      wish ??= asked;
      asked = undefined;
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', end).on('close', () => {
        sockets.delete(socket);
        end();
      });
    }
    client.on('data', (chunk: Buffer) => {
      if (wish && chunk.includes(wish.question)) {
        asked = wish;
        wish = undefined;
      }
      if (!server.write(chunk)) pauseUntilDrained(client, server);
    });
    server.on('data', (chunk: Buffer) => {
      if (asked) {
        const { done } = asked;
        asked = undefined;
        client.resetAndDestroy();
        server.destroy();
        return done();
      }
      if (!client.write(chunk)) pauseUntilDrained(server, client);
    });
    client.on('end', () => server.end());
    server.on('end', () => client.end());
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const url = new URL(serverUrl);
  url.hostname = '127.0.0.1';
  url.port = String((listener.address() as AddressInfo).port);

  return {
    url: url.href,
    cutAnswer: (question) =>
      new Promise((resolve) => {
        wish = { question, done: resolve };
      }),
    async [Symbol.asyncDispose]() {
      const closed = once(listener, 'close');
      listener.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function pauseUntilDrained(from: Socket, to: Socket): void {
  from.pause();
  to.once('drain', () => from.resume());
}
