import { describe, expect, expectTypeOf, it, vi } from 'vitest';
import { replayAudit } from '../audit/audit.ts';
import type { AuditEvent } from '../audit/audit-events.ts';
import { isRetryError, type RetryError } from '../errors.ts';
import { idempotencyKey } from '../idempotency/key.ts';
import { memoryIdempotency } from '../idempotency/memory.ts';
import { presets } from '../policy/presets.ts';
import { virtualClock } from '../virtual-clock.ts';
import { type CategoryId, categoryPolicy } from './category.ts';
import { createRetryManager, getRetryManager } from './manager.ts';
import type { ManagerAudit } from './manager-options.ts';
import { categoryMatrix, type CategoryName } from './matrix.ts';

const NOW = Date.UTC(2026, 0, 25, 21, 15);
const names = Object.keys(categoryMatrix) as CategoryName[];

class ValueError extends Error {
  override readonly name: string = 'ValueError';
}
class SubValueError extends ValueError {
  override readonly name = 'SubValueError';
}
class NetworkError extends Error {
  override readonly name = 'NetworkError';
}

function stage(options: Omit<ManagerAudit, 'to'> = {}) {
  const clock = virtualClock(NOW);
  const events: AuditEvent[] = [];
  const audit = { ...options, to: (event: AuditEvent) => void events.push(event) };
  const manager = createRetryManager({ clock, audit, random: () => 0.75 });
  /** Runs the clock until the call is over. */
  const over = async <T>(call: Promise<T>): Promise<T> => {
    const settled = call.then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    await clock.run();
    await manager.flush();
    const end = await settled;
    if ('error' in end) throw end.error;
    return end.value;
  };
  const happened = () => events.filter((event) => event.event_type !== 'policy_registered');
  return { clock, events, happened, manager, over };
}

const never = new Promise<never>(() => {});

/** Fails so often, then works. */
function flaky(failures: number, error: unknown = new NetworkError('down')) {
  let calls = 0;
  return vi.fn(() => (++calls > failures ? Promise.resolve('done') : Promise.reject(error)));
}

async function failureOf(call: Promise<unknown>): Promise<RetryError> {
  const error: unknown = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!isRetryError(error)) throw new Error(`no RetryError: ${String(error)}`);
  return error;
}

