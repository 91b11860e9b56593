import { describe, expect, it } from 'vitest';
import { readDestination } from './destination.ts';

describe('destinations', () => {
  it.each([
    ['queue:orders', { kind: 'queue', address: 'orders' }],
    ['queue:a:b c', { kind: 'queue', address: 'a:b c' }],
    ['https://API.example.com', { kind: 'http', address: 'https://api.example.com/' }],
    ['HTTP://localhost:1/x?y=1', { kind: 'http', address: 'http://localhost:1/x?y=1' }],
    [
      { kind: 'http', address: 'https://a.example/x' },
      { kind: 'http', address: 'https://a.example/x' },
    ],
    [
      { kind: 'queue', address: 'https://not.a.url' },
      { kind: 'queue', address: 'https://not.a.url' },
    ],
  ])('are read: %j', (given, destination) => {
    expect(readDestination(given)).toEqual({ destination });
  });

  it.each([
    ['orders', 'queue:NAME'],
    ['handler:charge', "to a 'handler'"],
    ['que:orders', "to a 'que'"],
    ['queue:', 'queue:NAME'],
    ['ftp://a/b', 'queue:NAME'],
    ['https://', 'not a URL'],
    ['https://user:pass@a.example/', 'credentials'],
    [{ kind: 'http', address: 'ftp://a/b' }, 'http: or https:'],
    [{ kind: 'http', address: 'orders' }, 'not a URL'],
  ])('are refused: %j', (given, words) => {
    expect(readDestination(given)).toEqual({
      fault: {
        in: 'body',
        path: '/destination',
        code: 'NO_DESTINATION',
        message: expect.stringContaining(words),
      },
    });
  });
});
