import { describe, expect, it } from 'vitest';
import { cursorOf, nameOf, pairOf, placeOf } from './cursor.ts';

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('cursors', () => {
  it('say where to go on', () => {
    expect(placeOf('tasks', cursorOf('tasks', 17))).toBe(17);
    expect(pairOf('groups', cursorOf('groups', 17, 'a/b'))).toEqual([17, 'a/b']);
    expect(nameOf('lanes', cursorOf('lanes', 'queue:ä'))).toBe('queue:ä');
    expect(placeOf('tasks', undefined)).toBeUndefined();
    expect(nameOf('lanes', undefined)).toBeUndefined();
    expect(pairOf('groups', undefined)).toBeUndefined();
  });

  it('can stand in a URL as they are', () => {
    expect(cursorOf('groups', 1, '?&=/ä')).toMatch(/^[\w-]+$/);
  });

  it.each([
    '',
    'x',
    '17',
    encoded(17),
    encoded(null),
    encoded({}),
    encoded(['tasks']),
    encoded(['items', 17]),
    encoded(['tasks', '17']),
    encoded(['tasks', -1]),
    encoded(['tasks', 1.5]),
    encoded(['tasks', 1e300]),
    encoded(['tasks', 1, 2]),
    encoded(['tasks', 'x'.repeat(2000)]),
  ])('are refused when they are broken: %s', (cursor) => {
    expect(() => placeOf('tasks', cursor)).toThrow(
      expect.objectContaining({ code: 'INVALID_CURSOR', status: 400 }),
    );
  });

  it.each([
    encoded(['groups', 1]),
    encoded(['groups', 1, '']),
    encoded(['groups', 'a', 'b']),
    encoded(['groups', 1, 'a\0']),
    encoded(['groups', 1, '\ud800']),
    encoded(['groups', 1, 'x'.repeat(501)]),
  ])('of pairs are refused when they are broken: %s', (cursor) => {
    expect(() => pairOf('groups', cursor)).toThrow('cursor');
  });

  it.each([
    encoded(['lanes']),
    encoded(['lanes', '']),
    encoded(['lanes', 1]),
    encoded(['lanes', 'a\0']),
    encoded(['lanes', 'x'.repeat(501)]),
    encoded(['lanes', 'a', 'b']),
    encoded(['groups', 'a']),
  ])('of names are refused when they are broken: %s', (cursor) => {
    expect(() => nameOf('lanes', cursor)).toThrow('cursor');
  });
});