describe('the rules of the document', () => {
  it('R0: the three events keep their fields and their order (version 1)', async () => {
    const { manager, over, events } = stage({ strict: true });
    const ids = { tenantId: 'tenant-123', correlationId: 'corr-456', traceId: 'trace-789' };
    const failing = flaky(
      9,
      Object.assign(new Error('Connection timeout'), { name: 'TimeoutError' }),
    );
    await expect(over(manager.execute('NATS_PUBLISH', 'Publish', failing, ids))).rejects.toThrow(
      'Gave up after 3',
    );
    const key = 'abc123def456abcd and more';
    await over(manager.execute('KV_PUT', 'Store', () => 1, { ...ids, idempotencyKey: key }));
    const common = { ...ids, at: '2026-01-25T21:15:00.000Z' };
    const tail = (timestamp: string) => ({
      tenant_id: common.tenantId,
      correlation_id: common.correlationId,
      trace_id: common.traceId,
      timestamp,
    });
    expect(events.map((event) => JSON.stringify(event))).toEqual(
      [
        {
          event_type: 'retry_attempt',
          retry_category: 'RETRY_NATS_PUBLISH',
          operation: 'Publish',
          attempt_number: 1,
          max_attempts: 3,
          delay_seconds: 0.525,
          exception_type: 'TimeoutError',
          exception_message: 'Connection timeout',
          ...tail('2026-01-25T21:15:00.000Z'),
        },
        {
          event_type: 'retry_attempt',
          retry_category: 'RETRY_NATS_PUBLISH',
          operation: 'Publish',
          attempt_number: 2,
          max_attempts: 3,
          delay_seconds: 1.05,
          exception_type: 'TimeoutError',
          exception_message: 'Connection timeout',
          ...tail('2026-01-25T21:15:00.525Z'),
        },
        {
          event_type: 'retry_exhausted',
          retry_category: 'RETRY_NATS_PUBLISH',
          operation: 'Publish',
          total_attempts: 3,
          final_exception_type: 'TimeoutError',
          final_exception_message: 'Connection timeout',
          ...tail('2026-01-25T21:15:01.575Z'),
        },
        {
          event_type: 'idempotency',
          retry_category: 'RETRY_KV_PUT',
          operation: 'Store',
          idempotency_key: 'abc123def456abcd...',
          action: 'record',
          ...tail('2026-01-25T21:15:01.575Z'),
        },
      ].map((event) => JSON.stringify(event)),
    );
  });

  it('R1: every input and output has a timeout: attempts 30 s, stores 5 s', async () => {
    const { manager, over, clock } = stage();
    expect(manager.getPolicy('KV_GET').attemptTimeout).toBe(30_000);
    expect(categoryPolicy({ maxAttempts: 9 }).attemptTimeout).toBe(30_000);
    const endless = () => never;
    const error = await failureOf(over(manager.execute('EXECUTION_EXPIRATION', 'x', endless)));
    expect(error.cause).toMatchObject({ name: 'TimeoutError' });
    expect(clock.now() - NOW).toBe(30_000);
    const short = { timeoutMs: 100 };
    await failureOf(over(manager.execute('EXECUTION_EXPIRATION', 'x', endless, short)));
    expect(clock.now() - NOW).toBe(30_100);

    const hung = { ...memoryIdempotency(), claim: () => never };
    const other = virtualClock(NOW);
    const away = createRetryManager({ clock: other, idempotency: hung });
    const fn = vi.fn();
    const call = away
      .execute('KV_GET', 'x', fn, { idempotencyKey: 'k' })
      .catch((reason: unknown) => reason);
    await other.run();
    expect(await call).toMatchObject({ code: 'IDEMPOTENCY_STORE_FAILED' });
    expect(fn).not.toHaveBeenCalled();
  });

  it('R2: retries are finite, by policy and jittered', async () => {
    const { manager, over, clock } = stage();
    const fn = flaky(1_000);
    const error = await failureOf(over(manager.execute('NATS_CONNECT', 'connect', fn)));
    expect(error).toMatchObject({
      code: 'EXHAUSTED',
      attempts: 5,
      category: 'RETRY_NATS_CONNECT',
      operation: 'connect',
      cause: { message: 'down' },
    });
    expect(error.history.map(({ delayMs }) => delayMs)).toEqual([
      1050,
      2100,
      4200,
      8400,
      undefined,
    ]);
    expect(fn).toHaveBeenCalledTimes(5);
    expect(clock.now() - NOW).toBe(1050 + 2100 + 4200 + 8400);
  });

  it('R2: retries are idempotent, protected by keys that outlive the call', async () => {
    const { manager, over, happened } = stage();
    const idempotencyKeyOfIt = idempotencyKey({ operation: 'charge', tenantId: 't-1' });
    const options = { idempotencyKey: idempotencyKeyOfIt };
    const fn = flaky(2);
    expect(await over(manager.execute('API_REQUEST', 'charge', fn, options))).toBe('done');
    expect(await over(manager.execute('API_REQUEST', 'charge', fn, options))).toBe('done');
    expect(fn).toHaveBeenCalledTimes(3);
    expect(happened().map((event) => event['action'] ?? event.event_type)).toEqual([
      'retry_attempt',
      'retry_attempt',
      'record',
      'hit',
    ]);
  });

  it('R3: nothing is dropped in silence: whatever ends a call is an event', async () => {
    const { manager, over, happened } = stage();
    const run = (fn: () => unknown, options = {}) =>
      over(manager.execute('KV_GET', 'get', fn, options)).catch(() => undefined);
    await run(flaky(9));
    await run(flaky(9, new ValueError('bad')), { policy: { neverOn: ['ValueError'] } });
    await run(flaky(9), { policy: { deadline: 10 } });
    await run(flaky(9), { signal: AbortSignal.abort() });
    await run(flaky(9, Object.assign(new Error('later'), { retryAfterMs: 120_000 })));
    expect(happened().filter((event) => event.event_type !== 'retry_attempt')).toMatchObject([
      { event_type: 'retry_exhausted' },
      { event_type: 'retry_abandoned', reason: 'non_retryable', exception_type: 'ValueError' },
      { event_type: 'retry_abandoned', reason: 'deadline' },
      { event_type: 'retry_abandoned', reason: 'aborted' },
      { event_type: 'retry_abandoned', reason: 'retry_after_too_long' },
    ]);
  });

  it.each(names)('R6: every retry of %s has its reason code', async (name) => {
    const { manager, over, happened } = stage();
    const fn = flaky(99);
    const { maxAttempts } = categoryMatrix[name];
    await failureOf(over(manager.execute(name, 'work', fn)));
    expect(fn).toHaveBeenCalledTimes(maxAttempts);
    const codes = happened().map((event) => event['retry_category']);
    expect(codes).toEqual(Array.from({ length: maxAttempts }, () => `RETRY_${name}`));
  });

  it('R7: decisions are deterministic: the trail alone makes each of them again', async () => {
    const clock = virtualClock(NOW);
    const events: AuditEvent[] = [];
    const manager = createRetryManager({ clock, audit: (event) => void events.push(event) });
    for (const name of names) {
      const call = manager.execute(name, 'work', flaky(9)).catch(() => undefined);
      await clock.run();
      await call;
    }
    await manager.flush();
    const written = events.map((event) => JSON.parse(JSON.stringify(event)) as unknown);
    const report = await replayAudit(written);
    const decisions = names.reduce((sum, name) => sum + categoryMatrix[name].maxAttempts, 0);
    expect(report).toMatchObject({
      checked: decisions,
      same: decisions,
      different: 0,
      unknownPolicy: 0,
      missing: 0,
    });
  });
});

