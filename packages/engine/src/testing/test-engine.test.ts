import { AssertionError } from 'node:assert';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import type { Engine } from '../engine.ts';
import { giveUp, snooze } from '../model/outcomes.ts';
import { createTestEngine } from './test-engine.ts';

interface Order {
  id: number;
  lines?: { sku: string; count: number }[];
}

const hourly = { policy: { strategy: 'fixed', base: '1h', jitter: 'none' } } as const;

describe('time', () => {
  it('shows work that fails twice and works in the end, without a sleep', async () => {
    let calls = 0;
    const engine = createTestEngine().handle('orders', hourly, () => {
      if (++calls < 3) throw new Error('still down');
    });
    const { id } = await engine.submit('orders', { id: 1 });
    await engine.drain();
    expect(calls).toBe(1);
    await engine.advance('1h');
    expect(calls).toBe(2);
    await engine.advance('1h');
    expect(calls).toBe(3);
    expect(await engine.get(id)).toMatchObject({ status: 'done', attempt: 2 });
  });

  it('stands still while what is due is drained', async () => {
    const engine = createTestEngine().handle('orders', () => undefined);
    const before = engine.clock.now();
    await engine.submit('orders', { id: 1 });
    await engine.drain();
    expect(engine.clock.now()).toBe(before);
  });

  it('moves by exactly what was said, and runs things at the moment they fall due', async () => {
    const at: number[] = [];
    const engine = createTestEngine({ startAt: new Date('2030-05-01T00:00:00Z') });
    engine.handle('orders', () => at.push(engine.clock.now()));
    const startMs = Date.UTC(2030, 4, 1);
    for (const inMs of [90_000, 30_000, 60_000]) {
      await engine.submit('orders', { id: inMs }, { dueAt: startMs + inMs });
    }
    await engine.advance('60s');
    expect(at).toEqual([startMs + 30_000, startMs + 60_000]);
    await engine.advance('1d');
    expect(at).toEqual([startMs + 30_000, startMs + 60_000, startMs + 90_000]);
    expect(engine.clock.now()).toBe(startMs + 60_000 + 86_400_000);
  });

  it('refuses to move by what is no duration', async () => {
    const engine = createTestEngine();
    await expect(engine.advance('soon' as never)).rejects.toMatchObject({
      code: 'INVALID_DURATION',
    });
  });

  it('runs a whole chain of work that submits more work', async () => {
    const seen: string[] = [];
    const engine = createTestEngine<{ first: number; second: number }>()
      .handle('first', async (n: number) => {
        seen.push(`first ${n}`);
        await engine.submit('second', n + 1);
      })
      .handle('second', async (n: number) => {
        seen.push(`second ${n}`);
        if (n < 5) await engine.submit('first', n + 1);
      });
    await engine.submit('first', 1);
    await engine.drain();
    expect(seen).toEqual(['first 1', 'second 2', 'first 3', 'second 4', 'first 5', 'second 6']);
  });

  it('is not wasted on work that submits itself without end', async () => {
    const engine = createTestEngine<{ endless: number }>();
    engine.handle('endless', async (n: number) => {
      await engine.submit('endless', n + 1);
    });
    await engine.submit('endless', 1);
    await expect(engine.drain()).rejects.toThrow('is something submitting itself?');
  });

  it('waits for a handler that takes real time', async () => {
    let isDone = false;
    const engine = createTestEngine().handle('slow', async () => {
      await sleep(20);
      isDone = true;
    });
    await engine.submit('slow', 1);
    await engine.drain();
    expect(isDone).toBe(true);
  });

  it('passes a handler that hangs, which then runs out of time', async () => {
    const engine = createTestEngine({ patience: 5 }).handle(
      'hangs',
      { timeout: '2s' },
      (_: unknown, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error));
        }),
    );
    const { id } = await engine.submit('hangs', 1);
    await expect(engine.drain()).rejects.toThrow(`Still running: ${id} (handler:hangs)`);
    await engine.advance('2s');
    expect(await engine.get(id)).toMatchObject({ attempt: 1, failure: { code: 'TIMEOUT' } });
  });

  it('moves as far as a stop needs, also past a handler that never ends', async () => {
    const engine = createTestEngine({ patience: 5 }).handle('deaf', () => new Promise(() => {}));
    await engine.submit('deaf', 1);
    const before = engine.clock.now();
    await engine.advance(0);
    await engine.stop();
    expect(engine.clock.now() - before).toBe(11_000);
    await expect(engine.advance('1s')).rejects.toMatchObject({ code: 'ENGINE_STOPPED' });
  });

  it('gives the same course every time', async () => {
    const course = async () => {
      const times: number[] = [];
      const engine = createTestEngine().handle('flaky', () => {
        times.push(engine.clock.now());
        throw new Error('down');
      });
      const { id } = await engine.submit('flaky', 1);
      await engine.advance('1h');
      return { id, times };
    };
    expect(await course()).toEqual(await course());
  });
});

