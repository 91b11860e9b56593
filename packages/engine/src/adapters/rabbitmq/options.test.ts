import { isConfigError } from 'redrive';
import { describe, expect, it } from 'vitest';
import { rabbitmq } from './index.ts';
import { type RabbitOptions, readOptions } from './options.ts';

function faultsOf(options: unknown): string[] {
  try {
    rabbitmq(options as RabbitOptions);
  } catch (error) {
    if (isConfigError(error)) return error.faults.map(({ path, message }) => `${path} ${message}`);
    throw error;
  }
  return [];
}

describe('the options of RabbitMQ', () => {
  it.each([
    ['amqp://localhost', { protocol: 'amqp', hostname: 'localhost', port: 5672 }],
    ['amqps://localhost/', { protocol: 'amqps', hostname: 'localhost', port: 5671 }],
    ['amqp://[::1]:5000/%2Fa', { protocol: 'amqp', hostname: '::1', port: 5000, vhost: '%2Fa' }],
    [
      'amqp://us%C3%A9r:p%40ss@rabbit/shop',
      {
        protocol: 'amqp',
        hostname: 'rabbit',
        port: 5672,
        username: 'usér',
        password: 'p@ss',
        vhost: 'shop',
      },
    ],
  ])('know what %s means', (url, parts) => {
    expect(readOptions({ url }).connect).toEqual({ ...parts, heartbeat: 10 });
  });

  it.each([undefined, 5, '', 'rabbit', 'http://a:geheim@b', 'amqp://u:geheim%@b', 'amqp:///x'])(
    'do not take %s for a URL, and do not repeat it',
    (url) => {
      const faults = faultsOf({ url });
      expect(faults).toEqual(['url is not amqp://user:password@host:port/vhost, or amqps:.']);
    },
  );

  it('name every fault at once', () => {
    const options = {
      url: 'amqp://localhost',
      heartbeat: '10ms',
      connectTimeuot: 5,
      name: '',
      tls: 'yes',
      onState: 1,
      policy: { base: 'soon' },
      topology: {
        queues: [{ name: '' }, { name: 'q', type: 'mirrored' }],
        exchanges: [{ name: 'e', type: 'any' }],
        bindings: [{ exchange: 'e', queue: 'q' }],
      },
    };
    const faults = faultsOf(options);
    const paths = faults.map((fault) => fault.split(' ', 1).join());
    expect(paths.sort()).toEqual([
      'connectTimeuot',
      'heartbeat',
      'name',
      'onState',
      'policy.base',
      'tls',
      'topology.bindings.0.pattern',
      'topology.exchanges.0.type',
      'topology.queues.0.name',
      'topology.queues.1.type',
    ]);
    expect(faults.join()).toContain('connectTimeout');
  });

  it('round the heartbeat up to whole seconds, as AMQP has it', () => {
    expect(readOptions({ url: 'amqp://a', heartbeat: '1500ms' }).connect.heartbeat).toBe(2);
  });
});
