import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { assertKey, fingerprintOf, idempotencyKey, isSamePayload } from './key.ts';

describe('idempotencyKey', () => {
  it('is the SHA-256 of the canonical JSON of its four parts', () => {
    const text =
      '{"additional_params":{"a":[1,{"c":3,"d":2}],"switch_name":"all"},"correlation_id":"c-1","operation":"update","tenant_id":"t-1"}';
    const key = idempotencyKey({
      operation: 'update',
      tenantId: 't-1',
      correlationId: 'c-1',
      additionalParams: { switch_name: 'all', a: [1, { d: 2, c: 3 }] },
    });
    expect(key).toBe(createHash('sha256').update(text).digest('hex'));
  });

  it('takes what is missing as an empty text and an empty object', () => {
    const text = '{"additional_params":{},"correlation_id":"","operation":"x","tenant_id":""}';
    const digest = createHash('sha256').update(text).digest('hex');
    expect(idempotencyKey({ operation: 'x' })).toBe(digest);
    const empty = { operation: 'x', tenantId: null, correlationId: '', additionalParams: null };
    expect(idempotencyKey(empty)).toBe(digest);
  });

  it('tells tenants, correlations and parameters apart', () => {
    const keys = [
      { operation: 'x' },
      { operation: 'y' },
      { operation: 'x', tenantId: 'a' },
      { operation: 'x', correlationId: 'a' },
      { operation: 'x', additionalParams: 'a' },
      { operation: 'x', additionalParams: ['a'] },
    ].map((parts) => idempotencyKey(parts));
    expect(new Set(keys).size).toBe(6);
  });

  it.each([
    ['no operation', {}, 'INVALID_KEY'],
    ['an empty operation', { operation: '' }, 'INVALID_KEY'],
    ['nothing', null, 'INVALID_KEY'],
    ['a BigInt', { operation: 'x', additionalParams: 1n }, 'NOT_JSON'],
    ['half a surrogate pair', { operation: '\ud800' }, 'NOT_JSON'],
  ])('refuses %s', (_, parts, code) => {
    expect(() => idempotencyKey(parts as never)).toThrow(expect.objectContaining({ code }));
  });
});

it.each([
  ['an empty key', '', /0 characters/],
  ['a long key', 'x'.repeat(256), /256 characters/],
  ['no text', 5, /is 5, not a text/],
  ['NUL', 'a\0b', /NUL/],
  ['half a surrogate pair', 'a\udc00', /surrogate/],
])('refuses %s', (_, key, message) => {
  expect(() => assertKey(key)).toThrow(message);
  expect(() => assertKey(key)).toThrow(expect.objectContaining({ code: 'INVALID_KEY' }));
});

it('takes keys of up to 255 characters', () => {
  expect(() => assertKey('x'.repeat(255))).not.toThrow();
  expect(() => assertKey('ключ 🔑')).not.toThrow();
});

it('compares payloads by their content, and only where there are two', () => {
  expect(fingerprintOf(undefined)).toBe('');
  expect(fingerprintOf({ a: 1, b: 2 })).toBe(fingerprintOf({ b: 2, a: 1 }));
  expect(fingerprintOf(null)).not.toBe(fingerprintOf({}));
  expect(isSamePayload('', 'x')).toBe(true);
  expect(isSamePayload('x', '')).toBe(true);
  expect(isSamePayload('x', 'x')).toBe(true);
  expect(isSamePayload('x', 'y')).toBe(false);
});
