import { jetstream } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { jetstreamIdempotency, kvCreate } from '@redrive/engine/nats';
import { startNats } from '@redrive/services';
import { race } from '../race.ts';
import type { Case } from '../result.ts';
import { crowd, effect, judged, redriveOn } from './crowd.ts';

const BUCKET = 'bare';

export const jetstreamCase: Case = {
  name: 'jetstream',
  about: 'the same in JetStream KV, one server, on disk, one connection',
  async run(effort) {
    await using server = await startNats();
    const connection = await connected(server.url);
    const other = await connected(server.url);
    const store = jetstreamIdempotency(connection);
    await kvCreate(other, BUCKET);
    const bare = jetstream(other);
    const write = async (key: string, value: string, lastSubjectSequence: number) => {
      const options = { expect: { lastSubjectSequence } };
      const { seq } = await bare.publish(`$KV.${BUCKET}.${key}`, value, options);
      return seq;
    };
    try {
      const result = await race(
        [
          crowd('redrive', redriveOn(store), { waits: true }),
          crowd(
            'bare',
            async (key) => {
              const revision = await write(key, 'claimed', 0);
              const done = await effect();
              await write(key, done, revision);
              return done;
            },
            { waits: true },
          ),
        ],
        effort,
      );
      return {
        ...judged(result, 0.6),
        notes: ['bare: a create and an update by revision, as the KV client does them'],
      };
    } finally {
      await connection.close();
      await other.close();
    }
  },
};

async function connected(url: string): Promise<NatsConnection> {
  const { host, username: user, password: pass } = new URL(url);
  return connect({ servers: host, user, pass });
}
