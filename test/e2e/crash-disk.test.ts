import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type ChildRecord, Fleet, TEST_TIMEOUT_MS } from './crash/fleet.ts';
import type { Place } from './crash/job.ts';
import { whatIsLeft } from './crash/relay.ts';
import { settleAccounts } from './crash/scene.ts';

const LITTLE_BYTES = 1024 * 1024;
const engine = { lease: '1s', poll: '200ms', maxLostLeases: 100 } as const;
const work = { concurrency: 4, paceMs: 5 };
const load = { atOnce: 4, paceMs: 5, plans: ['works' as const], padding: 10_000 };

function refusals(children: readonly ChildRecord[]): Set<string> {
  return new Set(
    children.flatMap(({ entries }) =>
      entries.flatMap((entry) => (entry.type === 'refused' ? [entry.code] : [])),
    ),
  );
}

describe.concurrent('a file without room', () => {
  test(
    'refuses new work and loses none, also when its process is killed then',
    { timeout: TEST_TIMEOUT_MS },
    async () => {
      await using fleet = new Fleet();
      const file = join(fleet.folder, 'tasks.db');
      const tight: Place = { kind: 'sqlite', file, maxFileBytes: LITTLE_BYTES };
      const submit = { ...load, from: 0 };
      const first = fleet.start({ name: 'first', place: tight, engine, work, submit });
      await fleet.until('no room is left', () => first.counts.refused >= load.atOnce);
      await first.kill();
      expect(refusals(fleet.records())).toEqual(new Set(['STORE_FULL']));

      const roomy: Place = { kind: 'sqlite', file };
      const rest = { ...submit, ...whatIsLeft(first, 0), count: 50 };
      const second = fleet.start({ name: 'second', place: roomy, engine, work, submit: rest });
      const result = await settleAccounts(fleet, roomy, [second]);
      expect(result.faults).toEqual([]);
      expect(result.ends).toEqual({ works: { done: result.accepted } });
      expect(result.accepted).toBe(rest.from + 50);
    },
  );

  test(
    'works off what it has, and takes more when that is pruned',
    { timeout: TEST_TIMEOUT_MS },
    async () => {
      await using fleet = new Fleet();
      const file = join(fleet.folder, 'tasks.db');
      const place: Place = { kind: 'sqlite', file, maxFileBytes: LITTLE_BYTES };
      const keepsNone = { ...engine, retention: { done: 0 } };
      const submit = { ...load, from: 0 };
      const child = fleet.start({ name: 'only', place, engine: keepsNone, work, submit });
      await fleet.until('no room is left', () => child.counts.refused >= load.atOnce);
      const { accepted } = child.counts;
      await fleet.until('all is done', () => child.counts.done === accepted);
      // Room comes with the next pruning: until then it is refused once more.
      await fleet.until('there is room', () => {
        child.tell('goOn');
        return child.counts.accepted > accepted;
      });
      child.tell('enough');
      await fleet.until('all is done', () => {
        child.tell('goOn');
        return child.counts.submitted && child.counts.done === child.counts.accepted;
      });
      expect(refusals(fleet.records())).toEqual(new Set(['STORE_FULL']));
    },
  );

  test.skipIf(!canMount())(
    'goes on by itself when the disk has room again (needs Linux and the right to mount)',
    { timeout: TEST_TIMEOUT_MS },
    async () => {
      await using fleet = new Fleet();
      const disk = join(fleet.folder, 'disk');
      mkdirSync(disk);
      const place: Place = { kind: 'sqlite', file: join(disk, 'tasks.db') };
      const copyTo = join(fleet.folder, 'copy.db');
      // Little enough that only the filler fills the disk.
      const submit = { ...load, from: 0, paceMs: 10, padding: 1000 };
      const child = fleet.start(
        { name: 'only', place, engine, work, submit, copyTo },
        inSmallDisk(disk),
      );
      await fleet.until('it works', () => child.counts.done >= 50);
      child.tell({ fillDisk: join(disk, 'filler') });
      await fleet.until('no room is left', () => child.counts.refused >= load.atOnce);
      child.tell({ freeDisk: join(disk, 'filler') });
      const before = child.counts.done;
      child.tell('goOn');
      await fleet.until('it works again', () => child.counts.done >= before + 50);
      child.tell('enough');
      await fleet.until(
        'all is done',
        () => child.counts.submitted && child.counts.done === child.counts.accepted,
      );
      child.tell('stop');
      await child.over();

      expect(refusals(fleet.records())).toEqual(new Set(['STORE_FULL']));
      const result = await settleAccounts(fleet, { kind: 'sqlite', file: copyTo }, []);
      expect(result.faults).toEqual([]);
      expect(result.ends).toEqual({ works: { done: result.accepted } });
    },
  );
});

/** Runs a command that sees a small disk of its own at this folder. The disk is gone when the command is. */
function inSmallDisk(folder: string): string[] {
  const script = 'mount -t tmpfs -o size=64m redrive "$0" && exec "$@"';
  const own = process.getuid?.() === 0 ? [] : ['--map-root-user'];
  return ['unshare', '--mount', ...own, 'sh', '-c', script, folder];
}

function canMount(): boolean {
  const [command = '', ...rest] = inSmallDisk('/mnt');
  return spawnSync(command, [...rest, 'true']).status === 0;
}
