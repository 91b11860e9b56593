import { describe, expect, it } from 'vitest';
import { type VirtualClock, virtualClock } from '../../virtual-clock.ts';
import type { RouteAttempt } from './leg.ts';
import { createRouter } from './router.ts';
import type { StreamOptions } from './stream-guard.ts';

type Piece = string | Error | Promise<unknown>;

/** A stream that gives its pieces one by one; an error breaks it, a promise holds it up. */
async function* streamOf(pieces: Piece[], closed: string[], name: string) {
  try {
    for (const piece of pieces) {
      if (piece instanceof Error) throw piece;
      if (typeof piece === 'string') yield piece;
      else await piece;
    }
  } finally {
    closed.push(name);
  }
}

const never = new Promise<never>(() => {});
const broken = Object.assign(new Error('cut'), { code: 'ECONNRESET' });
const marks: StreamOptions = {
  isContent: (chunk) => String(chunk).startsWith('content'),
  isEnd: (chunk) => chunk === 'end',
};

function setUp(
  streams: Record<string, () => unknown>,
  stream: StreamOptions & { idleTimeout?: number } = marks,
  clock: VirtualClock = virtualClock(),
) {
  const attempts: RouteAttempt[] = [];
  const router = createRouter(
    {
      version: '1.0',
      providers: Object.keys(streams).map((name, i) => ({ name, weight: i === 0 ? 100 : 0 })),
      fallbacks: Object.keys(streams).map((to) => ({ when: {}, to, retry: 0 })),
      circuit_breaker: { enabled: true, failure_threshold: 1 },
      timeout_ms: 1000,
      sticky: { enabled: true },
    },
    {
      providers: Object.fromEntries(
        Object.entries(streams).map(([name, make]) => [
          name,
          (_: unknown, attempt: RouteAttempt) => {
            attempts.push(attempt);
            return make() as AsyncIterable<string>;
          },
        ]),
      ),
      stream,
      clock,
    },
  );
  return { router, attempts, clock };
}

async function read(stream: AsyncIterable<unknown>): Promise<string> {
  const chunks: unknown[] = [];
  try {
    for await (const chunk of stream) chunks.push(chunk);
  } catch (error) {
    chunks.push((error as { code?: string }).code ?? (error as Error).message);
  }
  return chunks.join(' ');
}

