import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { virtualClock } from 'redrive/testing';
import { memory } from './adapters/memory/index.ts';
import { sqlite } from './adapters/sqlite/index.ts';
import { createEngine, type Rejected } from './engine.ts';
import { EngineError } from './errors.ts';
import { createTestEngine } from './testing/index.ts';
import type { Delivery } from './ports/delivery.ts';

const order = z.object({
  id: z.number(),
  lines: z.array(z.object({ sku: z.string() })).optional(),
});

const nothing = () => undefined;
const silent = { debug: nothing, info: nothing, warn: nothing, error: nothing };

function checkedEngine() {
  const delivery: Delivery = {
    kind: 'http',
    deliver: () => Promise.resolve({ type: 'done' }),
    check: (_, context) =>
      context?.secret === 'unknown'
        ? [{ path: 'context.secret', code: 'INVALID_TASK', message: 'No such secret.' }]
        : [],
  };
  return createTestEngine<object>({
    deliveries: [delivery],
    policies: { patient: { maxAttempts: 20 } },
    maxPayloadBytes: 1000,
  })
    .handle('orders', { schema: order }, () => undefined)
    .handle('any', (_payload: unknown) => undefined);
}

/** Every way to be wrong, as untyped callers find them. */
const bad: [string, object, string, string][] = [
  ['no destination', { payload: 1 }, 'NO_DESTINATION', 'to'],
  ['an empty name', { to: '', payload: 1 }, 'NO_DESTINATION', 'to'],
  ['a URL that is none', { to: 'http://', payload: 1 }, 'NO_DESTINATION', 'to'],
  ['too large a payload', { to: 'any', payload: 'x'.repeat(1000) }, 'PAYLOAD_TOO_LARGE', 'payload'],
  ['a payload that is no JSON', { to: 'any', payload: 7n }, 'INVALID_PAYLOAD', 'payload'],
  ['a policy nobody knows', { to: 'any', policy: 'pateint' }, 'UNKNOWN_POLICY', 'policy'],
  [
    'a policy with faults',
    { to: 'any', policy: { maxAttempts: 0 } },
    'INVALID_POLICY',
    'policy.maxAttempts',
  ],
  ['an option that is misspelt', { to: 'any', dedupekey: 'a' }, 'INVALID_TASK', 'dedupekey'],
  ['a delay that is none', { to: 'any', delay: 'soon' }, 'INVALID_TASK', 'delay'],
  ['a delay that is too long', { to: 'any', delay: '4000d' }, 'INVALID_TASK', 'delay'],
  ['a delay and a time', { to: 'any', delay: '1h', dueAt: 7 }, 'INVALID_TASK', 'delay'],
  ['too few attempts', { to: 'any', maxAttempts: 0 }, 'INVALID_TASK', 'maxAttempts'],
  ['an ordering key that is none', { to: 'any', orderingKey: '' }, 'INVALID_TASK', 'orderingKey'],
  ['a rule that is none', { to: 'any', onConflict: 'ignore' }, 'INVALID_TASK', 'onConflict'],
  ['an end that is none', { to: 'any', onDead: 'skip' }, 'INVALID_TASK', 'onDead'],
  ['an id that is none', { to: 'any', id: 'order-7' }, 'INVALID_ID', 'id'],
  ['a key that is none', { to: 'any', dedupeKey: '' }, 'INVALID_TASK', 'dedupeKey'],
  ['a time that is none', { to: 'any', dueAt: 'tomorrow' }, 'INVALID_TASK', 'dueAt'],
  ['an expiry that is none', { to: 'any', expiresAt: NaN }, 'INVALID_TASK', 'expiresAt'],
  ['a context that is none', { to: 'any', context: 'x' }, 'INVALID_TASK', 'context'],
  [
    'what its handler does not take',
    { to: 'orders', payload: { id: 7, lines: [{ sku: 'a' }, { sku: 7 }] } },
    'INVALID_PAYLOAD',
    'payload.lines.1.sku',
  ],
  [
    'what its delivery does not take',
    { to: 'https://example.com/', payload: 1, context: { secret: 'unknown' } },
    'INVALID_TASK',
    'context.secret',
  ],
  ['nothing at all', null as never, 'NO_DESTINATION', 'to'],
];