describe('what was submitted', () => {
  it('is kept in order, with its options, and without duplicates', async () => {
    const engine = createTestEngine<{ orders: Order; mails: string }>();
    await engine.submit('orders', { id: 1 }, { dedupeKey: 'a' });
    await engine.submit('orders', { id: 1 }, { dedupeKey: 'a' });
    await engine.submitMany([
      { to: 'mails', payload: 'hello' },
      { to: '' as 'mails', payload: 'nowhere' },
      { to: 'https://example.com/hook', payload: { n: 1 } },
    ]);
    expect(engine.submitted().map(({ to, payload }) => ({ to, payload }))).toEqual([
      { to: 'orders', payload: { id: 1 } },
      { to: 'mails', payload: 'hello' },
      { to: 'https://example.com/hook', payload: { n: 1 } },
    ]);
    expect(engine.submitted('orders')).toMatchObject([{ options: { dedupeKey: 'a' } }]);
    expect(engine.submitted('https://EXAMPLE.com/hook')).toHaveLength(1);
    expect(engine.submitted({ kind: 'queue', address: 'orders' })).toEqual([]);
  });

  it('is found by parts of its payload, or by a test of it', async () => {
    const engine = createTestEngine<{ orders: Order }>();
    await engine.submit('orders', { id: 1, lines: [{ sku: 'a', count: 2 }] });
    const { id } = await engine.submit('orders', { id: 2, lines: [{ sku: 'b', count: 3 }] });
    expect(engine.expectSubmitted('orders').id).toBe(id);
    expect(engine.expectSubmitted('orders', { lines: [{ sku: 'b' }] }).payload.id).toBe(2);
    expect(engine.expectSubmitted('orders', (order) => order.id < 2).payload.id).toBe(1);
    engine.expectNotSubmitted('orders', { id: 3 });
    engine.expectNotSubmitted('orders', { lines: [] });
    engine.expectNotSubmitted('orders', { lines: [{ sku: 'a', count: 3 }] });
  });

  it('is named in full where the expected is missing', async () => {
    const engine = createTestEngine<{ orders: Order; mails: string; none: null }>();
    const missing = () => engine.expectSubmitted('orders', { id: 2 });
    expect(missing).toThrow(
      "Nothing such was submitted to 'orders' with { id: 2 }.\nNothing was submitted at all.",
    );
    await engine.submit('mails', 'hello');
    expect(missing).toThrow("It got nothing; there were submissions to 'mails'.");
    for (let n = 10; n < 22; n++) await engine.submit('orders', { id: n });
    expect(missing).toThrow('It got:\n  { id: 10 }\n  { id: 11 }');
    expect(missing).toThrow('and 2 more');
    expect(missing).toThrow(AssertionError);
    expect(() => engine.expectSubmitted('orders', () => false)).toThrow('what was looked for');
    await engine.submit('none', null);
    expect(() => engine.expectSubmitted('none', (payload) => payload !== null)).toThrow(
      'It got:\n  null',
    );
  });

  it('is named in full where there should be nothing', async () => {
    const engine = createTestEngine<{ orders: Order }>();
    engine.expectNotSubmitted('orders');
    await engine.submit('orders', { id: 7 });
    await engine.submit({ kind: 'queue', address: 'q' }, new Uint8Array(3));
    const present = () => engine.expectNotSubmitted('orders', { id: 7 });
    expect(present).toThrow("1 such were submitted to 'orders' with { id: 7 }:\n  { id: 7 }");
    expect(present).toThrow(AssertionError);
    expect(() => engine.expectNotSubmitted({ kind: 'queue', address: 'q' })).toThrow("queue 'q'");
  });
});

