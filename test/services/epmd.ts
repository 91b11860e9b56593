/** Erlang's list of the nodes on a machine, for a node that wants to read it before it starts: empty. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

export interface FakeEpmd {
  readonly port: number;
  stop(): Promise<void>;
}

export async function startFakeEpmd(): Promise<FakeEpmd> {
  const server = createServer((socket) => {
    // Whatever was asked: the port of this server, and no names after it.
    const answer = Buffer.alloc(4);
    answer.writeUInt32BE(port);
    socket.on('error', () => socket.destroy());
    socket.once('data', () => socket.end(answer));
  });
  server.listen(0, '127.0.0.1').unref();
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    async stop() {
      const closed = once(server, 'close');
      server.close();
      await closed;
    },
  };
}
