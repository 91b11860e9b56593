import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readSettings } from '../../settings/read.ts';
import type { Settings } from '../../settings/settings.ts';
import { banner } from './banner.ts';
import type { Io } from '../command.ts';

const cwd = join(import.meta.dirname, 'nowhere');
const io: Io = {
  out: () => {},
  err: () => {},
  env: {},
  cwd,
  isTty: false,
  columns: 80,
  input: () => Promise.resolve(new Uint8Array()),
};

async function settingsOf(env: Record<string, string>): Promise<Settings> {
  const reading = await readSettings({ env, cwd });
  if (!reading.ok) throw new Error(JSON.stringify(reading.faults));
  return reading.settings;
}

describe('the banner', () => {
  it('says where everything is', async () => {
    const text = await banner(await settingsOf({}), 'http://127.0.0.1:8086', io);
    expect(text).toContain('API     http://127.0.0.1:8086  (no tokens: for this machine only)');
    expect(text).toContain('Store   SQLite, ./redrive-data/redrive.db');
    expect(text).toContain('Broker  none');
    expect(text.match(/^ {4}curl /gm)).toHaveLength(3);
  });

  it('says where notifications and the gateway are, where they are on', async () => {
    const on = await settingsOf({ NOTIFICATIONS: 'on' });
    const url = 'http://127.0.0.1:8086';
    expect(await banner(on, url, io)).toContain('NOTIFICATION_DELIVERY is not set');
    const there = await settingsOf({
      NOTIFICATIONS: 'on',
      NOTIFICATION_DELIVERY: 'queue:pushes',
    });
    expect(await banner(there, url, io)).toContain('retries go to queue:pushes');
    expect(await banner(await settingsOf({}), url, io)).not.toMatch(/Notify|Gateway/);
    const gateway = await settingsOf({ ROUTING_DIR: '.', ROUTING_GATEWAY: 'on' });
    expect(await banner(gateway, url, io)).toContain(`Gateway ${url}/gateway/<policy_id>`);
  });

  it('shows no secret, and asks with a token where one is needed', async () => {
    const settings = await settingsOf({
      DATABASE_URL: 'postgres://me:hush@db/redrive',
      RABBITMQ_URL: 'amqp://me:hush@mq',
      DEAD_LETTER_EXCHANGE: 'dlx',
      REDRIVE_TOKENS: `ops:admin:${'ab'.repeat(32)}`,
      REDRIVE_DATA_DIR: '../elsewhere',
    });
    const text = await banner({ ...settings, only: 'intake' }, 'http://0.0.0.0:8086', io);
    expect(text).not.toMatch(/hush|abab/);
    expect(text).toContain('PostgreSQL, postgres://me:***@db/redrive');
    expect(text).toContain('takes in retry.scheduled and dead letters of dlx');
    expect(text).toContain('(1 token: ops)');
    expect(text).toContain('only intake');
    expect(text.match(/Bearer \$REDRIVE_TOKEN/g)).toHaveLength(3);
  });
});