describe('the inbox', () => {
  it('shows open items, oldest first, with their payloads', async () => {
    const engine = createTestEngine()
      .handle('orders', ({ id }: Order) => giveUp(`no article ${id}`))
      .handle('mails', (text: string) => giveUp(`nobody to tell ${text}`));
    await engine.submit('orders', { id: 1 });
    await engine.drain();
    await engine.submit('mails', 'hello');
    await engine.drain();
    await engine.submit('orders', { id: 2 });
    await engine.drain();
    const all = await engine.inbox();
    expect(all.map(({ payload, reason }) => ({ payload, reason }))).toEqual([
      { payload: { id: 1 }, reason: 'GAVE_UP' },
      { payload: 'hello', reason: 'GAVE_UP' },
      { payload: { id: 2 }, reason: 'GAVE_UP' },
    ]);
    expect((await engine.inbox('mails')).map(({ payload }) => payload)).toEqual(['hello']);
    const [{ id, taskId } = { id: 0 }] = await engine.inbox('mails');
    expect(await engine.inbox.item(id)).toMatchObject({ id, reason: 'GAVE_UP' });
    expect((await engine.inbox.items({ limit: 10 })).items).toHaveLength(3);
    expect(await engine.inbox.attempts(taskId!)).toMatchObject([{ attempt: 1 }]);
  });

  it('gives bytes that are no JSON as they are', async () => {
    const engine = createTestEngine().handle('orders', () => undefined);
    await engine.submit('orders', new Uint8Array([1, 2]));
    await engine.drain();
    expect(await engine.inbox()).toMatchObject([
      { reason: 'INVALID_PAYLOAD', payload: new Uint8Array([1, 2]) },
    ]);
  });
});

describe('everything else', () => {
  it('is as in any engine', async () => {
    const types: string[] = [];
    const engine = createTestEngine({ on: ({ type }) => types.push(type) });
    expectTypeOf(engine).toExtend<Engine>();
    const later = { dueAt: engine.clock.now() + 60_000 };
    const one = await engine.submit('orders', { id: 1 }, later);
    const two = await engine.submit('orders', { id: 2 }, later);
    expect(await engine.lanes()).toMatchObject([{ lane: 'handler:orders', state: 'NO_HANDLER' }]);
    engine.handle('orders', () => undefined);
    await engine.start();
    await engine.pause('handler:orders', 'me');
    expect(await engine.lanes()).toMatchObject([{ lane: 'handler:orders', state: 'paused' }]);
    await engine.resume('handler:orders');
    expect(await engine.cancel(one.id)).toBe('cancelled');
    expect(await engine.expedite(two.id)).toBe('expedited');
    await engine.drain();
    expect(await engine.list({ status: 'done', limit: 9 })).toMatchObject([{ messageId: two.id }]);
    expect(engine.stats()).toMatchObject({ running: 0, held: 0, unsettled: 0 });
    expect(types).toEqual(['accepted', 'accepted', 'started', 'done']);
  });

  it('keeps the types of handlers along the chain', async () => {
    const engine = createTestEngine<object>()
      .handle('orders', { schema: z.object({ id: z.coerce.number() }) }, ({ id }) => {
        expectTypeOf(id).toEqualTypeOf<number>();
      })
      .handle('naps', hourly, (name: string) => snooze(name.length));
    await engine.submit('orders', { id: '7' });
    // @ts-expect-error there is no such handler
    await engine.submit('order', { id: '7' });
    // @ts-expect-error a nap has a name
    await engine.submit('naps', 7);
    expectTypeOf(engine.submitted('naps')[0]!.payload).toEqualTypeOf<string>();
    // @ts-expect-error a nap is a text
    engine.expectNotSubmitted('naps', { id: 1 });
    expect(engine.expectSubmitted('naps').payload).toBe(7);
  });
});
