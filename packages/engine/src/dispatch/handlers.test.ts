import { type } from 'arktype';
import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { retryIn, giveUp, snooze } from '../model/outcomes.ts';
import type { HandlerContext } from './handlers.ts';
import type { Log } from '../host.ts';
import type { StandardSchema } from './standard-schema.ts';
import { createTestEngine } from '../testing/index.ts';

const schemas: [string, StandardSchema][] = [
  ['zod', z.object({ id: z.number(), name: z.string().default('nobody') })],
  ['valibot', v.object({ id: v.number(), name: v.optional(v.string(), 'nobody') })],
  ['arktype', type({ id: 'number', name: 'string = "nobody"' })],
  [
    'a schema of one that takes its time',
    z.object({ id: z.number().refine(async (id) => id > 0), name: z.string().default('nobody') }),
  ],
];

describe.each(schemas)('a schema of %s', (_, schema) => {
  it('checks a payload when it is submitted', async () => {
    const engine = createTestEngine().handle('orders', { schema }, () => undefined);
    await expect(engine.submit('orders', { id: 'x' })).rejects.toMatchObject({
      code: 'INVALID_PAYLOAD',
      faults: [{ path: 'payload.id', code: 'INVALID_PAYLOAD' }],
    });
    expect(await engine.submit('orders', { id: 7 })).toMatchObject({ status: 'accepted' });
  });

  it('gives the handler what it made of the payload', async () => {
    const seen: unknown[] = [];
    const engine = createTestEngine().handle('orders', { schema }, (order) => seen.push(order));
    await engine.submit('orders', { id: 7 });
    await engine.drain();
    expect(seen).toEqual([{ id: 7, name: 'nobody' }]);
  });

  it('keeps a payload from the handler that was submitted elsewhere, by other rules', async () => {
    const seen: unknown[] = [];
    const engine = createTestEngine();
    const { id } = await engine.submit('orders', { id: 'x' });
    engine.handle('orders', { schema }, (order) => seen.push(order));
    await engine.drain();
    expect(seen).toEqual([]);
    expect(await engine.get(id)).toMatchObject({ status: 'failed' });
    const [item] = await engine.inbox();
    expect(item).toMatchObject({
      reason: 'INVALID_PAYLOAD',
      payload: { id: 'x' },
      failure: { class: 'business', code: 'INVALID_PAYLOAD' },
    });
    expect(item?.failure.message).not.toBe('');
  });
});

describe('a payload', () => {
  it.each([[{ a: [1, 'ü', null] }], ['text'], [0], [null], [[]]])(
    'arrives as it was submitted: %j',
    async (payload) => {
      const seen: unknown[] = [];
      const engine = createTestEngine().handle('any', (one: unknown) => seen.push(one));
      await engine.submit('any', payload);
      await engine.drain();
      expect(seen).toEqual([payload]);
    },
  );

  it('that is nothing arrives as nothing', async () => {
    const seen: unknown[] = [];
    const engine = createTestEngine().handle('any', (one: unknown) => seen.push(one));
    await engine.submit('any', undefined);
    await engine.drain();
    expect(seen).toEqual([undefined]);
  });

  it('that is no JSON goes to the inbox', async () => {
    const engine = createTestEngine().handle('any', () => undefined);
    await engine.submit('any', new Uint8Array([0xff]));
    await engine.drain();
    expect(await engine.inbox()).toMatchObject([
      { reason: 'INVALID_PAYLOAD', failure: { message: 'The payload is not JSON.' } },
    ]);
  });
});