describe('streaming answers', () => {
  it('are passed on whole, the preamble first, and count when they have ended', async () => {
    const { router } = setUp({
      a: () => streamOf(['hello', 'content 1', 'content 2', 'end'], [], 'a'),
    });
    const { value, attempts } = await router.call('x', { session_id: 's' });
    expect(router.health()['a']).toMatchObject({ calls: 0, inFlight: 1 });
    expect((await router.call('x', { session_id: 's' })).explanation.reason).toBe('weighted');
    expect(await read(value)).toBe('hello content 1 content 2 end');
    expect(router.health()['a']).toMatchObject({ calls: 1, failures: 0, inFlight: 1 });
    expect(attempts[0]?.outcome).toBe('ok');
    expect((await router.call('x', { session_id: 's' })).explanation.reason).toBe('sticky');
  });

  it.each([
    ['breaks after its preamble', ['hello', broken]],
    ['breaks at once', [broken]],
    ['ends after its preamble, without its end', ['hello']],
    ['is empty', []],
  ])('fall back where the stream %s', async (_, pieces) => {
    const { router } = setUp({
      a: () => streamOf(pieces, [], 'a'),
      b: () => streamOf(['hi', 'content', 'end'], [], 'b'),
    });
    const { value, provider, attempts } = await router.call('x');
    expect(provider).toBe('b');
    expect(attempts[0]?.status).toBe('connection_error');
    expect(await read(value)).toBe('hi content end');
  });

  it('do not fall back after content: the consumer sees the error, and the breaker counts it', async () => {
    const { router } = setUp({
      a: () => streamOf(['content 1', broken], [], 'a'),
      b: () => streamOf(['content', 'end'], [], 'b'),
    });
    const { value, provider, attempts } = await router.call('x');
    expect(provider).toBe('a');
    expect(await read(value)).toBe('content 1 ECONNRESET');
    expect(attempts).toMatchObject([{ outcome: 'failed', status: 'connection_error' }]);
    expect(router.health()['a']).toMatchObject({ state: 'open', failures: 1 });
  });

  it('that stop without their end are an error', async () => {
    const { router } = setUp({ a: () => streamOf(['content 1', 'content 2'], [], 'a') });
    const { value } = await router.call('x');
    expect(await read(value)).toBe('content 1 content 2 STREAM_CUT');
    expect(router.health()['a']).toMatchObject({ state: 'open', failures: 1 });
  });

  it('without marks begin with their first chunk and end with their last', async () => {
    const { router } = setUp({ a: () => streamOf(['1', '2'], [], 'a') }, {});
    expect(await read((await router.call('x')).value)).toBe('1 2');
    const empty = setUp({ a: () => streamOf([], [], 'a') }, {});
    expect(await read((await empty.router.call('x')).value)).toBe('');
    expect(empty.router.health()['a']).toMatchObject({ calls: 1, failures: 0 });
  });

  it('that stall before content are abandoned at the timeout of the attempt, and closed', async () => {
    const closed: string[] = [];
    const stalled = streamOf(['hello', never], closed, 'a');
    const { router, attempts, clock } = setUp({
      a: () => stalled,
      b: () => streamOf(['content', 'end'], closed, 'b'),
    });
    const call = router.call('x');
    await clock.advance(1000);
    const result = await call;
    expect(result).toMatchObject({ provider: 'b', attempts: [{ status: 'timeout' }, {}] });
    expect(attempts[0]?.signal.aborted).toBe(true);
  });

  it('that hang in their preamble are closed at the timeout, and at the abort of the caller', async () => {
    const closed: string[] = [];
    const hanging = () => ({
      [Symbol.asyncIterator]: () => ({
        next: () => never,
        return: () => {
          closed.push('closed');
          return Promise.resolve({ done: true, value: undefined });
        },
      }),
    });
    const { router, clock } = setUp({ a: hanging });
    const late = router.call('x').catch((error: unknown) => (error as { code: string }).code);
    await clock.advance(1000);
    expect(await late).toBe('NO_FALLBACK');
    expect(closed).toEqual(['closed']);
    const other = setUp({ a: hanging });
    const controller = new AbortController();
    const aborted = other.router
      .call('x', {}, { signal: controller.signal })
      .catch((error: unknown) => (error as { code: string }).code);
    await other.clock.advance(10);
    controller.abort();
    expect(await aborted).toBe('ABORTED');
    expect(closed).toEqual(['closed', 'closed']);
  });

  it('have no time limit after content but idleTimeout', async () => {
    const clock = virtualClock();
    const wait = (ms: number) =>
      new Promise((resolve) => {
        clock.setTimer(() => resolve(undefined), ms);
      });
    const slow = () => streamOf(['content', wait(50_000), 'more', 'end'], [], 'a');
    const { router } = setUp({ a: slow }, marks, clock);
    const reading = read((await router.call('x')).value);
    await clock.run();
    expect(await reading).toBe('content more end');
    const other = setUp({ a: slow }, { ...marks, idleTimeout: 5000 }, clock);
    const { value, attempts } = await other.router.call('x');
    const cut = read(value);
    await clock.advance(5000);
    expect(await cut).toMatch(/^content (23|The stream)/);
    expect(attempts[0]).toMatchObject({ status: 'timeout', outcome: 'failed' });
    expect(other.attempts[0]?.signal.aborted).toBe(true);
  });

  it('that the consumer leaves are closed, and count neither way', async () => {
    const closed: string[] = [];
    const { router } = setUp({ a: () => streamOf(['content 1', 'content 2', 'end'], closed, 'a') });
    const { value } = await router.call('x');
    for await (const chunk of value) {
      expect(chunk).toBe('content 1');
      break;
    }
    expect(closed).toEqual(['a']);
    expect(router.health()['a']).toMatchObject({ calls: 0, inFlight: 0 });
    // Also one that was never read.
    const { value: unread } = await router.call('x');
    await (unread as unknown as AsyncIterator<string>).return?.();
    expect(router.health()['a']).toMatchObject({ calls: 0, inFlight: 0 });
  });

  it('count as complete where the consumer leaves after the end mark', async () => {
    const { router } = setUp({ a: () => streamOf(['content', 'end', 'surplus'], [], 'a') });
    for await (const chunk of (await router.call('x')).value) if (chunk === 'end') break;
    expect(router.health()['a']).toMatchObject({ calls: 1, failures: 0, inFlight: 0 });
  });

  it('end with the caller’s abort, which does not count against the provider', async () => {
    const { router, attempts, clock } = setUp({ a: () => streamOf(['content', never], [], 'a') });
    const controller = new AbortController();
    const { value } = await router.call('x', {}, { signal: controller.signal });
    const reading = read(value);
    await clock.advance(0);
    controller.abort(new Error('gone'));
    expect(await reading).toBe('content gone');
    expect(attempts[0]?.signal.aborted).toBe(true);
    expect(router.health()['a']).toMatchObject({ state: 'closed', calls: 0, inFlight: 0 });
  });

  it('may be web streams, and stay web streams', async () => {
    const cancelled: unknown[] = [];
    const web = (chunks: string[]) => () => {
      let turn = 0;
      return new ReadableStream<string>(
        {
          pull(controller) {
            const chunk = chunks[turn++];
            if (chunk === undefined) controller.close();
            else controller.enqueue(chunk);
          },
          cancel(reason) {
            cancelled.push(reason);
          },
        },
        { highWaterMark: 0 },
      );
    };
    const { router } = setUp({ a: web(['hello']), b: web(['hello', 'content', 'end']) });
    const { value, provider } = await router.call('x');
    expect(provider).toBe('b');
    expect(value).toBeInstanceOf(ReadableStream);
    expect(await read(value)).toBe('hello content end');
    const left = (await router.call('x')).value as unknown as ReadableStream<string>;
    await left.cancel('enough');
    expect(cancelled).toHaveLength(1);
    const cut = setUp({ a: web(['content']) });
    expect(await read((await cut.router.call('x')).value)).toBe('content STREAM_CUT');
  });

  it('leave values alone that are no streams', async () => {
    const { router } = setUp({ a: () => 'plain' });
    expect((await router.call('x')).value).toBe('plain');
  });
});

describe('streams and hedging', () => {
  it('close the stream of the loser', async () => {
    const clock = virtualClock();
    const closed: string[] = [];
    let go: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      go = resolve;
    });
    const router = createRouter(
      {
        version: '1.0',
        weights: { a: 100, b: 0 },
        fallbacks: [{ when: { status: 'timeout' }, to: 'b' }],
      },
      {
        providers: {
          a: () => streamOf(['hello', held, 'content a', 'end'], closed, 'a'),
          b: () => streamOf(['content b', 'end'], closed, 'b'),
        },
        stream: marks,
        hedgeAfter: 100,
        clock,
      },
    );
    const call = router.call('x');
    await clock.advance(100);
    const { value, provider } = await call;
    expect(provider).toBe('b');
    expect(await read(value)).toBe('content b end');
    go();
    await clock.advance(0);
    expect(closed).toEqual(['b', 'a']);
    expect(router.health()).toMatchObject({ a: { inFlight: 0, calls: 0 }, b: { calls: 1 } });
  });
});
