import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { jetstreamIdempotency } from '@redrive/engine/nats';
import { startNats } from '@redrive/services';
import { race } from '../race.ts';
import type { Case } from '../result.ts';
import { crowd, effect, judged, redriveOn } from './crowd.ts';

export const jetstreamCase: Case = {
  name: 'jetstream',
  about: 'the same in a bucket of JetStream KV on disk, one connection',
  async run(effort) {
    await using server = await startNats();
    const { host, username: user, password: pass } = new URL(server.url);
    const connection = await connect({ servers: host, user, pass });
    const own = await connect({ servers: host, user, pass });
    const store = jetstreamIdempotency(own);
    const manager = await jetstreamManager(connection);
    await manager.streams.add({
      name: 'KV_bare',
      subjects: ['$KV.bare.>'],
      max_msgs_per_subject: 1,
      allow_rollup_hdrs: true,
      deny_delete: true,
    });
    const client = jetstream(connection);
    try {
      const result = await race(
        [
          crowd('redrive', redriveOn(store), { waits: true }),
          crowd(
            'bare',
            async (key) => {
              const subject = `$KV.bare.${key}`;
              const claim = { expect: { lastSubjectSequence: 0 } };
              const { seq } = await client.publish(subject, 'claimed', claim);
              const done = await effect();
              await client.publish(subject, done, { expect: { lastSubjectSequence: seq } });
              return done;
            },
            { waits: true },
          ),
        ],
        effort,
      );
      return {
        ...judged(result, 0.6),
        notes: ['bare: two writes of the bucket, each at the revision that it expects'],
      };
    } finally {
      await store.close?.();
      await own.close();
      await connection.close();
    }
  },
};
