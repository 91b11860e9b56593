import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CyodaServer } from '@redrive/services/cyoda';
import { describe, expect, test } from 'vitest';
import { RedriveProcess, serveAlone, TemporaryFolder } from './redrive-process.ts';

const entity = {
  lastAttemptTime: '2025-06-01T12:00:00Z',
  currentTime: '2025-06-01T12:01:00Z',
  jitterEnabled: false,
};

describe('redrive cyoda', () => {
  test('joins, answers, joins again after a cut, and on SIGTERM answers what has come', async () => {
    await using server = await CyodaServer.start({ token: 'secret-1' });
    using folder = new TemporaryFolder();
    writeFileSync(join(folder.path, 'token'), 'secret-1\n');
    const args = ['cyoda', '--url', server.url, '--token-file', 'token', '--tags', 'a,b', '--json'];
    await using child = new RedriveProcess(args, folder.path);
    const first = await server.joined();
    expect(first.join['tags']).toEqual(['a', 'b']);
    expect(await first.criterion('isRetryDelayElapsed', entity)).toMatchObject({ matches: true });
    server.options.token = 'secret-2';
    writeFileSync(join(folder.path, 'token'), 'secret-2\n');
    server.cut();
    const second = await server.joined();
    expect(server.shownTokens).toEqual(['secret-1', 'secret-2']);
    const asked = Array.from({ length: 500 }, () =>
      second.criterion('isRetryDelayElapsed', entity),
    );
    await second.keepAlive();
    child.signal('SIGTERM');
    const answers = await Promise.all(asked);
    expect(answers.every(({ matches }) => matches)).toBe(true);
    expect(await child.exit).toBe(0);
    expect(child.lines.join('\n') + child.err).not.toMatch(/secret-/);
    expect(server.faults).toEqual([]);
  });

  test('says which server it wants, and ends', async () => {
    using folder = new TemporaryFolder();
    await using child = new RedriveProcess(['cyoda'], folder.path);
    expect(await child.exit).toBe(2);
    expect(child.err).toContain('--url');
  });
});

test('redrive serve with CYODA_URL keeps a failed evaluation in its inbox', async () => {
  await using server = await CyodaServer.start();
  const { child, folder, url } = await serveAlone({ CYODA_URL: server.url });
  await using _child = child;
  using _folder = folder;
  const stream = await server.joined();
  const fields = { entityId: 'order-17' };
  const answer = await stream.criterion('isRetryDelayElapsed', { attemptCount: 1 }, { fields });
  expect(answer).toMatchObject({ success: true, matches: false });
  const items = async () => {
    const response = await fetch(`${url}/api/v1/review`);
    return ((await response.json()) as { items: { reason: string }[] }).items;
  };
  // The item is written behind the answer.
  await expect.poll(items, { timeout: 20_000 }).toMatchObject([{ reason: 'EVALUATION_FAILED' }]);
});
