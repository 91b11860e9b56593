import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kafkaConnection } from '../kafka-wiring.ts';
import { readSettings } from './read.ts';

let cwd: string;
beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), 'redrive-kafka-settings-'));
  for (const name of ['ca', 'cert', 'key']) writeFileSync(join(cwd, `${name}.pem`), name);
});
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

async function settingsOf(env: Record<string, string>) {
  const reading = await readSettings({ env, cwd });
  if (!reading.ok) throw new Error(JSON.stringify(reading.faults));
  return reading;
}

async function faultsOf(env: Record<string, string>): Promise<string[]> {
  const reading = await readSettings({ env, cwd });
  return reading.ok ? [] : reading.faults.map(({ name, message }) => `${name}: ${message}`);
}

const KAFKA_BROKERS = 'one:9092, two';

describe('the settings of Kafka', () => {
  it('become a connection without TLS and user, unless told', async () => {
    const { settings } = await settingsOf({ KAFKA_BROKERS });
    expect(await kafkaConnection(settings)).toEqual({ brokers: ['one:9092', 'two'] });
  });

  it('pass files, user and password on, and show no password', async () => {
    const { settings, origins } = await settingsOf({
      KAFKA_BROKERS,
      KAFKA_TLS_CA_FILE: 'ca.pem',
      KAFKA_TLS_CERT_FILE: 'cert.pem',
      KAFKA_TLS_KEY_FILE: 'key.pem',
      KAFKA_USERNAME: 'redrive',
      KAFKA_PASSWORD: 's3cret',
    });
    expect(await kafkaConnection(settings)).toEqual({
      brokers: ['one:9092', 'two'],
      tls: { ca: Buffer.from('ca'), cert: Buffer.from('cert'), key: Buffer.from('key') },
      sasl: { mechanism: 'SCRAM-SHA-512', username: 'redrive', password: 's3cret' },
    });
    expect(JSON.stringify(origins)).not.toContain('s3cret');
  });

  it('can ask for TLS with the authorities of the machine, and for another mechanism', async () => {
    const { settings } = await settingsOf({
      KAFKA_BROKERS,
      KAFKA_TLS: 'on',
      KAFKA_SASL_MECHANISM: 'PLAIN',
      KAFKA_USERNAME: 'redrive',
      KAFKA_PASSWORD: 's3cret',
    });
    expect(await kafkaConnection(settings)).toMatchObject({
      tls: {},
      sasl: { mechanism: 'PLAIN' },
    });
  });

  it.each([
    [
      { KAFKA_BROKERS: 'kafka://one:9092' },
      /KAFKA_BROKERS: 'kafka:\/\/one:9092' is not an address/,
    ],
    [{ KAFKA_BROKERS: 'one:9092,two:x' }, /KAFKA_BROKERS: 'two:x' is not an address/],
    [{ KAFKA_BROKERS: 'one:0' }, /KAFKA_BROKERS: 'one:0' is not an address/],
    [{ KAFKA_RETRY_TOPIC: 'a b' }, /KAFKA_RETRY_TOPIC: 'a b' is not a topic/],
    [{ KAFKA_RETRY_TOPIC: '..' }, /KAFKA_RETRY_TOPIC: '..' is not a topic/],
    [{ KAFKA_TLS_CERT_FILE: 'cert.pem' }, /KAFKA_TLS_CERT_FILE.*without KAFKA_TLS_KEY_FILE/],
    [{ KAFKA_TLS_KEY_FILE: 'key.pem' }, /KAFKA_TLS_KEY_FILE.*without KAFKA_TLS_CERT_FILE/],
    [{ KAFKA_TLS_CA_FILE: 'none.pem' }, /KAFKA_TLS_CA_FILE: The file .*none\.pem .*\(ENOENT\)/],
    [{ KAFKA_USERNAME: 'u' }, /KAFKA_USERNAME.*without KAFKA_PASSWORD/],
    [{ KAFKA_PASSWORD: 'p' }, /KAFKA_PASSWORD.*without KAFKA_USERNAME/],
    [{ KAFKA_SASL_MECHANISM: 'GSSAPI' }, /KAFKA_SASL_MECHANISM: 'GSSAPI' is not/],
    [{ MONGODB_URL: 'http://one' }, /MONGODB_URL: 'http:\/\/one\/?' is not/],
    [
      { NOTIFICATION_DEAD_LETTERS: 'https://a.example' },
      /NOTIFICATION_DEAD_LETTERS: .* is not `queue/,
    ],
    [{ NOTIFICATION_PREFIX: 'a:b' }, /NOTIFICATION_PREFIX: 'a:b' is not 1 to 80 letters/],
    [{ NOTIFICATION_PREFIX: 'x'.repeat(81) }, /NOTIFICATION_PREFIX/],
    [{ NOTIFICATION_EVENTS: 'topic' }, /NOTIFICATION_EVENTS: 'topic' is not `queue:NAME`/],
  ])('refuse %j', async (env, fault) => {
    expect((await faultsOf(env)).join('\n')).toMatch(fault);
  });

  it('never show a password in a fault', async () => {
    const faults = await faultsOf({ KAFKA_BROKERS: 'u:s3cret@one:9092' });
    expect(faults.length).toBe(1);
    expect(faults[0]).not.toContain('s3cret');
  });

  it('are warned of where they have no effect', async () => {
    const { warnings } = await settingsOf({ KAFKA_TLS: 'on', KAFKA_RETRY_TOPIC: 'a' });
    expect(warnings).toEqual([
      'KAFKA_RETRY_TOPIC, KAFKA_TLS: has no effect without KAFKA_BROKERS.',
    ]);
    const other = await settingsOf({ KAFKA_BROKERS, KAFKA_SASL_MECHANISM: 'PLAIN' });
    expect(other.warnings).toEqual(['KAFKA_SASL_MECHANISM: has no effect without KAFKA_USERNAME.']);
  });

  it('take MongoDB with several hosts, and show no password', async () => {
    const MONGODB_URL = 'mongodb://u:s3cret@a:27017,b:27017,c/app?replicaSet=rs0';
    const { settings, origins } = await settingsOf({ MONGODB_URL });
    expect(settings.mongodbUrl).toBe(MONGODB_URL);
    expect(origins.find(({ name }) => name === 'MONGODB_URL')?.value).toBe(
      'mongodb://u:***@a:27017,b:27017,c/app?replicaSet=rs0',
    );
    const srv = 'mongodb+srv://cluster.example.com/app';
    expect((await settingsOf({ MONGODB_URL: srv })).settings.mongodbUrl).toBe(srv);
  });

  it('are missed where a place of notifications needs them', async () => {
    const places = {
      NOTIFICATION_DELIVERY: 'kafka:a',
      NOTIFICATION_DEAD_LETTERS: 'queue:b',
      NOTIFICATION_EVENTS: 'nats:c',
    };
    const { warnings } = await settingsOf({ NOTIFICATIONS: 'on', ...places });
    expect(warnings).toEqual([
      'NOTIFICATION_DELIVERY: has no effect without KAFKA_BROKERS.',
      'NOTIFICATION_DEAD_LETTERS: has no effect without RABBITMQ_URL.',
      'NOTIFICATION_EVENTS: has no effect without NATS_URL.',
    ]);
    expect((await settingsOf({ NOTIFICATIONS: 'on' })).warnings).toHaveLength(1);
    const delivery = { NOTIFICATIONS: 'on', NOTIFICATION_DELIVERY: 'kafka:a', KAFKA_BROKERS };
    expect((await settingsOf(delivery)).warnings).toEqual([]);
  });

  it('warn a deployment with a prefix that shares the topic of its reports', async () => {
    const NOTIFICATION_DELIVERY = 'kafka:pushes';
    const shop = {
      NOTIFICATIONS: 'on',
      NOTIFICATION_PREFIX: 'shop',
      KAFKA_BROKERS,
      NOTIFICATION_DELIVERY,
    };
    const { warnings, settings } = await settingsOf(shop);
    expect(settings.notificationPrefix).toBe('shop');
    expect(warnings.join()).toContain('Give each a topic of its own.');
    const own = { ...shop, NOTIFICATION_REPORTS: 'kafka:shop-reports' };
    expect((await settingsOf(own)).warnings).toEqual([]);
    expect(
      (
        await settingsOf({
          ...shop,
          KAFKA_BROKERS: '',
          NOTIFICATION_DELIVERY: 'http://127.0.0.1:9/push',
        })
      ).warnings,
    ).toEqual([]);
  });

  it('know a slip', async () => {
    const { warnings } = await settingsOf({ KAFKA_BROKER: 'one' });
    expect(warnings.join()).toContain('Did you mean KAFKA_BROKERS?');
  });
});
