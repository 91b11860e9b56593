import type { ConfigError } from 'redrive';
import { describe, expect, it } from 'vitest';
import { type NatsOptions, readOptions } from './options.ts';

function faultsOf(options: object): string[] {
  try {
    readOptions(options as NatsOptions);
    return [];
  } catch (error) {
    return (error as ConfigError).faults.map(({ path }) => path);
  }
}

describe('the options of a connection to NATS', () => {
  it('take one URL, or those of a cluster, with credentials apart', () => {
    const url = ['nats://one:4223', 'nats://us%40er:p%3Aw@two', 'nats://[::1]'];
    expect(readOptions({ url })).toMatchObject({
      servers: ['one:4223', 'two:4222', '[::1]:4222'],
      user: 'us@er',
      password: 'p:w',
      token: undefined,
      tls: undefined,
    });
  });

  it('take a token from the URL, or apart', () => {
    expect(readOptions({ url: 'nats://s3cret@one' })).toMatchObject({
      token: 's3cret',
      user: undefined,
    });
    expect(readOptions({ url: 'nats://one', token: 'other' }).token).toBe('other');
  });

  it('want TLS where the URL or the options say so', () => {
    expect(readOptions({ url: 'tls://one' }).tls).toEqual({});
    const tls = { caFile: 'ca.pem' };
    expect(readOptions({ url: 'nats://one', tls }).tls).toEqual(tls);
  });

  it('tell every fault at once, and no password', () => {
    const options = {
      url: 'http://user:s3cret@host',
      durable: 'a.b',
      streams: [{ name: 'A B', subjects: [], replicas: 9 }],
      confirms: 'yes',
      policy: { base: -1 },
      ackWait: 5,
      durible: 'x',
    };
    expect(faultsOf(options).toSorted()).toEqual([
      'ackWait',
      'confirms',
      'durable',
      'durible',
      'policy.base',
      'streams.0.name',
      'streams.0.replicas',
      'streams.0.subjects',
      'url',
    ]);
    expect(() => readOptions(options as unknown as NatsOptions)).toThrow(
      expect.not.objectContaining({ message: expect.stringContaining('s3cret') as string }),
    );
  });

  it.each([undefined, [], '', 'nats://', 'nats://a/path', 'nats://%zz:x@host', ['nats://a', 5]])(
    'refuse the URL %j',
    (url) => {
      expect(faultsOf({ url })).toContain('url');
    },
  );
});
