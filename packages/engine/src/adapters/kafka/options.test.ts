import { describe, expect, it } from 'vitest';
import { readOptions } from './broker/options.ts';
import { readDelayOptions } from './delay-queue/options.ts';
import { kafka, kafkaDelayQueue } from './index.ts';

function faultsOf(read: () => unknown): string[] {
  try {
    read();
  } catch (error) {
    return (error as { faults: { path: string }[] }).faults.map(({ path }) => path);
  }
  return [];
}

describe('the options of Kafka', () => {
  it('read brokers of all spellings', () => {
    const list = ['a:1', 'b', '[::1]:9094'];
    const expected = [
      { host: 'a', port: 1 },
      { host: 'b', port: 9092 },
      { host: '::1', port: 9094 },
    ];
    expect(readOptions({ brokers: list }).brokers).toEqual(expected);
    expect(readOptions({ brokers: list.join(', ') }).brokers).toEqual(expected);
  });

  it('hand TLS, SASL and times on to the client', () => {
    const sasl = { mechanism: 'SCRAM-SHA-512', username: 'u', password: 'p' } as const;
    const given = { brokers: 'a', tls: true, sasl, connectTimeout: '3s', clientId: 'me' } as const;
    expect(readOptions(given)).toMatchObject({
      clientId: 'me',
      connection: { tls: {}, tlsServerName: true, sasl, connectTimeout: 3000 },
    });
    const ca = 'certificate';
    expect(readDelayOptions({ brokers: 'a', tls: { ca } }).connection.tls).toEqual({ ca });
    expect(readOptions({ brokers: 'a', tls: false }).connection).not.toHaveProperty('tls');
  });

  it('have defaults', () => {
    expect(readOptions({ brokers: 'a' })).toMatchObject({
      group: 'redrive',
      clientId: 'redrive',
      sessionTimeoutMs: 10_000,
    });
    expect(readDelayOptions({ brokers: 'a', prefix: 'q' })).toMatchObject({
      group: 'q',
      partitions: 6,
      replicas: undefined,
      tierMs: 60_000,
      tiers: 15,
      trimEveryMs: 60_000,
    });
  });

  it('are refused with all their faults at once', () => {
    const odd = {
      brokers: 'http://a/b',
      clientId: '',
      tls: 1,
      sasl: {},
      sessionTimeout: 1,
      group: 'a b',
      policy: { base: -1 },
      onState: 1,
      grop: 1,
    };
    expect(faultsOf(() => kafka(odd as never)).toSorted()).toEqual([
      'brokers',
      'clientId',
      'grop',
      'group',
      'onState',
      'policy.base',
      'sasl',
      'sessionTimeout',
      'tls',
    ]);
    const delay = { brokers: [], prefix: '', partitions: 0, replicas: 1.5, tierMs: 1, maxHeld: -1 };
    expect(faultsOf(() => kafkaDelayQueue(delay as never)).toSorted()).toEqual([
      'brokers',
      'group',
      'maxHeld',
      'partitions',
      'prefix',
      'replicas',
      'tierMs',
    ]);
  });
});
