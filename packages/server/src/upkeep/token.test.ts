import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { readText } from '../settings/values.ts';
import { variables } from '../settings/variables.ts';
import { makeToken } from './token.ts';

test('a token is random, and its entry is one that settings take', () => {
  const { token, entry, sha256 } = makeToken('ops', 'operator');
  expect(token).toMatch(/^redrive_[\w-]{43}$/);
  expect(createHash('sha256').update(token).digest('hex')).toBe(sha256);
  expect(makeToken('ops', 'operator').token).not.toBe(token);
  expect(readText(variables.tokens, entry)).toMatchObject({
    value: [{ name: 'ops', role: 'operator', sha256 }],
  });
});
