import { type } from 'arktype';
import type pg from 'pg';
import * as v from 'valibot';
import { describe, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import { memory } from './adapters/memory/index.ts';
import { createEngine, type Engine, type Rejected } from './engine.ts';
import type { HandlerContext } from './dispatch/handlers.ts';
import type { TransactionClient } from './ports/schedule.ts';
import type { InputOf, OutputOf } from './dispatch/standard-schema.ts';
import type { Submission } from './intake/submission.ts';
import type { Submitted } from './intake/submitter.ts';
import { createTestEngine } from './testing/index.ts';

const schemas = {
  zod: z.object({ id: z.coerce.number<string>() }),
  valibot: v.object({ id: v.pipe(v.string(), v.transform(Number)) }),
  arktype: type({ id: 'string.numeric.parse' }),
};

interface Order {
  id: number;
}

/** Not run: the compiler checks it. */
function expectToCompile(call: () => unknown): void {
  expectTypeOf(call).toBeFunction();
}

describe('the payload of a handler', () => {
  it('is inferred from any Standard Schema, before and after it', () => {
    expectTypeOf<InputOf<typeof schemas.zod>>().toEqualTypeOf<{ id: string }>();
    expectTypeOf<OutputOf<typeof schemas.zod>>().toEqualTypeOf<{ id: number }>();
    expectTypeOf<InputOf<typeof schemas.valibot>>().toEqualTypeOf<{ id: string }>();
    expectTypeOf<OutputOf<typeof schemas.valibot>>().toEqualTypeOf<{ id: number }>();
    expectTypeOf<InputOf<typeof schemas.arktype>>().toEqualTypeOf<{ id: string }>();
    expectTypeOf<OutputOf<typeof schemas.arktype>>().toEqualTypeOf<{ id: number }>();
  });

  it('reaches the handler as the schema gives it, and submit as the schema takes it', () => {
    const engine = createEngine<object>({ store: memory() })
      .handle('zod', { schema: schemas.zod }, (order, context) => {
        expectTypeOf(order).toEqualTypeOf<{ id: number }>();
        expectTypeOf(context).toEqualTypeOf<HandlerContext>();
      })
      .handle('valibot', { schema: schemas.valibot, concurrency: 2 }, async (order) => {
        expectTypeOf(order).toEqualTypeOf<{ id: number }>();
      })
      .handle('arktype', { schema: schemas.arktype }, ({ id }) => {
        expectTypeOf(id).toEqualTypeOf<number>();
      })
      .handle('plain', { timeout: '5s' }, (order: Order) => order.id)
      .handle('bare', (name: string) => name);
    expectToCompile(() => engine.submit('zod', { id: '7' }));
    expectToCompile(() =>
      engine.submit('valibot', { id: '7' }, { dedupeKey: 'a', policy: 'quick' }),
    );
    expectToCompile(() => engine.submit('arktype', { id: '7' }));
    expectToCompile(() => engine.submit('plain', { id: 7 }, { dueAt: new Date() }));
    expectToCompile(() => engine.submit('bare', 'name'));
    expectToCompile(() => {
      // @ts-expect-error the schema takes a text
      void engine.submit('zod', { id: 7 });
      // @ts-expect-error the id is missing
      void engine.submit('valibot', {});
      // @ts-expect-error the id is a number
      void engine.submit('plain', { id: '7' });
      // @ts-expect-error there is no such handler
      void engine.submit('plian', { id: 7 });
      // @ts-expect-error there is no such option
      void engine.submit('bare', 'name', { dueDate: 7 });
    });
  });

  it('is checked for each of many', () => {
    const engine = createEngine<object>({ store: memory() })
      .handle('orders', (order: Order) => order.id)
      .handle('names', (name: string) => name);
    const submitted = () =>
      engine.submitMany([
        { to: 'orders', payload: { id: 7 } },
        { to: 'names', payload: 'a', dedupeKey: 'a' },
        { to: 'https://example.com/hook', payload: { anything: true } },
        { to: { kind: 'queue', address: 'orders' }, payload: new Uint8Array() },
      ]);
    expectTypeOf(submitted).returns.resolves.toEqualTypeOf<(Submitted | Rejected)[]>();
    expectToCompile(() =>
      engine.submitMany([7, 8].map((id) => ({ to: 'orders', payload: { id } }))),
    );
    expectToCompile(() => {
      // @ts-expect-error the id is a number
      void engine.submitMany([{ to: 'orders', payload: { id: 'x' } }]);
      // @ts-expect-error there is no such handler
      void engine.submitMany([{ to: 'order', payload: { id: 7 } }]);
      void engine.submitMany([
        { to: 'names', payload: 'a' },
        // @ts-expect-error an order is no text
        { to: 'orders', payload: 'a' },
      ]);
      // @ts-expect-error a task has a payload
      void engine.submitMany([{ to: 'names' }]);
      // @ts-expect-error there is no such option
      void engine.submitMany([{ to: 'names', payload: 'a', dueDate: 7 }]);
    });
  });
});

describe('an engine', () => {
  it('submits anything to a URL or a queue', () => {
    const engine = createEngine<object>({ store: memory() });
    expectToCompile(() =>
      engine.submit('https://example.com', { a: 1 }, { context: { method: 'PUT' } }),
    );
    expectToCompile(() => engine.submit({ kind: 'queue', address: 'orders' }, new Uint8Array()));
    expectToCompile(() => {
      // @ts-expect-error neither a URL nor a handler
      void engine.submit('ftp://example.com', { a: 1 });
    });
  });

  it('knows the handlers of another process where it is told of them', () => {
    const engine = createEngine<{ orders: Order }>({ store: memory() });
    expectToCompile(() => engine.submit('orders', { id: 7 }));
    // @ts-expect-error the id is a number
    expectToCompile(() => engine.submit('orders', { id: '7' }));
    // @ts-expect-error there is no such handler
    expectToCompile(() => engine.submit('mails', 'a'));
  });

  it('gives a handler the payload that it was told of', () => {
    const schema = z.object({ id: z.number() });
    const told = createEngine<{ orders: Order; names: string }>({ store: memory() });
    const test = createTestEngine<{ orders: Order; names: string }>();
    expectToCompile(() => {
      told.handle('orders', (order) => expectTypeOf(order).toEqualTypeOf<Order>());
      told.handle('orders', { timeout: '5s' }, async (order, { attempt }) => {
        expectTypeOf(order).toEqualTypeOf<Order>();
        expectTypeOf(attempt).toEqualTypeOf<number>();
      });
      told.handle('orders', (order: { id?: number }) => order.id);
      told.handle('orders', { schema }, ({ id }) => id);
      told.handle('others', (other) => expectTypeOf(other).toEqualTypeOf<unknown>());
      told.handle('others', (other: number) => other);
      test.handle('orders', (order) => expectTypeOf(order).toEqualTypeOf<Order>());
      const after = told.handle('orders', (order) => order.id);
      return after.submit('orders', { id: 7 });
    });
    expectToCompile(() => {
      // @ts-expect-error an order is no text
      told.handle('orders', (order: string) => order);
      // @ts-expect-error an order is no text
      told.handle('orders', { timeout: '5s' }, (order: string) => order);
      // @ts-expect-error the schema takes no text
      told.handle('names', { schema }, ({ id }) => id);
      // @ts-expect-error an order is no text
      test.handle('orders', (order: string) => order);
    });
  });

  it('that is told of nothing takes any name', () => {
    const engine = createEngine({ store: memory() });
    expectTypeOf(engine).toEqualTypeOf<Engine>();
    expectToCompile(() => engine.submit('anything', { a: 1 }));
    const list: Submission[] = [];
    expectToCompile(() => engine.submitMany(list));
  });

  it('that is told of nothing still knows its own handlers', () => {
    const engine = createEngine({ store: memory() }).handle('orders', (order: Order) => order.id);
    // @ts-expect-error an order is no text
    expectToCompile(() => engine.submit('orders', 'a'));
    // @ts-expect-error an order is no text
    expectToCompile(() => engine.submitMany([{ to: 'orders', payload: 'a' }]));
    expectToCompile(() => engine.submitMany([{ to: 'others', payload: 'a' }]));
  });

  it('has a store, and options that exist', () => {
    // @ts-expect-error there must be a store
    expectToCompile(() => createEngine({}));
    // @ts-expect-error there is no such option
    expectToCompile(() => createEngine({ store: memory(), leese: '1s' }));
    // @ts-expect-error a schema is not a type
    expectToCompile(() => createEngine({ store: memory() }).handle('a', { schema: 'x' }, () => 1));
  });
});

describe('the transaction of a caller', () => {
  it('is a client of pg, by itself or of a pool, and never a pool', () => {
    expectTypeOf<pg.Client>().toExtend<TransactionClient>();
    expectTypeOf<pg.PoolClient>().toExtend<TransactionClient>();
    expectTypeOf<pg.ClientBase>().toExtend<TransactionClient>();
    expectTypeOf<pg.Pool>().not.toExtend<TransactionClient>();
    expectTypeOf<object>().not.toExtend<TransactionClient>();
    type Options = NonNullable<Parameters<Engine['submit']>[2]>;
    expectTypeOf<{ tx: pg.PoolClient | undefined }>().toExtend<Options>();
    expectTypeOf<{ tx: pg.Pool }>().not.toExtend<Options>();
    type ManyOptions = NonNullable<Parameters<Engine['submitMany']>[1]>;
    expectTypeOf<{ tx: pg.Pool }>().not.toExtend<ManyOptions>();
  });
});
