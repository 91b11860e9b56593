import { connect } from '@nats-io/transport-node';
import { jetstream, jetstreamManager, StorageType } from '@nats-io/jetstream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type NatsCluster,
  type NatsServer,
  type NatsVersion,
  startNats,
  startNatsCluster,
} from './index.ts';
import { describeService } from './vitest.ts';

for (const version of ['2.9', '2.15'] satisfies NatsVersion[]) {
  describeService(`NATS ${version}`, () => {
    let server: NatsServer;
    beforeAll(async () => {
      server = await startNats({ version, settings: ['max_payload: 4096'] });
    });
    afterAll(() => server.stop());

    it('takes settings, and is of its version', async () => {
      await using client = await connected(server.url);
      expect(client.connection.info).toMatchObject({ jetstream: true, max_payload: 4096 });
      expect(client.connection.info?.version).toMatch(new RegExp(`^${version}\\.`));
    });

    it('refuses whoever lacks the password', async () => {
      const { host } = new URL(server.url);
      await expect(connect({ servers: host, reconnect: false })).rejects.toThrow(/authorization/i);
    });

    it('keeps what a stream holds when it is killed', async () => {
      await using client = await connected(server.url);
      await store(client.connection, 1);
      await server.kill();
      await server.start();
      await using again = await connected(server.url);
      expect(await held(again.connection)).toBe(1);
    });
  });
}

describeService('NATS 2.15', () => {
  describe('as three servers', () => {
    let cluster: NatsCluster;
    beforeAll(async () => {
      cluster = await startNatsCluster();
    });
    afterAll(() => cluster.stop());

    it('goes on when one of them is killed', async () => {
      await using client = await connected(...cluster.urls);
      await eventually(() => store(client.connection, 3));
      await cluster.servers[0]!.kill();
      await using again = await connected(...cluster.urls.slice(1));
      await eventually(async () => expect(await held(again.connection)).toBe(1));
    });
  });
});

type Connection = Awaited<ReturnType<typeof connect>>;

async function connected(...urls: string[]): Promise<{ connection: Connection } & AsyncDisposable> {
  const { username: user, password: pass } = new URL(urls[0]!);
  const servers = urls.map((url) => new URL(url).host);
  const connection = await connect({ servers, user, pass });
  return { connection, [Symbol.asyncDispose]: () => connection.close() };
}

async function store(connection: Connection, replicas: number): Promise<void> {
  const manager = await jetstreamManager(connection);
  await manager.streams.add({
    name: 'KEPT',
    subjects: ['kept'],
    storage: StorageType.File,
    num_replicas: replicas,
  });
  await jetstream(connection).publish('kept', 'a message');
}

async function held(connection: Connection): Promise<number> {
  const manager = await jetstreamManager(connection);
  return (await manager.streams.info('KEPT')).state.messages;
}

/** A cluster needs a moment to choose its leaders: every answer before that is a refusal. */
async function eventually(work: () => Promise<void>): Promise<void> {
  const giveUpAtMs = performance.now() + 20_000;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (performance.now() > giveUpAtMs) throw error;
    }
  }
}