describe('a task that cannot be accepted', () => {
  it.each(bad)(
    'for %s is rejected by itself while the rest goes in',
    async (_, one, code, path) => {
      const engine = checkedEngine();
      const good = { to: 'any' as const, payload: 1 };
      const results = await engine.submitMany([good, one as typeof good, good]);
      expect(results).toMatchObject([
        { status: 'accepted' },
        { status: 'rejected', code, path },
        { status: 'accepted' },
      ]);
      expect(await engine.list({ limit: 10 })).toHaveLength(2);
    },
  );

  it.each(bad.filter(([, one]) => one !== null))('for %s is refused', async (_, one, code) => {
    const engine = checkedEngine();
    const { to, payload, ...options } = one as { to: 'any'; payload: unknown };
    const error: unknown = await engine.submit(to, payload, options).catch((e: unknown) => e);
    expect(error).toMatchObject({ name: 'EngineError', code });
    expect(await engine.list({ limit: 10 })).toEqual([]);
  });

  it('for two things names both, whatever they are', async () => {
    const engine = checkedEngine();
    const fields = (one: object) => Object.keys(Object(one) as object).filter((n) => n !== 'to');
    const known: string[] = [];
    for (const [i, [, one, , path]] of bad.entries()) {
      for (const [, other, , otherPath] of bad.slice(i + 1)) {
        const [to, otherTo] = [one, other].map((each) => (Object(each) as { to?: string }).to);
        // Of two destinations, payloads or times there is only one.
        const isOne = to === undefined || otherTo === undefined || ![to, otherTo].includes('any');
        const mixed = [...fields(one), ...fields(other)];
        const clash = [
          ['delay', 'dueAt'],
          ['id', 'dedupeKey'],
        ].some((pair) => pair.every((name) => mixed.includes(name)));
        if (isOne || clash || new Set(mixed).size < mixed.length) continue;
        const both = { ...one, ...other, to: to === 'any' ? otherTo : to };
        const [{ faults }] = (await engine.submitMany([both as never])) as [Rejected];
        expect(faults.map((fault) => fault.path).sort()).toEqual([path, otherPath].sort());
        known.push(`${path} ${otherPath}`);
      }
    }
    expect(known.length).toBeGreaterThan(100);
  });

  it('has one error for all its faults, whose code is that of the first', async () => {
    const engine = checkedEngine();
    const policy = { base: 'soon', retries: 3 } as object;
    const options = { policy, dueat: 7, expiresAt: Number.NaN } as object;
    const error = await engine.submit('any', 7n, options).catch((e: unknown) => e);
    expect(error).toMatchObject({
      name: 'EngineError',
      code: 'INVALID_TASK',
      faults: [
        { path: 'dueat', code: 'INVALID_TASK', message: expect.stringContaining("'dueAt'?") },
        { path: 'policy.base', code: 'INVALID_DURATION' },
        { path: 'policy.retries', code: 'UNKNOWN_FIELD' },
        { path: 'payload', code: 'INVALID_PAYLOAD' },
        { path: 'expiresAt', code: 'INVALID_TASK' },
      ],
      message: expect.stringMatching(/^The task has 5 faults:\n {2}dueat: There is no option/),
    });
    const rejected = await engine.submitMany([{ ...options, to: 'any', payload: 7n }]);
    expect(rejected).toEqual([
      {
        status: 'rejected',
        code: 'INVALID_TASK',
        path: 'dueat',
        message: "There is no option 'dueat'. Did you mean 'dueAt'?",
        faults: (error as EngineError).faults,
      },
    ]);
  });

  it.each([
    ['dedupekey', 'dedupeKey'],
    ['jobId', 'dedupeKey'],
    ['retries', 'maxAttempts'],
    ['runAt', 'dueAt'],
    ['delayMs', 'delay'],
    ['orderkey', undefined],
    ['headers', 'context'],
    ['onConflcit', 'onConflict'],
    ['zzz', undefined],
  ])('for the option %s says what may be meant', async (name, near) => {
    const error = await checkedEngine()
      .submit('any', 1, { [name]: 'a' })
      .catch((e: unknown) => e as Error);
    const { message } = error as Error;
    const [, hint] = /^There is no option '\w+'\.(?: Did you mean '(\w+)'\?.*)?$/.exec(message)!;
    expect(message).toContain(`'${name}'`);
    expect(hint).toBe(near);
  });

  it('for options that are none, or that submitMany does not have, is refused', async () => {
    const engine = checkedEngine();
    for (const options of [null, 'a', 7]) {
      await expect(engine.submit('any', 1, options as never)).rejects.toMatchObject({
        code: 'INVALID_TASK',
      });
    }
    const misspelt = { transaction: {} } as object;
    await expect(engine.submitMany([], misspelt)).rejects.toThrow(
      "There is no option 'transaction'.",
    );
    await expect(engine.submitMany([], null as never)).rejects.toMatchObject({
      code: 'INVALID_TASK',
    });
    expect(await engine.list({ limit: 10 })).toEqual([]);
  });

  it('names all that its schema found', async () => {
    const engine = checkedEngine();
    const payload = { id: 'x', lines: 7 } as never;
    await expect(engine.submit('orders', payload)).rejects.toMatchObject({
      name: 'EngineError',
      code: 'INVALID_PAYLOAD',
      faults: [{ path: 'payload.id' }, { path: 'payload.lines' }],
      message: expect.stringContaining('The payload is not what its handler takes:\n  payload.id'),
    });
  });

  it('is rejected by itself also where its schema throws', async () => {
    const engine = createTestEngine<object>().handle(
      'odd',
      {
        schema: z.string().refine((text) => {
          if (text === 'throw') throw new RangeError('out of the schema');
          return true;
        }),
      },
      () => undefined,
    );
    expect(
      await engine.submitMany([
        { to: 'odd', payload: 'throw' },
        { to: 'odd', payload: 'fine' },
      ]),
    ).toMatchObject([
      { status: 'rejected', code: 'INVALID_PAYLOAD', path: 'payload' },
      { status: 'accepted' },
    ]);
    await expect(engine.submit('odd', 'throw')).rejects.toMatchObject({ code: 'INVALID_PAYLOAD' });
  });
});

