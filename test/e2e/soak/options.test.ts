import { expect, it } from 'vitest';
import { type Options, readOptions } from './options.ts';

it('takes ten minutes with every fault unless it is told otherwise', () => {
  expect(readOptions([])).toMatchObject({ minutes: 10, perSecond: 200 });
  const options = readOptions(['--minutes', '1.5', '--without', 'huge,cuts']);
  expect(options).toMatchObject({ minutes: 1.5 });
  const { with: wanted } = options as Options;
  expect([...wanted]).toEqual(['kills', 'restarts', 'flaky', 'outage', 'queue', 'lanes']);
});

it.each([
  [['--minutes', 'ten'], '--minutes is ten'],
  [['--minutes', '0'], '--minutes is 0'],
  [['--per-second', '9999'], '--per-second is 9999'],
  [['--without', 'fire'], 'no such fault'],
  [['--fast'], '--fast'],
])('says what is wrong with %s', (args, said) => {
  expect(readOptions(args)).toEqual({ wrong: expect.stringContaining(said) as string });
});
