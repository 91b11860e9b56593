import { expect, test } from 'vitest';
import { adviceOn } from './advice.ts';
import type { Findings } from './examine.ts';

const MIB = 1024 * 1024;

const well: Findings = {
  path: 'tasks.db',
  fileBytes: 400 * MIB,
  logBytes: 4 * MIB,
  pageBytes: 4096,
  pages: 102_400,
  freePages: 20_000,
  journalMode: 'wal',
  schema: { version: 2, oldest: 2, known: 2 },
  damage: [],
  freeBytes: 40_000 * MIB,
  library: '3.50.0',
};

function adviceFor(changes: Partial<Findings>): string[] {
  return adviceOn({ ...well, ...changes }).map(({ level, text }) => `${level}: ${text}`);
}

test('says nothing where all is well', () => {
  expect(adviceFor({})).toEqual([]);
  const { damage: _, ...unchecked } = well;
  expect(adviceOn(unchecked)).toEqual([]);
});

test.each<[what: string, changes: Partial<Findings>, advice: RegExp]>([
  [
    'damage',
    { damage: ['row 3 missing from index a', 'row 4 missing from index a'] },
    /^problem: tasks\.db is damaged \(row 3 missing from index a\)\. .*backup/,
  ],
  ['a network', { networkFileSystem: 'NFS' }, /^problem: .*network file system \(NFS\)/],
  ['a full disk', { freeBytes: 10 * MIB }, /^problem: 10 MiB are left of the disk/],
  ['a disk that is nearly full', { freeBytes: 900 * MIB }, /^hint: 900 MiB are left/],
  [
    'a disk that is small beside the file',
    { fileBytes: 20_000 * MIB, freeBytes: 3000 * MIB },
    /^hint: 3000 MiB are left/,
  ],
  ['no tables', { schema: { known: 2 } }, /^problem: tasks\.db has no tables of Redrive/],
  [
    'tables that were not finished',
    { schema: { version: 0, oldest: 0, known: 2 } },
    /^problem: tasks\.db has no tables of Redrive/,
  ],
  [
    'older tables',
    { schema: { version: 1, oldest: 1, known: 2 } },
    /^hint: tasks\.db has schema 1; this program brings it to 2/,
  ],
  [
    'tables that are too new',
    { schema: { version: 5, oldest: 4, known: 2 } },
    /^problem: .*knows schema 4; this one knows 2/,
  ],
  ['much room', { freePages: 60_000 }, /^hint: 234 MiB of tasks\.db hold nothing/],
  ['a long log', { logBytes: 300 * MIB }, /^hint: The log beside tasks\.db has 300 MiB/],
  ['another mode', { journalMode: 'delete' }, /^hint: tasks\.db has the journal mode delete/],
])('has one piece of advice on %s', (_, changes, advice) => {
  expect(adviceFor(changes)).toEqual([expect.stringMatching(advice)]);
});

test('says nothing of newer tables that may be used, nor of a small file that is half empty', () => {
  expect(adviceFor({ schema: { version: 3, oldest: 2, known: 2 } })).toEqual([]);
  expect(adviceFor({ pages: 1000, freePages: 900 })).toEqual([]);
});

test('puts problems before hints', () => {
  const levels = adviceOn({ ...well, journalMode: 'delete', networkFileSystem: 'NFS' });
  expect(levels.map(({ level }) => level)).toEqual(['problem', 'hint']);
});