describe('policies', () => {
  it.each(names)('%s has the numbers of the matrix, by its name and by its code', (name) => {
    const { manager } = stage();
    const { maxAttempts, base, cap } = categoryMatrix[name];
    expect(manager.getPolicy(name)).toMatchObject({
      maxAttempts,
      base,
      cap,
      multiplier: 2,
      jitter: 'around',
      jitterRatio: 0.1,
      retryOn: ['any'],
    });
    expect(manager.getPolicy(`RETRY_${name}`)).toBe(manager.getPolicy(name));
    const { attemptTimeout: _, ...preset } = presets.categories[name];
    expect(manager.getPolicy(name)).toMatchObject(preset);
  });

  it('accepts the codes that the document prints for the two replays, and emits the others', async () => {
    const { manager, over, happened } = stage();
    for (const name of ['REPLAY_PROCESSING', 'REPLAY_VALIDATION'] as const) {
      expect(manager.getPolicy(`REPLAY_${name}`)).toBe(manager.getPolicy(name));
      await failureOf(over(manager.execute(`REPLAY_${name}`, 'x', flaky(9))));
    }
    expect(new Set(happened().map((event) => event['retry_category']))).toEqual(
      new Set(['RETRY_REPLAY_PROCESSING', 'RETRY_REPLAY_VALIDATION']),
    );
  });

  it('gives an unknown category the default policy, and warns once', async () => {
    const { manager, over, happened } = stage();
    const told = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const unknown = 'KV_GETS' as 'KV_GET';
    expect(manager.getPolicy(unknown)).toMatchObject({
      maxAttempts: 3,
      base: 1000,
      cap: 30_000,
      multiplier: 2,
      jitter: 'around',
      jitterRatio: 0.1,
    });
    await failureOf(over(manager.execute(unknown, 'x', flaky(9))));
    expect(told).toHaveBeenCalledTimes(1);
    expect(told.mock.calls[0]![0]).toContain("Did you mean 'KV_GET'?");
    expect(happened()[0]).toMatchObject({ retry_category: 'RETRY_KV_GETS' });
    const loose = manager.getPolicy.bind(manager) as (category: string) => unknown;
    for (let i = 0; i < 200; i++) loose(`X${i}`);
    expect(told).toHaveBeenCalledTimes(100);
    for (const odd of ['__proto__', 'constructor', '']) loose(odd);
    told.mockRestore();
  });

  it('takes categories of one’s own, typed, and other numbers for a built-in one', async () => {
    const clock = virtualClock(NOW);
    const manager = createRetryManager({
      clock,
      categories: {
        LEDGER: { maxAttempts: 2, base: '5s' },
        RETRY_MAIL: { base: '60s' },
        REPLAY_PROCESSING: { maxAttempts: 4 },
      },
    });
    expect(manager.getPolicy('LEDGER')).toMatchObject({
      maxAttempts: 2,
      base: 5000,
      cap: 30_000,
      jitter: 'around',
      jitterRatio: 0.1,
      attemptTimeout: 30_000,
    });
    expect(manager.getPolicy('RETRY_LEDGER')).toBe(manager.getPolicy('LEDGER'));
    const byCode = createRetryManager({ categories: { RETRY_KV_GET: { maxAttempts: 7 } } });
    expect(byCode.getPolicy('KV_GET')).toBe(byCode.getPolicy('RETRY_KV_GET'));
    // A cap that nobody wrote does not cut a base that somebody wrote.
    expect(manager.getPolicy('RETRY_MAIL')).toMatchObject({ base: 60_000, cap: 60_000 });
    expect(manager.getPolicy('REPLAY_REPLAY_PROCESSING').maxAttempts).toBe(4);
    expect(manager.getPolicy('KV_GET').maxAttempts).toBe(3);
    const call = failureOf(manager.execute('LEDGER', 'book', flaky(9)));
    await clock.run();
    expect(await call).toMatchObject({ category: 'RETRY_LEDGER', attempts: 2 });
    expectTypeOf<Parameters<typeof manager.getPolicy>[0]>().toEqualTypeOf<
      CategoryId<'LEDGER' | 'RETRY_MAIL' | 'REPLAY_PROCESSING'>
    >();
    // @ts-expect-error -- a category that nobody declared
    const misspelt: Parameters<typeof manager.execute>[0] = 'LEDGR';
    expect(misspelt).toBe('LEDGR');
  });

  it('takes a policy for one call', async () => {
    const { manager, over, clock } = stage();
    const policy = { maxAttempts: 2, base: '7s', jitter: 'none' } as const;
    const error = await failureOf(over(manager.execute('KV_GET', 'x', flaky(9), { policy })));
    expect(error.attempts).toBe(2);
    expect(clock.now() - NOW).toBe(7000);
  });

  it('shares one manager by default', async () => {
    expect(getRetryManager()).toBe(getRetryManager());
    expect(await getRetryManager().execute('KV_GET', 'x', () => 5)).toBe(5);
    expectTypeOf(getRetryManager().execute('KV_GET', 'x', async () => 5)).toEqualTypeOf<
      Promise<number>
    >();
  });
});

