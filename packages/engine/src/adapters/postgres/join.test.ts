import pg from 'pg';
import { expect, test, vi } from 'vitest';
import { join } from './join.ts';

test.each<[string, (query: unknown) => unknown, string]>([
  ['a pool', (query) => Object.assign(new pg.Pool(), { query }), 'is a pool'],
  ['something else', () => ({}), 'is no client'],
  ['nothing', () => null, 'is no client'],
])('says that %s is no transaction, and asks it nothing', async (_, of, said) => {
  const query = vi.fn();
  await expect(join(of(query))).rejects.toMatchObject({
    code: 'NOT_IN_TRANSACTION',
    message: expect.stringContaining(said) as string,
  });
  expect(query).not.toHaveBeenCalled();
});

test('passes on what a connection says that is gone', async () => {
  const gone = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
  const tx = { query: () => Promise.reject(gone) };
  await expect(join(tx)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
});