describe('submitted work', () => {
  it('is the same task again by its key, its id, and its destination', async () => {
    const engine = createTestEngine();
    const one = await engine.submit('orders', 1, { dedupeKey: 'a' });
    expect(one.status).toBe('accepted');
    expect(await engine.submit('orders', 1, { dedupeKey: 'a' })).toEqual({
      id: one.id,
      status: 'duplicate',
    });
    expect(await engine.submit('orders', 2, { id: one.id.toUpperCase() })).toEqual({
      id: one.id,
      status: 'duplicate',
    });
    expect(await engine.submit('mails', 2, { id: one.id })).toMatchObject({ status: 'accepted' });
    expect(
      await engine.submitMany([
        { to: 'orders', payload: 3, dedupeKey: 'b' },
        { to: 'orders', payload: 3, dedupeKey: 'b' },
      ]),
    ).toMatchObject([{ status: 'accepted' }, { status: 'duplicate' }]);
    expect(await engine.list({ limit: 10 })).toHaveLength(3);
  });

  it.each(['memory', 'sqlite'] as const)(
    'is refused for a known key with another payload, or left out where that is wanted, on %s',
    async (kind) => {
      const folder = mkdtempSync(join(tmpdir(), 'redrive-submit-'));
      onTestFinished(() => rmSync(folder, { recursive: true }));
      const store = kind === 'memory' ? memory() : sqlite(join(folder, 'tasks.db'));
      const engine = createEngine({ store, log: silent });
      const code = 'IDEMPOTENCY_MISMATCH';
      const known = await engine.submit('orders', { a: 1 }, { dedupeKey: 'a' });
      const again = (options: object, payload: unknown = { a: 2 }) =>
        engine.submit('orders', payload, options).catch((error: unknown) => error);
      expect(await again({ dedupeKey: 'a' })).toMatchObject({
        name: 'EngineError',
        code,
        faults: [{ path: 'payload', code }],
        message: expect.stringContaining(known.id),
      });
      const left = { id: known.id, status: 'duplicate' };
      expect(await again({ dedupeKey: 'a', onConflict: 'duplicate' })).toEqual(left);
      expect(await again({ dedupeKey: 'a', onConflict: 'reject' })).toMatchObject({ code });
      expect(await again({ dedupeKey: 'a' }, { a: 1 })).toEqual(left);
      expect(await again({ dedupeKey: 'a' }, Buffer.from('{"a":1}'))).toEqual(left);
      // An id of one's own says which message it is.
      expect(await again({ id: known.id })).toEqual(left);
      expect(await again({ id: known.id, onConflict: 'reject' })).toMatchObject({ code });
      const many = [
        { to: 'orders', payload: { a: 2 }, dedupeKey: 'a' },
        { to: 'orders', payload: 1, dedupeKey: 'b' },
        { to: 'orders', payload: 2, dedupeKey: 'b' },
        { to: 'orders', payload: 3, dedupeKey: 'b', onConflict: 'duplicate' },
      ] as const;
      expect(await engine.submitMany(many)).toMatchObject([
        { status: 'rejected', code, path: 'payload' },
        { status: 'accepted' },
        { status: 'rejected', code, path: 'payload' },
        { status: 'duplicate' },
      ]);
      const stored = await engine.list({ limit: 10 });
      expect(stored.map(({ payload }) => Buffer.from(payload).toString())).toEqual([
        '1',
        '{"a":1}',
      ]);
      await engine.stop();
    },
  );

  it('is not compared with what an operator has changed or erased', async () => {
    const engine = createTestEngine<object>().handle('orders', () => {
      throw Object.assign(new Error('never'), { status: 404 });
    });
    const submit = (key: string, a: number) => engine.submit('orders', { a }, { dedupeKey: key });
    for (const key of ['edited', 'erased']) await submit(key, 1);
    await engine.drain();
    const [edited, erased] = await engine.inbox();
    await engine.inbox.replay(edited!.id, { payload: { a: 2 } });
    await engine.inbox.erase(erased!.id);
    for (const key of ['edited', 'erased']) {
      expect(await submit(key, 1)).toMatchObject({ status: 'duplicate' });
    }
  });

  it('with a delay is due after it, by the clock of the store', async () => {
    const engine = createTestEngine();
    const at: number[] = [];
    engine.handle('a', () => void at.push(engine.clock.now()));
    const now = engine.clock.now();
    await engine.submit('a', 1, { delay: '1h' });
    const [many] = await engine.submitMany([{ to: 'a', payload: 2, delay: 7_200_000 }]);
    await engine.submit('a', 3, { delay: 0 });
    expect(await engine.get((many as { id: string }).id)).toMatchObject({
      dueAtMs: now + 7_200_000,
    });
    await engine.advance('3h');
    expect(at.map((ms) => ms - now)).toEqual([0, 3_600_000, 7_200_000]);
  });

  it('goes in by the thousand, in bounded batches', async () => {
    const clock = virtualClock();
    const store = memory({ clock });
    const sizes: number[] = [];
    const { insert } = store;
    store.insert = (tasks) => {
      sizes.push(tasks.length);
      return insert.call(store, tasks);
    };
    const engine = createEngine({ store, clock, log: silent });
    const tasks = Array.from({ length: 2500 }, (_, n) => ({ to: 'a', payload: n }));
    const results = await engine.submitMany(tasks);
    expect(results).toHaveLength(2500);
    expect(sizes).toEqual([1000, 1000, 500]);
    const large = Array.from({ length: 5 }, () => ({ to: 'a', payload: new Uint8Array(1 << 20) }));
    sizes.length = 0;
    await engine.submitMany([...large, ...large]);
    expect(sizes).toEqual([8, 2]);
    sizes.length = 0;
    await Promise.all(tasks.map(({ to, payload }) => engine.submit(to, payload)));
    expect(sizes).toEqual([1000, 1000, 500]);
    await engine.stop();
  });

  it('keeps a policy of its own, and uses it whatever the handler says', async () => {
    const at: number[] = [];
    const engine = createTestEngine({
      policies: { quick: { maxAttempts: 2, base: 5, jitter: 'none' } },
    });
    engine.handle('a', { policy: { base: '1h' } }, () => {
      at.push(engine.clock.now());
      throw new Error('down');
    });
    const { id } = await engine.submit('a', 1, { policy: 'quick' });
    await engine.advance('1s');
    expect(at.map((ms) => ms - at[0]!)).toEqual([0, 5]);
    expect(await engine.get(id)).toMatchObject({ status: 'failed', attempt: 2, maxAttempts: 2 });
  });

  it('without a handler here waits for one', async () => {
    const engine = createTestEngine();
    const { id } = await engine.submit('later', 1);
    await engine.advance('1h');
    expect(await engine.get(id)).toMatchObject({ status: 'pending', claims: 0 });
    expect(await engine.lanes()).toMatchObject([
      { lane: 'handler:later', state: 'NO_HANDLER', nextInMs: 0 },
    ]);
  });

  it('cannot join a transaction that its store does not know', async () => {
    const engine = createTestEngine();
    const tx = { query: () => Promise.resolve() };
    const refused = { code: 'NO_TRANSACTIONS' };
    await expect(engine.submit('a', 1, { tx })).rejects.toMatchObject(refused);
    await expect(engine.submitMany([{ to: 'a', payload: 1 }], { tx })).rejects.toMatchObject(
      refused,
    );
  });

  it('joins a transaction of the caller where the store knows them', async () => {
    const clock = virtualClock();
    const store = memory({ clock });
    const seen: unknown[] = [];
    Object.assign(store, { capabilities: { ...store.capabilities, transactions: true } });
    const { insert } = store;
    store.insert = (tasks, tx) => {
      seen.push(tx);
      return insert.call(store, tasks);
    };
    const engine = createEngine({ store, clock, log: silent });
    const tx = { query: () => Promise.resolve() };
    expect(await engine.submit('a', 1, { tx })).toMatchObject({ status: 'accepted' });
    await engine.submitMany([{ to: 'a', payload: 2 }], { tx });
    await engine.submit('a', 3);
    expect(seen).toEqual([tx, tx, undefined]);
    await engine.stop();
  });
});