describe('a handler', () => {
  it('is told what it needs to know', async () => {
    const told: { attempt: number; maxAttempts: number; id: string; remainingMs: number }[] = [];
    const engine = createTestEngine().handle(
      'orders',
      { timeout: '7s', policy: { base: 1, jitter: 'none', maxAttempts: 3 } },
      (_: unknown, { attempt, maxAttempts, id, remainingMs, signal }: HandlerContext) => {
        expect(signal.aborted).toBe(false);
        told.push({ attempt, maxAttempts, id, remainingMs });
        if (attempt < 3) throw new Error('down');
      },
    );
    const { id } = await engine.submit('orders', 1);
    await engine.advance('1s');
    const all = { maxAttempts: 3, id, remainingMs: 7000 };
    expect(told).toEqual([
      { ...all, attempt: 1 },
      { ...all, attempt: 2 },
      { ...all, attempt: 3 },
    ]);
  });

  it('sees its time run', async () => {
    const left: number[] = [];
    const engine = createTestEngine({ patience: 1 });
    engine.handle('slow', { timeout: '5s' }, async (_: unknown, context: HandlerContext) => {
      await new Promise<void>((resolve) => {
        engine.clock.setTimer(resolve, 2000);
      });
      left.push(context.remainingMs);
      await new Promise<void>((resolve) => {
        context.signal.addEventListener('abort', () => resolve());
      });
      left.push(context.remainingMs);
    });
    await engine.submit('slow', 1);
    await engine.advance('5s');
    expect(left).toEqual([3000, 0]);
  });

  it('has a log that says which task it is about', async () => {
    const lines: unknown[] = [];
    const to = (level: string) => (fields: object, message: string) =>
      void lines.push([level, fields, message]);
    const log: Log = { debug: to('debug'), info: to('info'), warn: to('warn'), error: to('error') };
    const engine = createTestEngine({ log }).handle('orders', (_: unknown, context) => {
      for (const level of ['debug', 'info', 'warn', 'error'] as const) {
        context.log[level]({ n: 1 }, 'hello');
      }
    });
    const { id } = await engine.submit('orders', 1);
    await engine.drain();
    const fields = { id, lane: 'handler:orders', attempt: 1, n: 1 };
    expect(lines).toEqual(
      ['debug', 'info', 'warn', 'error'].map((level) => [level, fields, 'hello']),
    );
  });

  it('is done whatever it returns, unless that is a wish', async () => {
    const results: unknown[] = [undefined, false, 0, { type: 'giveUp' }, new Error('returned')];
    const engine = createTestEngine().handle('any', (n: number) => results[n]);
    for (const n of results.keys()) await engine.submit('any', n);
    await engine.drain();
    expect(await engine.list({ status: 'done', limit: 9 })).toHaveLength(results.length);
  });

  it('may wish for a retry after exactly some time, which counts', async () => {
    const at: number[] = [];
    const engine = createTestEngine({ policy: { maxAttempts: 3, base: '1d' } });
    engine.handle('orders', () => {
      at.push(engine.clock.now());
      return retryIn('5m');
    });
    const { id } = await engine.submit('orders', 1);
    await engine.advance('1h');
    expect(at.map((ms) => ms - at[0]!)).toEqual([0, 300_000, 600_000]);
    expect(await engine.get(id)).toMatchObject({ status: 'failed', attempt: 3 });
    expect(await engine.inbox()).toMatchObject([
      { reason: 'EXHAUSTED', failure: { code: 'RETRY_IN' } },
    ]);
  });

  it.each(['orders', 'idempotent'])('of %s may throw what it wishes', async (name) => {
    const wishes = [retryIn('5m'), snooze('1h'), giveUp('no such article')];
    const starts: number[] = [];
    const engine = createTestEngine();
    engine.handle(name, { idempotent: name === 'idempotent' }, () => {
      starts.push(engine.clock.monotonic());
      throw wishes[starts.length - 1] as unknown as Error;
    });
    await engine.submit(name, 1);
    await engine.advance('2h');
    expect(starts).toEqual([0, 300_000, 3_900_000]);
    expect(await engine.inbox()).toMatchObject([
      { reason: 'GAVE_UP', failure: { code: 'GAVE_UP', message: 'no such article' } },
    ]);
  });

  it('that throws a wish of a later version has failed', async () => {
    const later = { [Symbol.for('redrive.wish')]: true, type: 'moon' };
    const engine = createTestEngine({ policy: { maxAttempts: 1 } });
    engine.handle('orders', () => {
      throw later as unknown as Error;
    });
    await engine.submit('orders', 1);
    await engine.drain();
    expect(await engine.inbox()).toMatchObject([
      { failure: { message: expect.stringContaining('does not know') as string } },
    ]);
  });

  it('may snooze, which does not count, ten times in a row', async () => {
    let calls = 0;
    const engine = createTestEngine().handle('orders', (naps: number) => {
      calls += 1;
      return calls > naps ? undefined : snooze('1h');
    });
    const one = await engine.submit('orders', 10);
    await engine.advance('1d');
    expect(calls).toBe(11);
    expect(await engine.get(one.id)).toMatchObject({ status: 'done', attempt: 0 });
    calls = 0;
    await engine.submit('orders', 11);
    await engine.advance('1d');
    expect(calls).toBe(11);
    expect(await engine.inbox()).toMatchObject([{ reason: 'TOO_MANY_UNCOUNTED' }]);
  });

  it('may give up, with its reason', async () => {
    const engine = createTestEngine().handle('orders', () => giveUp('no such article'));
    await engine.submit('orders', 1);
    await engine.drain();
    expect(await engine.inbox()).toMatchObject([
      { reason: 'GAVE_UP', attempt: 1, failure: { message: 'no such article' } },
    ]);
  });

  it('that throws anything at all has failed, and is tried again', async () => {
    const thrown: unknown[] = [undefined, null, 'text', { odd: true }, new Error('x\0y')];
    const engine = createTestEngine().handle('any', (n: number, { attempt }: HandlerContext) => {
      if (attempt === 1) throw thrown[n];
    });
    for (const n of thrown.keys()) await engine.submit('any', n);
    await engine.drain();
    const waiting = await engine.list({ status: 'pending', limit: 9 });
    expect(waiting.map(({ attempt }) => attempt)).toEqual([1, 1, 1, 1, 1]);
    expect(waiting[0]?.failure?.message).toBe('x\uFFFDy');
    await engine.advance('1m');
    expect(await engine.list({ status: 'done', limit: 9 })).toHaveLength(thrown.length);
  });

  it('whose schema throws has failed as by any other error', async () => {
    let calls = 0;
    const schema: StandardSchema = {
      '~standard': {
        version: 1,
        vendor: 'made up',
        validate(value) {
          calls += 1;
          if (calls < 3) throw new Error('the list of countries is away');
          return { value };
        },
      },
    };
    const engine = createTestEngine();
    const { id } = await engine.submit('orders', 1);
    engine.handle('orders', { schema }, () => undefined);
    await engine.advance('1h');
    expect(await engine.get(id)).toMatchObject({ status: 'done', attempt: 2 });
  });
});

