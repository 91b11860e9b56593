/** A plain client for tests: makes streams of their own, and looks at NATS from outside. */
import { randomBytes } from 'node:crypto';
import { type JetStreamManager, jetstreamManager, type StreamConfig } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';

export interface NatsClient extends AsyncDisposable {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  /** A name that nobody has. A stream under it goes away with this client. */
  name(): string;
  /** A subject of a new stream, whose name is the first word of it. */
  subject(config?: Partial<StreamConfig>): Promise<string>;
  /** Messages in the stream of such a subject. */
  depth(subject: string): Promise<number>;
  close(): Promise<void>;
}

export async function natsClient(urls: string | readonly string[]): Promise<NatsClient> {
  const all = [urls].flat().map((one) => new URL(one));
  const { username: user, password: pass } = all[0]!;
  const connection = await connect({ servers: all.map(({ host }) => host), user, pass });
  const manager = await jetstreamManager(connection, { checkAPI: false });
  const names: string[] = [];
  const name = () => {
    const fresh = `test-${randomBytes(8).toString('hex')}`;
    names.push(fresh);
    return fresh;
  };
  const close = async () => {
    // Not all of them were made.
    await Promise.all(names.map((one) => manager.streams.delete(one).catch(() => false)));
    await connection.close();
  };
  return {
    connection,
    manager,
    name,
    async subject(config = {}) {
      const fresh = name();
      await manager.streams.add({ name: fresh, subjects: [`${fresh}.>`], ...config });
      return `${fresh}.in`;
    },
    async depth(subject) {
      const [stream = ''] = subject.split('.');
      return (await manager.streams.info(stream)).state.messages;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}
