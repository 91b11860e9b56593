import { expect, test } from 'vitest';
import { auditKeyOf } from './audit-key.ts';

test('the key of a UUID is the UUID', () => {
  const id = '0b7c5e0e-7d8e-4b43-9c56-0f7a3c1d2e4f';
  expect(auditKeyOf(id)).toBe(id);
});

test('any other text has a key too, which is short', () => {
  expect(auditKeyOf('')).toBe('');
  expect(auditKeyOf('a"b')).toBe('a\\');
  expect(auditKeyOf('🚀'.repeat(100))).toBe('🚀'.repeat(64));
});
