import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import {
  groupQuestions,
  InboxPlayer,
  itemQuestions,
  KEPT_OPEN,
  rareQuestion,
} from '../engine/players/inbox.ts';
import { OrderCheck, OrderedPlayer } from '../engine/players/ordered.ts';
import type { AuditTrail, RedriveOptions } from '../engine/players/redrive.ts';
import { RedrivePlayer } from '../engine/players/redrive.ts';
import { ReplayPlayer } from '../engine/players/replay.ts';
import { RetryingPlayer } from '../engine/players/retrying.ts';
import { storeInFile } from '../engine/players/sqlite-store.ts';

const folder = mkdtempSync(join(tmpdir(), 'redrive-bench-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;

describe('a large inbox', () => {
  it('has something for every question, and keeps the oldest open', async () => {
    // So many that every cause occurs.
    const player = await opened(InboxPlayer);
    await player.fill(10_000);
    for (const question of [...groupQuestions, ...itemQuestions]) {
      expect(await player.look(question), question.name).toMatchObject({
        found: expect.toSatisfy((found: number) => found > 0),
      });
    }
    expect(await player.look(rareQuestion)).toMatchObject({ found: 0 });
    await player.close();
    expect(await player.resolveMost()).toBe(KEPT_OPEN);
    expect(await player.look({ name: 'closed', items: { state: 'resolved' } })).toMatchObject({
      found: 100,
    });
    await player.close();
  });
});

describe('a replay', () => {
  it('sends every item once', async () => {
    const player = await opened(ReplayPlayer);
    await player.schedule(1500);
    // It objects by itself where anything else is done.
    expect(await player.execute(1500)).toBeGreaterThan(0);
    await player.close();
  });

  it('lets fresh tasks be done beside it, in both lanes', async () => {
    const player = await opened(ReplayPlayer);
    await player.schedule(1500);
    const { perSecond, same, other } = await player.fresh(2000, 0, 1500);
    expect(perSecond).toBeGreaterThan(0);
    expect([same.p50, other.p99].every(Number.isFinite)).toBe(true);
    await player.close();
  });
});

describe('order', () => {
  it('is kept by the engine, of every key', async () => {
    const player = await opened(OrderedPlayer);
    await player.schedule(1500);
    expect(await player.execute(1500)).toBeGreaterThan(0);
    await player.close();
  });

  it('is broken by a task that comes before another of its key', () => {
    const held = new OrderCheck(2);
    for (const n of [0, 2, 1, 4, 3]) held.did({ n });
    expect(held.faults).toBe(0);
    const broken = new OrderCheck(2);
    for (const n of [0, 4, 2]) broken.did({ n });
    expect(broken.faults).toBeGreaterThan(0);
  });
});

describe('the trail', () => {
  it.each([
    ['of work that succeeds', 'on', RedrivePlayer],
    ['of each success', 'successes', RedrivePlayer],
    ['of work that fails once', 'on', RetryingPlayer],
  ] as const)('%s is waited for, and ends', async (_, audit, player) => {
    const one = await opened(player, audit);
    await one.schedule(1500);
    expect(await one.execute(1500)).toBeGreaterThan(0);
    await one.close();
  });
});

async function opened<P extends RedrivePlayer>(
  player: new (options: RedriveOptions) => P,
  audit: AuditTrail = 'off',
): Promise<P> {
  const one = new player({ storeAt: storeInFile, audit });
  await one.open(join(folder, `${++files}`, 'tasks.db'));
  return one;
}
