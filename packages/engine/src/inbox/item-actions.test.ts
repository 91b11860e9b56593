import { describe, expect, test } from 'vitest';
import { MemoryAudit } from '../adapters/memory/audit.ts';
import { giveUp } from '../model/outcomes.ts';
import { createTestEngine } from '../testing/test-engine.ts';

/** An engine whose handler `orders` fails while `broken` says so. */
function shop() {
  const broken = new Set<number>();
  const seen: number[] = [];
  const engine = createTestEngine().handle('orders', async ({ n }: { n: number }) => {
    seen.push(n);
    return broken.has(n) ? giveUp(`order ${n} is bad`) : undefined;
  });
  const dead = async (...ns: number[]) => {
    for (const n of ns) broken.add(n);
    for (const n of ns) await engine.submit('orders', { n });
    await engine.drain();
    const { items } = await engine.inbox.items({ state: 'open', limit: 100 });
    return items.toReversed().map(({ id }) => id);
  };
  return { engine, broken, seen, dead };
}

/** So many dead orders in a lane that is paused, and one bill beside them. */
async function standstill(orders: number) {
  const { engine, broken, dead } = shop();
  engine.handle('bills', () => giveUp('no'));
  await dead(...Array.from({ length: orders }, (_, i) => i));
  await engine.submit('bills', 1);
  await engine.drain();
  broken.clear();
  await engine.pause('handler:orders');
  return engine;
}

describe('one item', () => {
  test('is replayed once, whoever asks again', async () => {
    const { engine, broken, seen, dead } = shop();
    const [id] = await dead(1);
    broken.clear();
    await engine.inbox.replay(id!, { by: 'ann' });
    await expect(engine.inbox.replay(id!)).rejects.toMatchObject({
      code: 'ITEM_CLOSED',
      message: expect.stringMatching(/replayed at .* by ann/),
    });
    await engine.drain();
    expect(seen).toEqual([1, 1]);
    expect(await engine.inbox.item(id!)).toMatchObject({ state: 'replayed', closedBy: 'ann' });
  });

  test('has in the audit trail who did what to which message', async () => {
    const trail = new MemoryAudit();
    const engine = createTestEngine({ audit: trail }).handle('orders', () => giveUp('no'));
    const { id } = await engine.submit('orders', { n: 1 });
    await engine.drain();
    const { inbox } = engine;
    const [group] = await inbox.groups();
    await inbox.edit(1, { payload: { n: 22 }, headers: { 'x-a': 'secret' }, by: 'ann' });
    await inbox.edit(1, undefined);
    await inbox.discard(1, { by: 'bob' });
    await inbox.restore(1);
    await inbox.annotate(group!.fingerprint, { owner: 'ann' });
    await inbox.replay(1, { to: { kind: 'queue', address: 'q' } });
    await engine.drain();
    const asked = { type: 'operator_action', messageId: id, limit: 10 };
    const { events } = await engine.auditEvents(asked);
    const whose = { item: 1, lane: 'handler:orders', group: group!.fingerprint, message_id: id };
    const to = { kind: 'queue', address: 'q' };
    expect(events.toReversed().map(({ event }) => event)).toMatchObject([
      { ...whose, action: 'edit', by: 'ann', details: { payload: '8 bytes', headers: ['x-a'] } },
      { ...whose, action: 'edit', by: null, details: { changes: 'none any more' } },
      { ...whose, action: 'discard', by: 'bob', details: null },
      { ...whose, action: 'restore', by: null },
      { ...whose, action: 'replay', details: { to } },
    ]);
    expect(trail.events).toContainEqual(
      expect.objectContaining({ action: 'annotate', details: { owner: 'ann' } }),
    );
    expect(JSON.stringify(trail.events)).not.toContain('secret');
    await engine.submit('orders', { n: 2 });
    await engine.drain();
    const { id: job } = await inbox.discardAll({ all: true }, { by: 'eve' });
    await engine.drain();
    expect(trail.events).toContainEqual(
      expect.objectContaining({
        action: 'discardAll',
        job,
        by: 'eve',
        details: { filter: { all: true }, count: 1, canary: [], observeMs: 0 },
      }),
    );
  });

  test('is replayed with another payload, and keeps the original', async () => {
    const { engine, seen, dead } = shop();
    const [id] = await dead(1);
    await engine.inbox.edit(id!, { payload: { n: 7 }, by: 'ann' });
    await engine.inbox.replay(id!);
    await engine.drain();
    expect(seen).toEqual([1, 7]);
    const item = await engine.inbox.item(id!);
    expect(new TextDecoder().decode(item?.payload)).toBe('{"n":1}');
    expect(new TextDecoder().decode(item?.edit?.payload)).toBe('{"n":7}');
  });

  test('has another idempotency key once an operator has changed it, and keeps it then', async () => {
    const keys: string[] = [];
    const engine = createTestEngine().handle('orders', (_: { n: number }, { idempotencyKey }) => {
      keys.push(idempotencyKey);
      return giveUp('no');
    });
    const { id } = await engine.submit('orders', { n: 1 });
    await engine.drain();
    await engine.inbox.replay(1);
    await engine.drain();
    await engine.inbox.replay(2, { payload: { n: 2 } });
    await engine.drain();
    await engine.inbox.replay(3);
    await engine.drain();
    expect(keys).toEqual([id, id, `${id}.2`, `${id}.2`]);
  });

  test('that is not there, or is closed, says so', async () => {
    const { engine, dead } = shop();
    const [id] = await dead(1);
    await expect(engine.inbox.replay(99)).rejects.toMatchObject({ code: 'ITEM_UNKNOWN' });
    await engine.inbox.discard(id!);
    await expect(engine.inbox.resolve(id!)).rejects.toMatchObject({ code: 'ITEM_CLOSED' });
    await engine.inbox.restore(id!);
    await engine.inbox.resolve(id!);
    await expect(engine.inbox.edit(id!, { to: 'ftp://x' })).rejects.toMatchObject({
      code: 'NO_DESTINATION',
    });
  });
});