describe('a store that is away', () => {
  function away(failures: number, onUnavailable?: 'fail' | 'wait') {
    const clock = virtualClock();
    const store = memory({ clock });
    const { insert, open } = store;
    let left = failures;
    const fail = () => {
      left -= 1;
      if (left >= 0) throw new EngineError('STORE_UNAVAILABLE', 'It does not answer.');
    };
    store.open = async () => {
      fail();
      return open.call(store);
    };
    store.insert = async (tasks) => {
      fail();
      return insert.call(store, tasks);
    };
    const option = onUnavailable ? { onUnavailable } : {};
    return { clock, engine: createEngine({ store, clock, log: silent, ...option }) };
  }

  it('makes a submit fail at once, and a later one may work', async () => {
    const { engine } = away(2);
    const failed = { code: 'STORE_UNAVAILABLE' };
    await expect(engine.submit('a', 1)).rejects.toMatchObject(failed);
    await expect(engine.submitMany([{ to: 'a', payload: 1 }])).rejects.toMatchObject(failed);
    expect(await engine.submit('a', 1)).toMatchObject({ status: 'accepted' });
    expect(await engine.list({ limit: 9 })).toHaveLength(1);
  });

  it('makes a submit wait, where that is wanted', async () => {
    const { engine, clock } = away(6, 'wait');
    const submitted = [engine.submit('a', 1), engine.submitMany([{ to: 'a', payload: 2 }])];
    await clock.advance('1m');
    expect(await Promise.all(submitted)).toMatchObject([
      { status: 'accepted' },
      [{ status: 'accepted' }],
    ]);
    expect(await engine.list({ limit: 9 })).toHaveLength(2);
  });

  it('does not hide another fault from one who waits', async () => {
    const clock = virtualClock();
    const store = memory({ clock, maxTasks: 1 });
    const engine = createEngine({ store, clock, log: silent, onUnavailable: 'wait' });
    await engine.submit('a', 1);
    await expect(engine.submit('a', 2)).rejects.toMatchObject({ code: 'STORE_FULL' });
  });

  it('does not keep waiting for an engine that was stopped', async () => {
    const { engine, clock } = away(Infinity, 'wait');
    const refused = engine.submit('a', 1).catch((error: unknown) => error);
    await clock.advance('10s');
    await engine.stop();
    expect(await refused).toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await expect(engine.submit('a', 1)).rejects.toMatchObject({ code: 'ENGINE_STOPPED' });
  });
});

