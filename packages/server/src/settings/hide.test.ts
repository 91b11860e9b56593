import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { hiddenUrl } from './hide.ts';

test.each([
  ['postgres://me:hush@db:5432/x', 'postgres://me:***@db:5432/x'],
  ['postgres://me@db/x', 'postgres://me@db/x'],
  ['postgres://db/x?sslpassword=hush&user=me', 'postgres://db/x?sslpassword=***&user=me'],
  ['amqps://me:hush@mq/%2Fvhost', 'amqps://me:***@mq/%2Fvhost'],
  ['postgres://me:hu#sh@db/x', '***@db/x'],
  ['postgres://me:1/hush@db/x', '***@db/x'],
  ['postgres:/me:hush@db', '***@db'],
  ['no url at all', 'no url at all'],
  ['localhost:9090', 'localhost:9090'],
  ['localhost:9090?token=hush', 'localhost:9090?***'],
])('%s is shown as %s', (url, shown) => {
  expect(hiddenUrl(url)).toBe(shown);
});

test('of a URL whose path is a secret only the origin is shown', () => {
  expect(hiddenUrl('https://hooks.example.com/T0/hush?x=1', 'path')).toBe(
    'https://hooks.example.com/***',
  );
});

test('a password is never shown, encoded or not', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 10 }), fc.boolean(), (noise, isEncoded) => {
      const password = `hush${noise}hush`;
      const written = isEncoded ? encodeURIComponent(password) : password;
      expect(hiddenUrl(`postgres://me:${written}@db/x`)).not.toContain('hush');
    }),
  );
});