describe('classification', () => {
  const both = { retryOn: ['ValueError', 'NetworkError'], neverOn: ['ValueError'] };
  it.each<[string, object, unknown, boolean]>([
    ['everything by default', {}, new ValueError('x'), true],
    [
      'not what the non-retryable list names',
      { neverOn: ['ValueError'] },
      new ValueError(''),
      false,
    ],
    ['not a subclass of it', { neverOn: ['ValueError'] }, new SubValueError(''), false],
    ['what neither list names', { neverOn: ['ValueError'] }, new NetworkError(''), true],
    ['what both lists name', both, new ValueError('x'), true],
    ['what only the other list lacks', { retryOn: ['NetworkError'] }, new Error('other'), true],
    ['by code too', { neverOn: ['E_NO'] }, Object.assign(new Error('x'), { code: 'E_NO' }), false],
    ['what is no error at all', { neverOn: ['ValueError'] }, 'text', true],
    ['errors of programming', {}, new TypeError('x is not a function'), true],
    ['all, though the catch-all is excluded', { neverOn: ['Error'] }, new ValueError('x'), true],
  ])('retries %s', async (_, policy, error, isRetried) => {
    const { manager, over } = stage();
    const fn = flaky(1, error);
    const call = over(manager.execute('API_REQUEST', 'x', fn, { policy }));
    const end = await call.catch((reason: unknown) => reason);
    expect(end).toBe(isRetried ? 'done' : error);
    expect(fn).toHaveBeenCalledTimes(isRetried ? 2 : 1);
  });

  it('throws a non-retryable error unchanged, also on a later attempt', async () => {
    const { manager, over } = stage();
    const final = new ValueError('final');
    const fn = vi
      .fn<() => Promise<string>>()
      .mockRejectedValueOnce(new NetworkError('down'))
      .mockRejectedValue(final);
    const policy = { neverOn: ['ValueError'] };
    await expect(over(manager.execute('KV_GET', 'x', fn, { policy }))).rejects.toBe(final);
    expect(fn).toHaveBeenCalledTimes(2);
  });

  it('leaves a RetryError of the work itself as it is', async () => {
    const { manager, over } = stage();
    const inner = await failureOf(over(manager.execute('EXECUTION_EXPIRATION', 'i', flaky(9))));
    const policy = { neverOn: ['RetryError'] };
    const call = over(manager.execute('KV_GET', 'outer', flaky(9, inner), { policy }));
    await expect(call).rejects.toBe(inner);
    expect(inner.operation).toBe('i');
  });
});

