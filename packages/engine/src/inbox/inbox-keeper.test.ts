import { describe, expect, test } from 'vitest';
import { MemoryAudit } from '../adapters/memory/audit.ts';
import type { InboxOptions } from '../engine-options.ts';
import type { EngineEvent } from '../events.ts';
import type { InboxEntry } from './entry-hook.ts';
import { giveUp } from '../model/outcomes.ts';
import { createTestEngine } from '../testing/test-engine.ts';

function stage(inbox: InboxOptions = {}) {
  const events: EngineEvent[] = [];
  const entries: InboxEntry[] = [];
  const trail = new MemoryAudit();
  const engine = createTestEngine({
    inbox: { ...inbox, onEntry: (entry) => void entries.push(entry) },
    on: (event) => void events.push(event),
    audit: trail,
    log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
  }).handle('orders', () => giveUp('no'));
  const fail = async (count: number) => {
    for (let n = 0; n < count; n++) await engine.submit('orders', n);
    await engine.drain();
  };
  const told = () => events.flatMap((event) => (event.type.startsWith('inbox') ? [event] : []));
  return { engine, events, trail, entries, fail, told };
}

function nothing(): void {}

describe('the inbox', () => {
  test('warns from four fifths of its limit on, and never deletes what is open', async () => {
    const { engine, fail, told } = stage({ maxItems: 10 });
    await fail(7);
    await engine.advance('20m');
    expect(told()).toEqual([]);
    await fail(1);
    await engine.advance('11m');
    expect(told().at(-1)).toEqual({ type: 'inboxFilling', open: 8, maxItems: 10 });
    await fail(4);
    await engine.advance('11m');
    expect(told().at(-1)).toEqual({ type: 'inboxFull', open: 12, maxItems: 10 });
    expect((await engine.inbox.items({ state: 'open', limit: 100 })).items).toHaveLength(12);
  });

  test('deletes closed items after their time, and jobs with them', async () => {
    const { engine, fail } = stage({ retention: '1h' });
    await fail(3);
    const { id } = await engine.inbox.discardAll({ ids: [1, 2] });
    await engine.advance('30m');
    expect(await engine.inbox.job(id)).toMatchObject({ state: 'finished', done: 2 });
    expect((await engine.inbox.items({ limit: 9 })).items).toHaveLength(3);
    await engine.advance('40m');
    expect((await engine.inbox.items({ limit: 9 })).items.map((item) => item.id)).toEqual([3]);
    await expect(engine.inbox.job(id)).rejects.toMatchObject({ code: 'JOB_UNKNOWN' });
  });

  test('cancels a job that was stopped so long ago, and tells', async () => {
    const { engine, events, trail, fail } = stage({ retention: '1h' });
    await fail(2);
    const { id } = await engine.inbox.replayAll({ all: true }, { canary: [1] });
    await engine.advance('1m');
    expect(await engine.inbox.job(id)).toMatchObject({ state: 'stopped' });
    await engine.advance('75m');
    expect(await engine.inbox.job(id)).toMatchObject({ state: 'cancelled', done: 1, left: 1 });
    const told = events.flatMap((event) => (event.type === 'jobEnded' ? [event.state] : []));
    expect(told).toEqual(['stopped', 'cancelled']);
    const written = trail.events.filter((event) => event.event_type === 'job_ended');
    expect(written).toMatchObject([
      { job: id, state: 'stopped', why: expect.stringContaining('came back'), total: 2, done: 1 },
      { job: id, state: 'cancelled', total: 2, done: 1, skipped: 0, failed: 0 },
    ]);
  });

  test('remembers only so many jobs that are over, the newest', async () => {
    const { engine, fail } = stage();
    await fail(502);
    for (let n = 1; n <= 502; n++) {
      await engine.inbox.discardAll({ ids: [n] });
      if (n % 100 === 0) await engine.drain();
    }
    await engine.advance('20m');
    const ids = (await engine.inbox.jobs({ limit: 2000 })).map(({ id }) => id);
    expect(ids).toHaveLength(500);
    expect([ids[0], ids.at(-1)]).toEqual([502, 3]);
  });

  test('tells of what enters: the first of a group at once, the others together', async () => {
    const { engine, entries, fail } = stage({ debounce: '1m' });
    await fail(1);
    expect(entries).toMatchObject([
      { lane: 'handler:orders', count: 1, reason: 'GAVE_UP', failure: { message: 'no' } },
    ]);
    await fail(4);
    expect(entries).toHaveLength(1);
    await engine.advance('61s');
    expect(entries.at(-1)).toMatchObject({ count: 4 });
    expect(entries).toHaveLength(2);
  });

  test('tells of what expires before it is delivered', async () => {
    const { engine, entries } = stage();
    await engine.submit({ kind: 'queue', address: 'q' }, 1, {
      expiresAt: engine.clock.now() + 1000,
    });
    await engine.advance('11m');
    expect(entries).toMatchObject([{ reason: 'EXPIRED', count: 1 }]);
  });
});
