import { describe, expect, it } from 'vitest';
import { bytesOf } from './payload.ts';
import { checkedContext, destinationOf, type SubmitOptions, taskOf } from './submission.ts';
import type { Destination } from '../model/task.ts';
import { uuidOf } from '../model/uuid.ts';

const NOW = 1_700_000_000_000;
const YEAR = 366 * 86_400_000;
const orders: Destination = { kind: 'handler', address: 'orders' };
const fresh = '01890000-0000-7000-8000-000000000000';

function made(options: SubmitOptions = {}, to = orders) {
  const more = { id: fresh, maxAttempts: 4, nowMs: NOW, token: 9 };
  return taskOf(to, new Uint8Array([1]), options, more);
}

/** What it is refused as, and where. */
function refusal(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    const { code, faults } = error as { code: string; faults?: { path: string; code: string }[] };
    const fault = faults?.[0];
    return fault?.code === code ? `${code} ${fault.path}` : error;
  }
  return undefined;
}

describe('a destination', () => {
  it.each<[unknown, Destination]>([
    ['orders', orders],
    ['queue:orders', { kind: 'handler', address: 'queue:orders' }],
    ['ü'.repeat(127), { kind: 'handler', address: 'ü'.repeat(127) }],
    ['https://Example.com:443/a b?c=d', { kind: 'http', address: 'https://example.com/a%20b?c=d' }],
    ['HTTP://example.com', { kind: 'http', address: 'http://example.com/' }],
    [
      { kind: 'queue', address: 'orders' },
      { kind: 'queue', address: 'orders' },
    ],
    [
      { kind: 'http', address: 'http://a/' },
      { kind: 'http', address: 'http://a/' },
    ],
    // Always a queue, whatever it looks like.
    [
      { kind: 'queue', address: 'http://a' },
      { kind: 'queue', address: 'http://a' },
    ],
  ])('%j is understood', (to, expected) => {
    expect(destinationOf(to)).toEqual(expected);
  });

  it.each([
    [undefined],
    [null],
    [''],
    [7],
    [{}],
    [{ kind: 'queue' }],
    [{ kind: 'queue', address: '' }],
    [{ kind: 'Queue', address: 'a' }],
    [{ kind: 'a:b', address: 'a' }],
    [{ kind: '', address: 'a' }],
    ['a\0b'],
    ['half \uD83D of a pair'],
    ['x'.repeat(256)],
    ['ü'.repeat(128)],
    ['http://'],
    ['ftp://example.com/'],
    ['https://user:secret@example.com/'],
    ['https://user@example.com/'],
    [`https://example.com/${'x'.repeat(2048)}`],
    [{ kind: 'http', address: 'ftp://example.com/' }],
    [{ kind: 'http', address: 'not a url' }],
  ])('%j is none', (to) => {
    expect(refusal(() => destinationOf(to))).toBe('NO_DESTINATION to');
  });

  it('never shows the credentials that it refuses', () => {
    const work = () => destinationOf('https://user:secret@example.com/');
    expect(work).toThrow('name a secret in context.secret');
    expect(work).not.toThrow(/secret@/);
  });
});

describe('a payload', () => {
  it('is bytes as they are, and JSON of anything else', () => {
    const bytes = new Uint8Array([1, 2]);
    const kept = bytesOf(bytes, 10);
    expect(kept).toEqual(bytes);
    bytes[0] = 9;
    expect(kept[0]).toBe(1);
    const buffer = Buffer.from([1, 2]);
    const keptToo = bytesOf(buffer, 10);
    buffer[0] = 9;
    expect(keptToo[0]).toBe(1);
    expect(Buffer.from(bytesOf({ a: ['ü'] }, 100)).toString()).toBe('{"a":["ü"]}');
    expect(Buffer.from(bytesOf(null, 100)).toString()).toBe('null');
    expect(bytesOf(undefined, 100)).toHaveLength(0);
  });

  it('may be as large as the limit, in bytes', () => {
    expect(bytesOf('üü', 6)).toHaveLength(6);
    expect(refusal(() => bytesOf('üü', 5))).toBe('PAYLOAD_TOO_LARGE payload');
    expect(refusal(() => bytesOf(new Uint8Array(6), 5))).toBe('PAYLOAD_TOO_LARGE payload');
  });

  it('that cannot be written as JSON is refused', () => {
    const ring: { self?: unknown } = {};
    ring.self = ring;
    const thrower = {
      toJSON() {
        throw new Error('no');
      },
    };
    for (const payload of [ring, 7n, thrower]) {
      expect(refusal(() => bytesOf(payload, 1000))).toBe('INVALID_PAYLOAD payload');
    }
  });

  it.each([
    ['nested too deep', nested(50_000), 'cannot be written as JSON: it is nested too deep. Submit'],
    ['a bigint', 7n, 'cannot be written as JSON: Do not know how to serialize a BigInt. Submit'],
  ])('is refused in words that say why: %s', (_, payload, words) => {
    expect(() => bytesOf(payload, 1000)).toThrow(words);
  });
});