describe('work under an idempotency key', () => {
  it('has attempts and a claim, whose signal ends both', async () => {
    const { manager, over } = stage();
    const seen: unknown[] = [];
    await over(
      manager.execute(
        'KV_PUT',
        'x',
        (attempt, claim) => {
          seen.push(attempt.attempt, attempt.idempotencyKey, claim?.fencingToken);
        },
        { idempotencyKey: 'k' },
      ),
    );
    await over(manager.execute('KV_PUT', 'x', (_, claim) => void seen.push(claim)));
    expect(seen).toEqual([1, 'k', 1, undefined]);
  });

  it('is not tried again after its claim was lost', async () => {
    const clock = virtualClock(NOW);
    const manager = createRetryManager({ clock, idempotencyOptions: { lease: '3s' } });
    const fn = flaky(9);
    const policy = { base: '10s', jitter: 'none' } as const;
    const call = manager
      .execute('KV_PUT', 'x', fn, { idempotencyKey: 'k', policy })
      .catch((error: unknown) => error);
    await clock.advance('1s');
    await manager.idempotency.clear('k');
    await clock.run();
    expect(await call).toMatchObject({ code: 'IDEMPOTENCY_LEASE_LOST' });
    expect(fn).toHaveBeenCalledTimes(1);
  });

  it('is not recorded when it is exhausted, and may run again', async () => {
    const { manager, over } = stage();
    const options = { idempotencyKey: 'k' };
    await failureOf(over(manager.execute('KV_PUT', 'x', flaky(9), options)));
    expect(await over(manager.execute('KV_PUT', 'x', () => 'second', options))).toBe('second');
  });

  it('refuses another payload, and keeps metadata', async () => {
    const { manager, over } = stage();
    const options = { idempotencyKey: 'k', payload: 1, metadata: { by: 'me' } };
    await over(manager.execute('KV_PUT', 'x', () => null, options));
    const other = manager.execute('KV_PUT', 'x', () => null, { ...options, payload: 2 });
    await expect(over(other)).rejects.toMatchObject({ code: 'IDEMPOTENCY_MISMATCH' });
    expect(await manager.idempotency.check('k')).toMatchObject({ metadata: { by: 'me' } });
  });

  it('is recorded, checked and cleared by hand, audited with its category', async () => {
    const { manager, happened } = stage();
    const ids = { category: 'KV_PUT', operation: 'by hand', tenantId: 't' } as const;
    expect(await manager.idempotency.record('k', 5, { ...ids, expiresIn: '1h' })).toBe(true);
    expect(await manager.idempotency.check('k', ids)).toMatchObject({ state: 'done', result: 5 });
    expect(await manager.idempotency.clear('k', ids)).toBe(true);
    expect(await manager.idempotency.clear('k')).toBe(false);
    await manager.flush();
    const subject = { retry_category: 'RETRY_KV_PUT', operation: 'by hand', tenant_id: 't' };
    expect(happened()).toMatchObject([
      { ...subject, event_type: 'idempotency', action: 'record' },
      { ...subject, event_type: 'idempotency', action: 'hit' },
      { ...subject, event_type: 'idempotency_detail', action: 'clear' },
      { retry_category: 'IDEMPOTENCY', event_type: 'idempotency_detail', action: 'clear' },
    ]);
  });

  it('uses the options of the manager for all keys', async () => {
    const clock = virtualClock(NOW);
    const manager = createRetryManager({
      clock,
      idempotencyOptions: { expiresIn: '1m', storeTimeout: '1s' },
    });
    await manager.execute('KV_PUT', 'x', () => 1, { idempotencyKey: 'a' });
    await manager.idempotency.record('b', 1);
    expect(await manager.idempotency.check('b')).toMatchObject({ state: 'done' });
    await clock.advance('1m');
    expect(await manager.idempotency.check('a')).toEqual({ state: 'absent' });
    expect(await manager.idempotency.check('b')).toEqual({ state: 'absent' });
  });
});

