import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describePostgres, describeService, sharedServer } from '@redrive/services/vitest';
import { virtualClock } from 'redrive/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openSessions } from './sessions.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-sessions-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Sessions, with what was logged about them. */
async function opened(settings: Partial<Parameters<typeof openSessions>[0]>) {
  const clock = virtualClock(Date.now());
  const said: string[] = [];
  const line = (fields: object | string, message?: string) =>
    said.push(typeof fields === 'string' ? fields : (message ?? ''));
  const log = { info: line, warn: line } as unknown as Parameters<typeof openSessions>[2];
  const sessions = await openSessions({ dataDir: folder, ...settings }, clock, log);
  const session = { provider: 'a', expires_at_ms: clock.now() + 60_000 };
  return { sessions, session, said, clock };
}

/** They are kept where all instances find them. */
async function expectShared(settings: Partial<Parameters<typeof openSessions>[0]>): Promise<void> {
  const one = await opened(settings);
  const two = await opened(settings);
  await one.sessions.set('k', one.session);
  expect(await two.sessions.get('k')).toEqual(one.session);
  expect(two.sessions.trouble).toBeUndefined();
  await two.sessions.delete('k');
  expect(await one.sessions.get('k')).toBeUndefined();
  await Promise.all([one.sessions.close(), two.sessions.close()]);
}

describe('the sessions of the service', () => {
  test('are in a file of the data folder by default', async () => {
    await expectShared({});
    expect(existsSync(join(folder, 'sessions.db'))).toBe(true);
  });

  test('are missing while their store is away, which is said once a minute and in the health', async () => {
    writeFileSync(join(folder, 'no-folder'), '');
    const { sessions, session, said, clock } = await opened({ dataDir: join(folder, 'no-folder') });
    expect(await sessions.get('k')).toBeUndefined();
    await sessions.set('k', session);
    await sessions.delete('k');
    expect(said).toEqual(['the store of sticky sessions failed: requests go on without']);
    expect(sessions.trouble).toContain('Sticky sessions cannot be read or written');
    await clock.advance(60_000);
    await sessions.get('k');
    expect(said).toHaveLength(2);
    await sessions.close();
  });

  test('do not wait for a Redis that is not there', async () => {
    const { sessions } = await opened({ redisUrl: 'redis://127.0.0.1:1' });
    expect(await sessions.get('k')).toBeUndefined();
    expect(sessions.trouble).toContain('Redis is not connected');
    await sessions.close();
  });
});

describeService('Redis', () => {
  test('are in Redis where there is one, whatever the store is', async () => {
    const redisUrl = await sharedServer('Redis');
    await expectShared({ redisUrl, databaseUrl: 'postgres://127.0.0.1:1/none' });
  });
});

describePostgres(({ freshDatabase }) => {
  test('are in PostgreSQL where that is the store', async () => {
    await using database = await freshDatabase();
    await expectShared({ databaseUrl: database.url });
  });
});