describe('a context', () => {
  it.each([4000, 12_000, 50_000])('%i levels deep is taken, or refused in plain words', (depth) => {
    let said = 'taken';
    try {
      checkedContext({ headers: { a: nested(depth) as string } });
    } catch (error) {
      said = (error as Error).message;
    }
    expect(said).toMatch(
      /^(taken|The context cannot be written as JSON: it is nested too deep\.)$/,
    );
  });
});

function nested(depth: number): unknown {
  let value: unknown = [];
  for (let i = 0; i < depth; i++) value = [value];
  return value;
}

describe('a task', () => {
  it('is due at once, with an id of its own, unless it says otherwise', () => {
    expect(made()).toEqual({
      messageId: fresh,
      destination: orders,
      lane: 'handler:orders',
      payload: new Uint8Array([1]),
      status: 'pending',
      attempt: 0,
      maxAttempts: 4,
      uncounted: 0,
      delayMs: 0,
      generation: 0,
      claims: 0,
      arrived: false,
      cancelling: false,
      blocked: false,
      arrival: 9,
      due: { inMs: 0 },
    });
  });

  it('has the lane of its origin when it goes to a URL', () => {
    expect(made({}, { kind: 'http', address: 'https://example.com:8443/a?b' }).lane).toBe(
      'https://example.com:8443',
    );
  });

  it('takes a UUID of its own, in small letters', () => {
    const id = '0B7C0000-0000-4000-8000-00000000C0DE';
    expect(made({ id }).messageId).toBe(id.toLowerCase());
  });

  it.each(['', 'order-7', '0b7c0000-0000-4000-8000-00000000c0d', `${fresh}0`, 7, null])(
    'does not take %j for a UUID',
    (id) => {
      expect(refusal(() => made({ id: id as string }))).toBe('INVALID_ID id');
    },
  );

  it('has the same id for the same key and destination, and only then', () => {
    const id = (dedupeKey: string, to = orders) => made({ dedupeKey }, to).messageId;
    expect(id('a')).toBe(id('a'));
    expect(id('a')).toBe(uuidOf('handler:orders', 'a'));
    expect(id('a')).not.toBe(id('b'));
    expect(id('a')).not.toBe(id('a', { kind: 'queue', address: 'orders' }));
    expect(made({ dedupeKey: 'a', id: fresh }).messageId).toBe(fresh);
  });

  it.each(['', 'x'.repeat(501), 'a\0', '\uD83D', 7, null])('does not take %j for a key', (key) => {
    expect(refusal(() => made({ dedupeKey: key as string }))).toBe('INVALID_TASK dedupeKey');
    expect(refusal(() => made({ orderingKey: key as string }))).toBe('INVALID_TASK orderingKey');
  });

  it('keeps its ordering key', () => {
    expect(made({ orderingKey: 'customer 7' }).orderingKey).toBe('customer 7');
  });

  it('takes its times as a Date or as ms, whole', () => {
    const { due, expiresAtMs } = made({ dueAt: new Date(NOW + 5), expiresAt: NOW + 7.9 });
    expect(due).toEqual({ atMs: NOW + 5 });
    expect(expiresAtMs).toBe(NOW + 7);
    expect(made({ dueAt: NOW - 5 }).due).toEqual({ atMs: NOW - 5 });
    expect(made({ dueAt: NOW + 10 * YEAR }).due).toEqual({ atMs: NOW + 10 * YEAR });
  });

  it.each([
    NaN,
    Infinity,
    -1,
    NOW + 10 * YEAR + 1,
    new Date('x'),
    'tomorrow',
    '',
    null,
    true,
    {},
    [],
    Symbol('now'),
    7n,
  ])('does not take %s for a time', (time) => {
    expect(refusal(() => made({ dueAt: time as number }))).toBe('INVALID_TASK dueAt');
    expect(refusal(() => made({ expiresAt: time as number }))).toBe('INVALID_TASK expiresAt');
  });

  it('keeps a clean copy of its context', () => {
    const context = { headers: { 'x-a': 'b\0' }, extra: { priority: 5, nothing: undefined } };
    expect(made({ context }).context).toEqual({
      headers: { 'x-a': 'b\uFFFD' },
      extra: { priority: 5 },
    });
    expect(made({ context: {} }).context).toEqual({});
  });

  it('does not take a context that is none, is too large, or cannot be written', () => {
    const ring: Record<string, unknown> = {};
    ring['self'] = ring;
    const contexts = [
      'text',
      7,
      [],
      () => 1,
      { extra: ring },
      { extra: { n: 7n } },
      { headers: { a: 'x'.repeat(32 * 1024) } },
    ];
    for (const context of contexts) {
      expect(refusal(() => made({ context: context as never }))).toBe('INVALID_TASK context');
    }
  });
});
