import { describe, expect, it } from 'vitest';
import type { Publication } from '../../ports/broker.ts';
import { prepare } from './prepare.ts';
import { loadNats } from './library.ts';

await loadNats();

const MiB = 1024 * 1024;

function message(changes: Partial<Publication> = {}): Publication {
  return { address: 'orders.eu', payload: Buffer.from('x'), headers: {}, ...changes };
}

function prepared(changes: Partial<Publication> = {}, maxPayload = MiB) {
  const ready = prepare(message(changes), maxPayload);
  if (ready.outcome !== 'ready') throw new Error(ready.failure.message);
  return { ...ready, headers: Object.fromEntries(ready.headers ?? []) };
}

function refusal(changes: Partial<Publication>, maxPayload = MiB) {
  const ready = prepare(message(changes), maxPayload);
  return ready.outcome === 'ready' ? 'ready' : ready.failure;
}

describe('a message for NATS', () => {
  it.each(['', 'a b', 'a..b', '.a', 'a.', 'a.*', '>', 'a\n', 'a'.repeat(256)])(
    'is refused for the subject %j',
    (address) => {
      expect(refusal({ address })).toMatchObject({ code: 'INVALID_MESSAGE', class: 'technical' });
    },
  );

  it.each(['$JS.API.STREAM.DELETE.ORDERS', '$SYS.REQ.SERVER.PING', '_INBOX.a'])(
    'never goes to %s, which is a subject of the server itself',
    (address) => {
      expect(refusal({ address })).toMatchObject({ code: 'INVALID_MESSAGE' });
    },
  );

  it('is refused when it is larger than the server takes, headers included', () => {
    const payload = Buffer.alloc(100);
    expect(prepared({ payload }, 100).bytes).toBe(100);
    expect(refusal({ payload }, 99)).toMatchObject({ code: 'MESSAGE_TOO_LARGE' });
    const headers = { 'x-a': '1' };
    const bytes = 100 + 'NATS/1.0\r\nx-a: 1\r\n\r\n'.length;
    expect(prepared({ payload, headers }, bytes).bytes).toBe(bytes);
    expect(refusal({ payload, headers }, bytes - 1)).toMatchObject({ code: 'MESSAGE_TOO_LARGE' });
  });

  it('is refused when its headers are over 64 KiB', () => {
    const headers = { 'x-a': 'a'.repeat(65_530) };
    expect(refusal({ headers })).toMatchObject({ code: 'HEADERS_TOO_LARGE' });
  });

  it('is refused for a header that is neither text nor number', () => {
    const extra = { nats: { headers: { 'x-a': [{}] } } };
    expect(refusal({ extra })).toMatchObject({ code: 'INVALID_MESSAGE' });
  });

  it('has nothing on it that the server would act on', () => {
    const headers = { 'Nats-Rollup': 'all', 'nats-expected-last-sequence': '1', 'x-a': '1' };
    const extra = { nats: { headers: { 'Nats-TTL': ['1s', '2s'], 'x-b': ['1', '2'] } } };
    expect(prepared({ headers, extra }).headers).toEqual({ 'x-b': ['1', '2'], 'x-a': ['1'] });
  });

  it('has its content type once', () => {
    const contentType = 'text/plain';
    expect(prepared({ contentType }).headers).toEqual({ 'Content-Type': ['text/plain'] });
    const headers = { 'content-type': 'a/b' };
    expect(prepared({ contentType, headers }).headers).toEqual({ 'content-type': ['a/b'] });
  });

  it('lets the headers of its publisher go before those that were carried', () => {
    const extra = { nats: { headers: { 'x-a': ['1', '2'] } } };
    expect(prepared({ headers: { 'x-a': '3' }, extra }).headers).toEqual({ 'x-a': ['3'] });
  });

  it.each([null, 1, 'a', { headers: null }, { headers: 5 }])(
    'takes %j as what was carried without harm',
    (nats) => {
      expect(prepare(message({ extra: { nats } }), MiB).outcome).toBe('ready');
    },
  );
});

describe('the id by which a stream knows a message again', () => {
  const of = (headers: Record<string, string | number>, address = 'orders.eu') =>
    prepared({ headers, address }).headers['Nats-Msg-Id']?.[0];
  const task = {
    'x-retry-scheduler': 'true',
    'x-message-id': 'id',
    'x-redrive-generation': 0,
    'x-retry-count': 1,
    'x-redrive-body': 'body',
  };

  it('is the same for the same attempt', () => {
    expect(of(task)).toBe(of({ ...task }));
    expect(of({ ...task, 'x-original-error': 'other' })).toBe(of(task));
  });

  it.each([
    { 'x-retry-count': 2 },
    { 'x-redrive-generation': 1 },
    { 'x-redrive-body': 'other' },
    { 'x-message-id': 'other' },
  ])('is another one with %j', (change) => {
    expect(of({ ...task, ...change })).not.toBe(of(task));
  });

  it('is another one at another subject', () => {
    expect(of(task, 'orders.us')).not.toBe(of(task));
  });

  it('is only on messages of tasks: an id of somebody else is not one', () => {
    expect(of({ 'x-message-id': 'id' })).toBeUndefined();
    expect(of({ 'Nats-Msg-Id': 'id' })).toBeUndefined();
  });
});