it('an ordering key is refused where the store would not honour it', async () => {
  const store = memory();
  const capabilities = { ...store.capabilities, ordering: false };
  const engine = createEngine({ store: Object.assign(store, { capabilities }) });
  await expect(
    engine.submit({ kind: 'queue', address: 'q' }, 1, { orderingKey: 'k' }),
  ).rejects.toMatchObject({ code: 'INVALID_TASK', faults: [{ path: 'orderingKey' }] });
  await engine.stop();
});

it('what lets its followers pass says so in one of two words', async () => {
  const engine = createTestEngine().handle('any', nothing);
  const options = { orderingKey: 'k', onDead: 'pass' } as object;
  await expect(engine.submit('any', 1, options)).rejects.toMatchObject({
    faults: [{ path: 'onDead', message: "'pass' is not known here. Write 'block' or 'release'." }],
  });
});

describe('a payload that JSON would lose without a word', () => {
  it.each([
    [new Map([['a', 1]]), 'a Map'],
    [new Set([1]), 'a Set'],
    [() => 1, 'a function'],
    [NaN, 'NaN'],
    [-Infinity, '-Infinity'],
  ])('is refused: %s', async (payload, word) => {
    const engine = createTestEngine().handle('a', () => undefined);
    await expect(engine.submit('a', payload)).rejects.toMatchObject({
      code: 'INVALID_PAYLOAD',
      message: expect.stringContaining(`JSON cannot hold ${word}`) as string,
    });
  });
});

