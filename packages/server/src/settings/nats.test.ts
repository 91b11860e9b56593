import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readSettings } from './read.ts';

const cwd = join(tmpdir(), 'redrive-no-such-folder');

async function settingsOf(env: Record<string, string>) {
  const reading = await readSettings({ env, cwd });
  if (!reading.ok) throw new Error(JSON.stringify(reading.faults));
  return reading;
}

async function faultsOf(env: Record<string, string>): Promise<string[]> {
  const reading = await readSettings({ env, cwd });
  return reading.ok ? [] : reading.faults.map(({ name, message }) => `${name}: ${message}`);
}

describe('the settings of NATS', () => {
  it('take one URL or several, and show no password', async () => {
    const NATS_URL = 'nats://u:s3cret@one:4222, tls://two';
    const { settings, origins } = await settingsOf({ NATS_URL });
    expect(settings.natsUrl).toEqual(['nats://u:s3cret@one:4222', 'tls://two']);
    expect(origins.find(({ name }) => name === 'NATS_URL')?.value).toBe(
      'nats://u:***@one:4222,tls://two',
    );
  });

  it('make paths absolute', async () => {
    const { settings } = await settingsOf({ NATS_URL: 'nats://one', NATS_CREDS_FILE: 'a.creds' });
    expect(settings.natsCredsFile).toBe(join(cwd, 'a.creds'));
  });

  it.each([
    [{ NATS_URL: 'amqp://one' }, /NATS_URL: 'amqp:\/\/one' is not one or several URLs/],
    [{ NATS_URL: 'nats://one,http://two' }, /NATS_URL: 'http:\/\/two.*is not/],
    [{ NATS_URL: 'nats://one/path' }, /NATS_URL: 'nats:\/\/one\/path' is more, or less/],
    [{ NATS_RETRY_SUBJECT: 'a.>' }, /NATS_RETRY_SUBJECT: 'a.>' is not a subject/],
    [{ NATS_RETRY_SUBJECT: '$JS.API.X' }, /NATS_RETRY_SUBJECT/],
    [{ NATS_DEAD_LETTER_STREAMS: 'A.B' }, /NATS_DEAD_LETTER_STREAMS: 'A.B' is not the name/],
    [{ NATS_TLS_CERT_FILE: 'a' }, /NATS_TLS_CERT_FILE.*without NATS_TLS_KEY_FILE/],
    [{ NATS_TLS_KEY_FILE: 'a' }, /NATS_TLS_KEY_FILE.*without NATS_TLS_CERT_FILE/],
    [{ NATS_REPLICAS: '6' }, /NATS_REPLICAS: 6 is not a whole number from 1 to 5/],
  ])('refuse %j', async (env, fault) => {
    expect((await faultsOf(env)).join('\n')).toMatch(fault);
  });

  it('never show a password in a fault', async () => {
    const faults = await faultsOf({ NATS_URL: 'http://u:s3cret@one' });
    expect(faults.length).toBe(1);
    expect(faults[0]).not.toContain('s3cret');
  });

  it('are warned of where they have no effect', async () => {
    const { warnings } = await settingsOf({ NATS_REPLICAS: '3', NATS_DEAD_LETTER_STREAMS: 'A' });
    expect(warnings).toEqual([
      'NATS_DEAD_LETTER_STREAMS, NATS_REPLICAS: has no effect without NATS_URL.',
    ]);
  });
});
