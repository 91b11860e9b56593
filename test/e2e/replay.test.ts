import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createEngine, giveUp } from '@redrive/engine';
import { describePostgres, everyPostgres } from '@redrive/services/vitest';
import { expect, test } from 'vitest';
import type { Place } from './crash/job.ts';
import type { Account, Order } from './replay/child.ts';
import { storeAt } from './replay/place.ts';

const ITEMS = 10_000;
const TIMEOUT_MS = 60_000;

/** An inbox with so many items; their ids, oldest first. */
async function fill(place: Place): Promise<number[]> {
  const engine = createEngine({ store: storeAt(place) }).handle(
    'work',
    { concurrency: 1000 },
    (n: number) => giveUp(`${n} cannot work yet`),
  );
  const all = Array.from({ length: ITEMS }, (_, n) => ({ to: 'work' as const, payload: n }));
  await engine.submitMany(all);
  await engine.start();
  const ids: number[] = [];
  for (;;) {
    const { count } = await engine.inbox.preview({ all: true }).catch(() => ({ count: 0 }));
    if (count === ITEMS) break;
  }
  for (let before: number | undefined = Number.MAX_SAFE_INTEGER; before !== undefined;) {
    const page: { items: { id: number }[]; next?: number } = await engine.inbox.items({
      limit: 1000,
      before,
    });
    ids.push(...page.items.map(({ id }) => id));
    before = page.next;
  }
  await engine.stop();
  return ids.toReversed();
}

/** Two processes, whose shares overlap in the middle half, begin at the same moment. */
async function expectReplayedOnceByTwo(place: Place): Promise<void> {
  const ids = await fill(place);
  expect(ids).toHaveLength(ITEMS);
  const shares = [ids.slice(0, ITEMS * 0.75), ids.slice(ITEMS * 0.25)];
  const children = shares.map((share, i) => {
    const child = fork(join(import.meta.dirname, 'replay/child.ts'));
    const single = share.filter((_, n) => n % 50 === 0);
    const order: Order = { place, name: `p${i}`, ids: share, single };
    child.send(order);
    return child;
  });
  try {
    await Promise.all(children.map((child) => said(child, 'ready')));
    for (const child of children) child.send('go');
    await Promise.all(children.map((child) => said(child, 'finished')));
    const accounts = children.map((child) => once(child, 'message') as Promise<[Account]>);
    for (const child of children) child.send('stop');
    const [[first], [second]] = await Promise.all([accounts[0]!, accounts[1]!]);

    const executed = [...first.executed, ...second.executed].sort((a, b) => a - b);
    expect(executed).toEqual(Array.from({ length: ITEMS }, (_, n) => n));
    const replayed = first.replayed + second.replayed + first.job.done + second.job.done;
    expect(replayed).toBe(ITEMS);
    for (const { job } of [first, second]) {
      expect(job.done + job.skipped).toBe(job.total);
      expect(job.failed).toBe(0);
    }
  } finally {
    for (const child of children) child.kill('SIGKILL');
  }
}

async function said(child: ChildProcess, word: string): Promise<void> {
  const died = once(child, 'exit').then(([code]) => {
    throw new Error(`a process ended with ${String(code)} before it was ${word}`);
  });
  const heard = (async () => {
    for (;;) if ((await once(child, 'message'))[0] === word) return;
  })();
  await Promise.race([heard, died]);
}

test(
  'two processes on one file replay overlapping selections, and each item is replayed exactly once',
  { timeout: TIMEOUT_MS },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'redrive-replay-'));
    try {
      await expectReplayedOnceByTwo({ kind: 'sqlite', file: join(folder, 'tasks.db') });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);

describePostgres((postgres) => {
  test(
    'two processes on one database replay overlapping selections, and each item is replayed exactly once',
    { timeout: TIMEOUT_MS },
    async () => {
      await using database = await postgres.freshDatabase();
      await expectReplayedOnceByTwo({ kind: 'postgres', url: database.url });
    },
  );
}, everyPostgres);
