/** TLS and SASL against a broker that takes nothing else: what works, and what is said where it does not. */
import { inspect } from 'node:util';
import { certificate, type KafkaServer, startKafka } from '@redrive/services';
import { describeService } from '@redrive/services/vitest';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { kafka } from '../broker/broker.ts';
import { kafkaDelayQueue } from '../delay-queue/queue.ts';
import type { KafkaConnection } from './settings.ts';

const DAY_MS = 86_400_000;
const username = 'redrive';
const password = 's3cret-of-the-test';
const wrong = 'wr0ng-secret';
const validNow = () => certificate('localhost', Date.now() - DAY_MS, Date.now() + DAY_MS);
const { key, cert } = validNow();

describeService('Kafka', () => {
  let server: KafkaServer;
  beforeAll(async () => {
    server = await startKafka({ security: { key, cert, user: username, password } });
  });
  afterAll(() => server?.stop());

  const said: unknown[] = [];
  const say = (...all: unknown[]) => void said.push(all);
  const log = { debug: say, info: say, warn: say, error: say };

  function connection(more: Partial<KafkaConnection> = {}): KafkaConnection {
    const sasl = { mechanism: 'SCRAM-SHA-512' as const, username, password };
    return { brokers: server.address, tls: { ca: cert }, sasl, log, ...more };
  }

  it.each(['PLAIN', 'SCRAM-SHA-512'] as const)(
    'lets in who shows a password by %s, over TLS',
    async (mechanism) => {
      const sasl = { mechanism, username, password };
      const queue = kafkaDelayQueue({
        ...connection({ sasl }),
        prefix: mechanism,
        partitions: 1,
        tiers: 1,
      });
      await queue.open();
      await queue.schedule([{ id: 'a', delayMs: 0, payload: new Uint8Array([1]) }]);
      const handed = Promise.withResolvers<string[]>();
      await queue.consume(async (batch) => {
        handed.resolve(batch.map(({ id }) => id));
        return batch.map(() => ({ type: 'done' }));
      }, {});
      expect(await handed.promise).toEqual(['a']);
      await queue.close();
    },
    60_000,
  );

  const sasl = (mechanism: 'PLAIN' | 'SCRAM-SHA-256' | 'SCRAM-SHA-512', secret: string) => ({
    sasl: { mechanism, username, password: secret },
  });
  it.each([
    [
      'a wrong password of PLAIN',
      sasl('PLAIN', wrong),
      /refuses the user "redrive".*KAFKA_PASSWORD/,
    ],
    ['a wrong password of SCRAM', sasl('SCRAM-SHA-512', wrong), /refuses the user "redrive"/],
    [
      'a mechanism that it lacks',
      sasl('SCRAM-SHA-256', password),
      /SCRAM-SHA-256\. Set sasl\.mechanism \(KAFKA_SASL_MECHANISM\)/,
    ],
    ['no user', { sasl: undefined }, /may require a user: set sasl\.username/],
    ['no TLS', { tls: false }, /may require TLS: set tls \(KAFKA_TLS\)/],
    ['neither', { tls: false, sasl: undefined }, /requires TLS\. Set tls \(KAFKA_TLS\)/],
    [
      'an authority that is not known here',
      { tls: { ca: validNow().cert } },
      /DEPTH_ZERO_SELF_SIGNED_CERT.*tls\.ca \(KAFKA_TLS_CA_FILE\)/,
    ],
    [
      'the name of another host',
      { brokers: 'by its address' },
      /another name \(ERR_TLS_CERT_ALTNAME_INVALID\)/,
    ],
  ] as [string, Partial<KafkaConnection>, RegExp][])(
    'is met with %s: the error says what to do, and no secret',
    async (_, more, sentence) => {
      said.length = 0;
      const given = Object.entries(connection(more)).filter(([, value]) => value !== undefined);
      const options = Object.fromEntries(given) as unknown as KafkaConnection;
      // The certificate is for localhost.
      if (options.brokers !== server.address)
        options.brokers = server.address.replace('localhost', '127.0.0.1');
      const queue = kafkaDelayQueue(options);
      const error: unknown = await queue.open().catch((one: unknown) => one);
      expect(error).toMatchObject({
        code: 'STORE_DENIED',
        message: expect.stringMatching(sentence) as string,
      });
      await queue.close();
      const broker = kafka(options);
      await broker.open();
      expect(broker.state).toMatchObject({ state: 'connecting' });
      expect(broker.state.why).toMatch(sentence);
      await broker.close();
      expect(said.length).toBeGreaterThan(0);
      const all = inspect([error, said, broker.state], { depth: Infinity, showHidden: true });
      for (const secret of [password, wrong]) {
        expect(all).not.toContain(secret);
        expect(all).not.toContain(Buffer.from(secret).toString('base64').slice(2, 12));
      }
    },
    30_000,
  );
});
