import { expect, test } from 'vitest';
import { isConfigError } from 'redrive';
import { postgres, type PostgresOptions } from '../index.ts';

function faultsOf(options: unknown): string[] {
  try {
    postgres(options as PostgresOptions);
    return [];
  } catch (error) {
    if (!isConfigError(error)) throw error;
    return error.faults.map(({ path }) => path);
  }
}

test('takes a URL alone, and a pool alone', () => {
  expect(faultsOf('postgres://localhost/app')).toEqual([]);
  expect(faultsOf({ url: 'postgresql://user:secret@host:6432/app?sslmode=require' })).toEqual([]);
  expect(faultsOf({ pool: { connect: () => Promise.reject(new Error('unused')) } })).toEqual([]);
});

test('lists every fault at once', () => {
  const options = {
    url: 'localhost:5432',
    listenUrl: 'http://host',
    schema: '',
    maxConnections: 0,
    statementTimeoutMs: 1.5,
    migrate: 'never',
    listen: 1,
    onFault: 'log',
    random: 4,
  };
  expect(faultsOf(options).sort()).toEqual(Object.keys(options).sort());
});

test.each([
  ['neither a URL nor a pool', {}],
  ['both of them', { url: 'postgres://host/app', pool: { connect: () => undefined } }],
])('refuses %s', (_, options) => {
  expect(faultsOf(options)).toEqual(['url']);
});

test('refuses a pool that is none, and a name that PostgreSQL would cut', () => {
  expect(faultsOf({ pool: {} })).toEqual(['pool']);
  expect(faultsOf({ url: 'postgres://host/app', schema: 'ä'.repeat(32) })).toEqual(['schema']);
});

test('suggests the option that was meant', () => {
  expect(() => postgres({ url: 'postgres://host/app', shcema: 'x' } as PostgresOptions)).toThrow(
    /schema/,
  );
});
