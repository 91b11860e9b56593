import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

/** Resolves as Node does where none of the optional packages is installed. */
const withoutPeers = `
  import { registerHooks } from 'node:module';
  const peers = /^(pg|amqplib|mongodb|@redis\\/client|@platformatic\\/kafka|@nats-io\\/[a-z-]+)$/;
  registerHooks({
    resolve(name, context, next) {
      if (!peers.test(name)) return next(name, context);
      const message = "Cannot find package '" + name + "' imported from " + context.parentURL;
      throw Object.assign(new Error(message), { code: 'ERR_MODULE_NOT_FOUND' });
    },
  });`;

/** Every adapter with a client: imported, made, and then used for the first time. */
const uses = `
  import { createEngine } from '@redrive/engine';
  import { kafka, kafkaDelayQueue } from '@redrive/engine/kafka';
  import { memory } from '@redrive/engine/memory';
  import { connectWithRetry, jetstreamIdempotency, nats } from '@redrive/engine/nats';
  import { migratePostgres, postgres, postgresIdempotency } from '@redrive/engine/postgres';
  import { rabbitmq } from '@redrive/engine/rabbitmq';
  import { redisDelayQueue, redisIdempotency, redisSticky } from '@redrive/engine/redis';
  import { mongodbNotifications } from '@redrive/notifications/mongodb';

  const url = { pg: 'postgres://127.0.0.1:1/x', redis: 'redis://127.0.0.1:1', nats: 'nats://127.0.0.1:1' };
  const uses = {
    postgres: () => createEngine({ store: postgres(url.pg) }).start(),
    migratePostgres: () => migratePostgres(url.pg),
    postgresIdempotency: () => postgresIdempotency(url.pg).read('key'),
    rabbitmq: () => createEngine({ store: memory(), brokers: [rabbitmq({ url: 'amqp://127.0.0.1:1' })] }).start(),
    kafka: () => kafka({ brokers: '127.0.0.1:1' }).open(),
    kafkaDelayQueue: () => kafkaDelayQueue({ brokers: '127.0.0.1:1' }).open(),
    nats: () => nats({ url: url.nats }).open(),
    connectWithRetry: () => connectWithRetry(url.nats),
    jetstreamIdempotency: () => jetstreamIdempotency(url.nats).read('key'),
    redisIdempotency: () => redisIdempotency(url.redis).read('key'),
    redisDelayQueue: () => redisDelayQueue({ url: url.redis }).open(),
    redisSticky: async () => {
      const why = await new Promise((resolve) => redisSticky({ url: url.redis, onFault: (_, error) => resolve(error) }));
      throw why;
    },
    mongodbNotifications: () => mongodbNotifications({ url: 'mongodb://127.0.0.1:1' }).open(),
  };
  const said = {};
  for (const [name, use] of Object.entries(uses)) {
    try {
      await use();
    } catch (error) {
      said[name] = [error.code, error.message];
    }
  }
  console.log(JSON.stringify(said));
  process.exit();`;

describe('an adapter without its client', () => {
  it('can be imported, and says at its first use what to install', async () => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [
        '--input-type=module',
        '--import',
        `data:text/javascript,${encodeURIComponent(withoutPeers)}`,
        '--eval',
        uses,
      ],
      { cwd: import.meta.dirname },
    );
    const said = JSON.parse(stdout) as Record<string, [code: string, message: string]>;
    const installs = Object.entries(said).map(([name, [code, message]]) => [
      name,
      code,
      message.split('npm install ')[1] ?? message,
    ]);
    const missing = (name: string, install: string) => [name, 'PEER_MISSING', install];
    expect(installs).toEqual([
      missing('postgres', 'pg'),
      missing('migratePostgres', 'pg'),
      missing('postgresIdempotency', 'pg'),
      missing('rabbitmq', 'amqplib'),
      missing('kafka', '@platformatic/kafka'),
      missing('kafkaDelayQueue', '@platformatic/kafka'),
      missing('nats', '@nats-io/transport-node @nats-io/jetstream'),
      missing('connectWithRetry', '@nats-io/transport-node @nats-io/jetstream'),
      missing('jetstreamIdempotency', '@nats-io/transport-node @nats-io/jetstream'),
      missing('redisIdempotency', '@redis/client'),
      missing('redisDelayQueue', '@redis/client'),
      missing('redisSticky', '@redis/client'),
      missing('mongodbNotifications', 'mongodb'),
    ]);
  });
});
