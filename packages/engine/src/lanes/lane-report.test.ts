import { seededRandom, virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { memory } from '../adapters/memory/index.ts';
import { createEngine } from '../engine.ts';
import type { EngineOptions } from '../engine-options.ts';
import type { Delivery } from '../ports/delivery.ts';
import { createTestBroker } from '../testing/index.ts';

const http: Delivery = {
  kind: 'http',
  handsOver: false,
  deliver: () => Promise.resolve({ type: 'done' }),
};

function stage(options: Partial<EngineOptions> = {}) {
  const clock = virtualClock();
  const store = memory({ clock });
  const engine = createEngine({
    store,
    clock,
    random: seededRandom(1),
    defer: queueMicrotask,
    brokers: [createTestBroker()],
    deliveries: [http],
    policy: { maxAttempts: 1 },
    ...options,
  });
  return { clock, store, engine };
}

const names = (reports: readonly { lane: string }[]) => reports.map(({ lane }) => lane);

describe('a list of lanes', () => {
  /** Something waits in each. */
  async function filled() {
    const { engine, clock } = stage();
    const dueAt = clock.now() + 3_600_000;
    for (const to of ['https://b.test/x', 'http://a.test/', 'https://c.test']) {
      await engine.submit(to as 'https://b.test', 1, { dueAt });
    }
    for (const address of ['orders', 'mails', 'ordinary']) {
      await engine.submit({ kind: 'queue', address }, 1, { dueAt });
    }
    engine.handle('here', () => undefined);
    await engine.submit('elsewhere', 1, { dueAt });
    return { engine, clock };
  }

  it('is in the order of their names, with what waits and what does not', async () => {
    const { engine } = await filled();
    expect(names(await engine.lanes())).toEqual([
      'handler:elsewhere',
      'handler:here',
      'http://a.test',
      'https://b.test',
      'https://c.test',
      'queue:mails',
      'queue:orders',
      'queue:ordinary',
    ]);
  });

  it.each([1, 2, 3])('goes on after a name, %i at a time', async (limit) => {
    const { engine } = await filled();
    const all = names(await engine.lanes());
    const seen: string[] = [];
    // Also after a lane in which nothing waits.
    while (seen.length <= all.length) {
      const after = seen.at(-1);
      const page = await engine.lanes({ limit, ...(after === undefined ? {} : { after }) });
      seen.push(...names(page));
      if (page.length < limit) break;
    }
    expect(seen).toEqual(all);
  });

  it.each([
    [{ kind: 'http' }, ['http://a.test', 'https://b.test', 'https://c.test']],
    [{ kind: 'queue', limit: 2 }, ['queue:mails', 'queue:orders']],
    [{ prefix: 'queue:ord' }, ['queue:orders', 'queue:ordinary']],
    [{ prefix: 'queue:orders' }, ['queue:orders']],
    [{ prefix: 'http', kind: 'queue' }, []],
    [{ prefix: 'https://', kind: 'http', after: 'https://b.test' }, ['https://c.test']],
    [{ state: 'NO_HANDLER' as const }, ['handler:elsewhere']],
    [{ state: 'paused' as const }, ['https://c.test']],
    [{ state: 'closed' as const, limit: 1, after: 'queue:mails' }, ['queue:orders']],
    [{ blocked: true }, []],
  ])('is filtered by %j', async (query, expected) => {
    const { engine } = await filled();
    await engine.pause('https://c.test');
    expect(names(await engine.lanes(query))).toEqual(expected);
  });

  it('says whether a lane that is paused was known', async () => {
    const { engine } = await filled();
    expect(await engine.pause('queue:orders')).toEqual({ known: true });
    expect(await engine.pause('handler:here')).toEqual({ known: true });
    expect(await engine.pause('queue:order')).toEqual({ known: false });
    expect(await engine.pause('queue:order')).toEqual({ known: true });
  });

  it('has paused lanes that this instance cannot deliver to', async () => {
    const { engine } = stage({ brokers: [] });
    await engine.pause('queue:quiet', 'ops');
    const paused = { lane: 'queue:quiet', state: 'paused', pausedBy: 'ops' };
    expect(await engine.lanes()).toMatchObject([paused]);
  });

  it('has paused lanes in which nothing waits', async () => {
    const { engine } = stage();
    await engine.pause('queue:quiet', 'ops');
    const paused = { lane: 'queue:quiet', state: 'paused', pausedBy: 'ops' };
    expect(await engine.lanes()).toMatchObject([paused]);
  });

  it('goes through more lanes than one page of the store has', async () => {
    const { engine, clock } = stage();
    const dueAt = clock.now() + 3_600_000;
    const all = Array.from({ length: 2500 }, (_, i) => `q${String(i).padStart(4, '0')}`);
    await engine.submitMany(
      all.map((address) => ({ to: { kind: 'queue', address }, payload: 1, dueAt })),
    );
    await engine.pause('queue:q2000x');
    const page = await engine.lanes({ after: 'queue:q1999', limit: 3 });
    expect(names(page)).toEqual(['queue:q2000', 'queue:q2000x', 'queue:q2001']);
    expect(await engine.laneCounts()).toMatchObject({ closed: 2500, paused: 1, open: 0 });
    expect(names(await engine.lanes({ state: 'paused' }))).toEqual(['queue:q2000x']);
  });

  it.each([{ limit: 0 }, { limit: 1.5 }, { state: 'ajar' as 'open' }])(
    'refuses %j',
    async (query) => {
      const { engine } = stage();
      await expect(engine.lanes(query)).rejects.toMatchObject({ code: 'INVALID_TASK' });
    },
  );
});

describe('counts of lanes', () => {
  it('are by state, and a few seconds old at most', async () => {
    const { clock, engine } = stage();
    const none = { closed: 0, open: 0, probing: 0, paused: 0, NO_HANDLER: 0, blocked: 0 };
    expect(await engine.laneCounts()).toEqual(none);
    await engine.pause('queue:a');
    await engine.submit('nobody', 1);
    expect(await engine.laneCounts()).toEqual(none);
    await clock.advance('5s');
    expect(await engine.laneCounts()).toEqual({ ...none, paused: 1, NO_HANDLER: 1 });
  });

  it('are made once for all who ask at the same time', async () => {
    const { engine, store } = stage();
    const { lanes } = store;
    let walks = 0;
    store.lanes = (query) => {
      walks += 1;
      return lanes.call(store, query);
    };
    await Promise.all([engine.laneCounts(), engine.laneCounts()]);
    expect(walks).toBe(1);
  });
});

describe('a lane in which tasks wait behind an item of the inbox', () => {
  it('says how many wait, and behind how many', async () => {
    const { clock, engine } = stage();
    engine.handle('a', (n: number) => {
      if (n === 0) throw new Error('the first of each fails');
    });
    await engine.start();
    for (const orderingKey of ['x', 'y']) {
      for (const n of [0, 1, 2]) await engine.submit('a', n, { orderingKey });
    }
    await engine.submit('a', 1);
    await clock.advance('1s');
    const blocked = { lane: 'handler:a', state: 'closed', blocked: 4, blockedBy: 2 };
    expect(await engine.lanes({ blocked: true })).toMatchObject([blocked]);
    expect(await engine.laneCounts()).toMatchObject({ closed: 1, blocked: 1 });
    const { items } = await engine.inbox.items({ state: 'open', limit: 10 });
    for (const { id } of items) await engine.inbox.resolve(id);
    await clock.advance('10s');
    const [lane] = await engine.lanes();
    expect(lane).not.toHaveProperty('blocked');
    expect(await engine.laneCounts()).toMatchObject({ blocked: 0 });
  });
});