describe('a bulk replay', () => {
  test('sends all that match, and nothing that came later', async () => {
    const { engine, broken, seen, dead } = shop();
    await dead(1, 2, 3);
    broken.clear();
    const { id } = await engine.inbox.replayAll({ lane: 'handler:orders' });
    await engine.drain();
    await engine.advance('1s');
    expect(await engine.inbox.job(id)).toMatchObject({
      state: 'finished',
      total: 3,
      done: 3,
      left: 0,
      back: 0,
    });
    expect(seen).toEqual([1, 2, 3, 1, 2, 3]);
  });

  test('of ids says how many of them were not open', async () => {
    const { engine, dead } = shop();
    await dead(1, 2);
    await engine.inbox.discard(1);
    const report = await engine.inbox.replayAll({ ids: [1, 2, 2, 99] });
    expect(report).toMatchObject({ ignored: 2 });
    await expect(engine.inbox.replayAll({ ids: [1] })).rejects.toThrow(/None of the \d open/);
    await expect(
      engine.inbox.replayAll({ reason: 'EXHAUSTD' as 'EXHAUSTED' }),
    ).rejects.toMatchObject({ code: 'INVALID_FILTER' });
    const members = engine.inbox.members(report.id, { result: 'donne' as 'done' });
    await expect(members).rejects.toMatchObject({ code: 'INVALID_FILTER' });
  });

  test('with a canary tells whoever runs that there is one attempt', async () => {
    const told: number[] = [];
    const engine = createTestEngine().handle('orders', (_: number, { maxAttempts }) => {
      told.push(maxAttempts);
      return giveUp('no');
    });
    for (const n of [1, 2]) await engine.submit('orders', n);
    await engine.drain();
    await engine.inbox.replayAll({ all: true }, { canary: [1] });
    await engine.drain();
    expect(told).toEqual([4, 4, 1]);
  });

  test('with a canary stops at the first that comes back, and says why', async () => {
    const { engine, broken, seen, dead } = shop();
    await dead(...Array.from({ length: 20 }, (_, i) => i + 1));
    broken.clear();
    broken.add(4);
    seen.length = 0;
    const { id } = await engine.inbox.replayAll({ all: true }, { canary: [1, 5] });
    await engine.drain();
    await engine.advance('1s');
    await engine.drain();
    expect(await engine.inbox.job(id)).toMatchObject({
      state: 'stopped',
      total: 20,
      done: 6,
      left: 14,
      back: 1,
      why: '1 of 6 came back in step 2. The last failure: order 4 is bad',
    });
    expect(seen).toEqual([1, 2, 3, 4, 5, 6]);
    await engine.inbox.resumeJob(id);
    await engine.drain();
    await engine.advance('1s');
    expect(await engine.inbox.job(id)).toMatchObject({ state: 'finished', done: 20, back: 1 });
  });

  test('knows of each member what became of it, or that its turn has not come', async () => {
    const { engine, broken, dead } = shop();
    const ids = await dead(1, 2, 3, 4);
    broken.delete(1);
    const { id } = await engine.inbox.replayAll({ all: true }, { perSecond: 1 });
    await engine.inbox.resolve(ids[1]!);
    await engine.advance('1900ms');
    const members = await engine.inbox.members(id);
    expect(members.map(({ result }) => result)).toEqual(['done', 'closed', 'done', undefined]);
    const done = await engine.inbox.members(id, { result: 'done' });
    expect(done).toEqual([ids[0], ids[2]].map((itemId) => ({ itemId, result: 'done' })));
    expect(await engine.inbox.members(id, { result: 'closed' })).toHaveLength(1);
  });

  test('goes at its pace', async () => {
    const { engine, broken, seen, dead } = shop();
    await dead(...Array.from({ length: 30 }, (_, i) => i + 1));
    broken.clear();
    seen.length = 0;
    await engine.inbox.replayAll({ all: true }, { perSecond: 10 });
    await engine.advance('999ms');
    expect(seen.length).toBeGreaterThanOrEqual(9);
    expect(seen.length).toBeLessThanOrEqual(10);
    await engine.advance('3s');
    expect(seen).toHaveLength(30);
  });

  test('that is paused sends nothing, and one that is cancelled leaves its counts', async () => {
    const { engine, broken, seen, dead } = shop();
    await dead(...Array.from({ length: 30 }, (_, i) => i + 1));
    broken.clear();
    seen.length = 0;
    const { id } = await engine.inbox.replayAll({ all: true }, { perSecond: 10 });
    await engine.advance('500ms');
    await engine.inbox.pauseJob(id);
    const sent = seen.length;
    await engine.advance('10s');
    expect(seen).toHaveLength(sent);
    const report = await engine.inbox.cancelJob(id);
    expect(report).toMatchObject({ state: 'cancelled', done: sent, left: 30 - sent });
    await expect(engine.inbox.resumeJob(id)).rejects.toMatchObject({ code: 'JOB_OVER' });
  });

  test('tells of what was done to it, and not of what changed nothing', async () => {
    const trail = new MemoryAudit();
    const engine = createTestEngine({ audit: trail }).handle('orders', () => giveUp('no'));
    for (const n of [1, 2]) await engine.submit('orders', n);
    await engine.drain();
    const { id } = await engine.inbox.replayAll({ all: true }, { perSecond: 1 });
    await engine.inbox.resumeJob(id);
    await engine.inbox.pauseJob(id, { by: 'ann' });
    await engine.inbox.pauseJob(id);
    await engine.inbox.cancelJob(id);
    await engine.drain();
    const written = trail.events.flatMap(({ event_type: type, action, state, by }) =>
      type === 'job_ended' ? [state] : type === 'operator_action' ? [[action, by]] : [],
    );
    expect(written).toEqual([
      ['replayAll', null],
      ['pauseJob', 'ann'],
      ['cancelJob', null],
      'cancelled',
    ]);
  });

  test('waits for no other whose step of a canary waits', async () => {
    const engine = await standstill(200);
    for (let n = 1; n <= 100; n++) {
      await engine.inbox.replayAll({ ids: [2 * n - 1, 2 * n] }, { canary: [1] });
    }
    const { id } = await engine.inbox.discardAll({ lane: 'handler:bills' });
    await engine.advance('1s');
    expect(await engine.inbox.job(100)).toMatchObject({ state: 'running', left: 1, underway: 1 });
    expect(await engine.inbox.job(id)).toMatchObject({ state: 'finished', done: 1 });
  });

  test('waits for no other that has sent everything, however long that is under way', async () => {
    const engine = await standstill(100);
    for (let id = 1; id <= 100; id++) await engine.inbox.replayAll({ ids: [id] });
    const { id } = await engine.inbox.discardAll({ lane: 'handler:bills' });
    await engine.advance('1s');
    expect(await engine.inbox.job(100)).toMatchObject({ state: 'running', left: 0, underway: 1 });
    expect(await engine.inbox.job(id)).toMatchObject({ state: 'finished', done: 1 });
    await engine.resume('handler:orders');
    await engine.advance('10s');
    expect(await engine.inbox.job(100)).toMatchObject({ state: 'finished' });
  });

  test('is refused where too many are not over, and listed a page at a time', async () => {
    const { engine, dead } = shop();
    await dead(...Array.from({ length: 600 }, (_, i) => i));
    // Each sends its first item; time stands still, so none sends another.
    const again = () => engine.inbox.replayAll({ all: true }, { perSecond: 1 });
    for (let n = 0; n < 500; n++) await again();
    await expect(again()).rejects.toMatchObject({ code: 'TOO_MANY_JOBS' });
    await engine.inbox.cancelJob(7);
    expect(await again()).toMatchObject({ id: 501 });
    const ids = async (page?: { before?: number; limit?: number }) =>
      (await engine.inbox.jobs(page)).map(({ id }) => id);
    expect(await ids()).toHaveLength(100);
    expect(await ids({ limit: 2 })).toEqual([501, 500]);
    expect(await ids({ before: 500, limit: 2 })).toEqual([499, 498]);
    await expect(ids({ limit: 0 })).rejects.toMatchObject({ code: 'INVALID_TASK' });
  });

  test('needs a filter that says something and matches something', async () => {
    const { engine, dead } = shop();
    await dead(1);
    await expect(engine.inbox.replayAll({})).rejects.toMatchObject({ code: 'EMPTY_FILTER' });
    await expect(engine.inbox.replayAll({ lane: 'handler:x' })).rejects.toMatchObject({
      code: 'NOTHING_MATCHES',
    });
    expect(await engine.inbox.preview({ text: 'order' })).toMatchObject({ count: 1 });
  });
});
