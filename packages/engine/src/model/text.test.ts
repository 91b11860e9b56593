import type { Failure } from 'redrive';
import { describe, expect, it } from 'vitest';
import { cleanData, cleanFailure } from './text.ts';

describe('a text', () => {
  it('loses what no database takes', () => {
    expect(cleanData('a\0b')).toBe('a\uFFFDb');
    expect(cleanData('half \uD83D of a pair')).toBe('half \uFFFD of a pair');
    expect(cleanData('fine 😀 ümlaut')).toBe('fine 😀 ümlaut');
  });
});

describe('data', () => {
  it('is clean in every text and every name', () => {
    expect(cleanData({ 'a\0': ['b\0', { c: 'd\0' }], n: 1, t: true, z: null })).toEqual({
      'a\uFFFD': ['b\uFFFD', { c: 'd\uFFFD' }],
      n: 1,
      t: true,
      z: null,
    });
  });

  it('keeps a field called __proto__ a field', () => {
    const data = cleanData(JSON.parse('{"__proto__": {"polluted": true}}')) as object;
    expect(Object.keys(data)).toEqual(['__proto__']);
    expect('polluted' in data).toBe(false);
  });
});

describe('a failure', () => {
  it('is kept clean and not endless', () => {
    const failure = cleanFailure({
      class: 'technical',
      code: `E\0${'x'.repeat(500)}`,
      message: '\0'.repeat(10_000),
      names: Array.from({ length: 20 }, (_, i) => `Name\0${i}${'y'.repeat(500)}`),
      status: 500,
    });
    expect(failure.code).toHaveLength(200);
    expect(failure.message).toBe('\uFFFD'.repeat(8192));
    expect(failure.names).toHaveLength(10);
    expect(failure.names?.every((name) => name.length === 200 && !name.includes('\0'))).toBe(true);
    expect(failure.status).toBe(500);
  });

  it('has no more fields than it had', () => {
    const bare: Failure = { class: 'unknown' };
    expect(cleanFailure(bare)).toEqual(bare);
    expect(Object.keys(cleanFailure(bare))).toEqual(['class']);
  });
});
