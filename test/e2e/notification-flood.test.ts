/** With the low lanes flooded and held up, critical retries go on: on SQLite alone, where both lanes are in one file. */
import { expect, test } from 'vitest';
import { flood } from './notifications/flood.ts';
import { TemporaryFolder } from './service/redrive-process.ts';

test('low retries in SQLite hold up no critical ones', { timeout: 60_000 }, async () => {
  using folder = new TemporaryFolder();
  const found = await flood({}, folder.path, { low: 2000, concurrency: 150 });
  expect(found).toEqual({ critical: 40, low: 150 });
});