describe('the audit', () => {
  it('is off unless asked for', async () => {
    const clock = virtualClock(NOW);
    const manager = createRetryManager({ clock });
    const call = failureOf(manager.execute('KV_GET', 'x', flaky(9)));
    await clock.run();
    await call;
    await manager.flush();
    expect(manager.auditFailures).toBe(0);
  });

  it('goes to a sink in batches', async () => {
    const clock = virtualClock(NOW);
    const batches: (readonly AuditEvent[])[] = [];
    const audit = { write: async (events: readonly AuditEvent[]) => void batches.push(events) };
    const manager = createRetryManager({ clock, audit });
    const call = failureOf(manager.execute('API_VALIDATION', 'x', flaky(9)));
    await clock.run();
    await call;
    await manager.flush();
    expect(batches.flat().map((event) => event.event_type)).toEqual([
      'policy_registered',
      'retry_attempt',
      'retry_exhausted',
    ]);
  });

  it('never fails the work: what a function refuses is counted and said', async () => {
    const told = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    let calls = 0;
    const audit = () => {
      calls += 1;
      if (calls === 1) throw new Error('audit is down');
      return Promise.reject(new Error('audit is still down'));
    };
    const manager = createRetryManager({ audit: { to: audit, strict: true } });
    await manager.execute('KV_GET', 'x', () => 1, { idempotencyKey: 'a' });
    await manager.execute('KV_GET', 'x', () => 1, { idempotencyKey: 'a' });
    await manager.flush();
    expect(manager.auditFailures).toBe(2);
    expect(told).toHaveBeenCalledTimes(2);
    told.mockRestore();
  });

  it('never fails the work: what a sink refuses is counted and said', async () => {
    const told = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const clock = virtualClock(NOW);
    const audit = { write: () => Promise.reject(new Error('disk full')) };
    const manager = createRetryManager({ clock, audit });
    await manager.execute('KV_GET', 'x', () => 1, { idempotencyKey: 'a' });
    await clock.run();
    await manager.flush();
    expect(manager.auditFailures).toBe(1);
    expect(told.mock.calls[0]).toMatchObject([
      expect.stringContaining('the audit sink failed') as unknown,
      { error: { message: 'disk full' }, events: 1 },
    ]);
    told.mockRestore();
  });

  it('tells of successes by option, with the number of the attempt', async () => {
    const { manager, over, happened } = stage({ successes: true });
    await over(manager.execute('KV_GET', 'x', flaky(1)));
    expect(happened()).toMatchObject([
      { event_type: 'retry_attempt' },
      { event_type: 'retry_succeeded', attempt_number: 2, max_attempts: 3 },
    ]);
  });

  it('carries the context of the caller, in bounds', async () => {
    const { manager, over, happened } = stage();
    const ring: Record<string, unknown> = {};
    ring['ring'] = ring;
    for (const context of [{ user: 7 }, { text: 'x'.repeat(10_000) }, ring]) {
      const options = { context, policy: { maxAttempts: 1 } };
      await failureOf(over(manager.execute('KV_GET', 'x', flaky(9), options)));
    }
    const [small, large, odd] = happened().map((event) => event.redrive?.['context']);
    expect(small).toEqual({ user: 7 });
    expect((large as { cut: string }).cut).toHaveLength(8192);
    expect(odd).toMatchObject({ unreadable: expect.stringContaining('circular') as unknown });
    await over(
      manager.execute('KV_GET', 'x', () => 1, { context: { user: 7 }, idempotencyKey: 'k' }),
    );
    expect(happened().at(-1)).toMatchObject({ redrive: { context: { user: 7 } } });
  });
});

it('finds every fault of its options at once', () => {
  const options = {
    categories: { A: { maxAttempts: 0 }, B: 5, C: { retryOn: 'all' } },
    idempotency: {},
    idempotencyOptions: { lease: 'soon' },
    audit: 7,
    clock: {},
    random: 0.5,
    categoriez: {},
  };
  const create = () => createRetryManager(options as never);
  expect(create).toThrow(expect.objectContaining({ code: 'INVALID_CONFIG' }));
  expect(create).toThrow(/categories\.A\.maxAttempts/);
  expect(create).toThrow(/categories\.C\.retryOn/);
  for (const path of ['idempotency:', 'idempotencyOptions.lease', 'audit', 'clock', 'random']) {
    expect(create).toThrow(path);
  }
  expect(create).toThrow("Did you mean 'categories'?");
  expect(createRetryManager(undefined).getPolicy('KV_GET').maxAttempts).toBe(3);
});

it('passes on what a getter in a policy throws', () => {
  const policy = {
    get base(): number {
      throw new Error('not now');
    },
  };
  expect(() => createRetryManager({ categories: { A: policy } })).toThrow('not now');
});