it.each<[Record<string, unknown>, string]>([
  [{ onConflict: 'ignore' }, "'ignore' is not known here. Write 'duplicate' or 'reject'."],
  [{ onDead: 'skip' }, "'skip' is not known here. Write 'block' or 'release'."],
  [{ delay: '1 hour' }, "'1 hour' is not a duration. Write ms, or '30s', '5m', '1h'."],
  [{ delay: '9999d' }, "'9999d' is too long. A delay is at most ten years."],
  [{ dueAt: '1h' }, "'1h' is no time. Give a Date or ms since the epoch; for a wait use `delay`."],
  [{ expiresAt: '1h' }, "'1h' is no time. Give a Date or ms since the epoch."],
  [{ dueAt: 1e15 }, '1000000000000000 is too late. A time is at most ten years from now.'],
])('what is wrong with %o is said with its value and what is allowed', async (options, said) => {
  const engine = createEngine({ store: memory() });
  await expect(engine.submit('a', 1, options)).rejects.toThrow(said);
});

it('an id that is none is told apart: of a new task, and of one that is asked for', async () => {
  const engine = createEngine({ store: memory() });
  const unknown = "'nope' is not the id of a task. Pass the `id` that submit gave you.";
  await expect(engine.get('nope')).rejects.toThrow(unknown);
  await expect(engine.cancel('nope')).rejects.toThrow(unknown);
  await expect(engine.submit('a', 1, { id: 'nope' })).rejects.toThrow("'nope' is not a UUID.");
});
