import { describe, expect, test } from 'vitest';
import { differenceOf } from './difference.ts';
import type { InboxItem } from '../ports/inbox.ts';

const bytes = (value: unknown) =>
  new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value));

function item(payload: Uint8Array, edit: InboxItem['edit']): InboxItem {
  return {
    id: 1,
    taskId: 1,
    messageId: '00000000-0000-4000-8000-000000000001',
    destination: { kind: 'handler', address: 'orders' },
    lane: 'handler:orders',
    payload,
    context: { headers: { a: '1', b: '2' } },
    attempt: 1,
    maxAttempts: 4,
    generation: 0,
    state: 'open',
    occurrences: 1,
    firstSeenMs: 0,
    lastSeenMs: 0,
    reason: 'EXHAUSTED',
    failure: { class: 'transient' },
    fingerprint: 'f',
    ...(edit ? { edit } : {}),
  };
}

describe('the difference of an edit', () => {
  test('is nothing without one', () => {
    expect(differenceOf(item(bytes({}), undefined))).toEqual([]);
  });

  test('points at what changed in JSON, and at nothing else', () => {
    const before = { id: 7, lines: [{ price: 1 }, { price: 2 }], 'a/b': 'x', gone: true };
    const after = { id: 7, lines: [{ price: 1 }, { price: 3 }], 'a/b': 'y', added: null };
    expect(differenceOf(item(bytes(before), { payload: bytes(after) }))).toEqual([
      { path: '/payload/lines/1/price', before: 2, after: 3 },
      { path: '/payload/a~1b', before: 'x', after: 'y' },
      { path: '/payload/gone', before: true },
      { path: '/payload/added', after: null },
    ]);
  });

  test('goes by lines where the payload is other text, and by size where it is none', () => {
    expect(differenceOf(item(bytes('one\ntwo'), { payload: bytes('one\nthree') }))).toEqual([
      { path: '/payload/1', before: 'two', after: 'three' },
    ]);
    const binary = new Uint8Array([255, 254, 0]);
    expect(differenceOf(item(binary, { payload: new Uint8Array([255]) }))).toEqual([
      { path: '/payload', before: '3 bytes', after: '1 bytes' },
    ]);
  });

  test('shows by lines what JSON takes for the same, and gives up where it is too deep', () => {
    const edit = { payload: bytes('{"n":9007199254740993}') };
    expect(differenceOf(item(bytes('{"n":9007199254740992}'), edit))).toEqual([
      { path: '/payload/0', before: '{"n":9007199254740992}', after: '{"n":9007199254740993}' },
    ]);
    const deep = (end: number) => bytes('['.repeat(5000) + end + ']'.repeat(5000));
    const [found] = differenceOf(item(deep(1), { payload: deep(2) }));
    expect(found).toMatchObject({ before: 'too deep to compare' });
  });

  test('has headers and destination', () => {
    const edit = {
      headers: { a: '1', b: '3' },
      destination: { kind: 'handler', address: 'mails' },
    };
    expect(differenceOf(item(bytes({}), edit))).toEqual([
      { path: '/headers/b', before: '2', after: '3' },
      { path: '/destination', before: 'handler:orders', after: 'handler:mails' },
    ]);
  });

  test('stops somewhere, and is not misled by names of the language', () => {
    const long = Array.from({ length: 5000 }, (_, i) => i);
    const edit = { payload: bytes(long.map((n) => n + 1)) };
    expect(differenceOf(item(bytes(long), edit))).toHaveLength(1000);
    const odd = { payload: bytes('{"__proto__":{"x":1},"constructor":2}') };
    expect(differenceOf(item(bytes('{}'), odd))).toEqual([
      { path: '/payload/__proto__', after: { x: 1 } },
      { path: '/payload/constructor', after: 2 },
    ]);
  });
});