describe('registering a handler', () => {
  it.each<[string, unknown[], string]>([
    [
      'no function',
      ['a', { schema: undefined }],
      "The handler 'a' is not a function. Options come before the function: handle(name, options, fn).",
    ],
    [
      'nothing but a name',
      ['a'],
      "The handler 'a' is not a function. Options come before the function: handle(name, options, fn).",
    ],
    ['one of the same name', ['taken', () => 1], "There is a handler 'taken' already."],
  ])('refuses %s', (_, args, message) => {
    const engine = createTestEngine().handle('taken', () => undefined);
    const handle = engine.handle.bind(engine) as (...args: unknown[]) => unknown;
    expect(() => handle(...args)).toThrow(
      expect.objectContaining({ code: 'INVALID_ENGINE', message }),
    );
  });

  it.each<[object, string]>([
    [{ concurrency: 0 }, 'INVALID_CONFIG'],
    [{ timeout: 'long' }, 'INVALID_CONFIG'],
    [{ concurency: 5 }, 'INVALID_CONFIG'],
    [{ policy: { maxAttempts: 0 } }, 'INVALID_POLICY'],
  ])('refuses the options %j at once', (options, code) => {
    const engine = createTestEngine();
    expect(() => engine.handle('a', options, () => 1)).toThrow(expect.objectContaining({ code }));
    // And leaves nothing behind.
    engine.handle('a', () => undefined);
  });
});
