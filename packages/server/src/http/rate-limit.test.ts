import type { FastifyRequest } from 'fastify';
import { expect, it } from 'vitest';
import { RateLimit } from './rate-limit.ts';

function requestOf(ip: string, url = '/api/v1/retries', headers: object = {}): FastifyRequest {
  return { ip, headers, routeOptions: { url } } as unknown as FastifyRequest;
}

function limitOf() {
  const clock = { ms: 0 };
  const limit = new RateLimit({ rateLimit: 2, criterionRateLimit: 3 }, () => clock.ms);
  const isFree = (...about: Parameters<typeof requestOf>) =>
    limit.check(requestOf(...about)) === undefined;
  return { clock, limit, isFree };
}

it('counts each client by itself, and begins anew after a second', () => {
  const { clock, limit, isFree } = limitOf();
  expect([isFree('a'), isFree('a'), isFree('a'), isFree('b')]).toEqual([true, true, false, true]);
  clock.ms = 999;
  expect(limit.check(requestOf('a'))).toMatchObject({
    code: 'RATE_LIMITED',
    headers: { 'retry-after': '1' },
  });
  clock.ms = 1000;
  expect(isFree('a')).toBe(true);
});

it('counts criteria apart', () => {
  const { isFree } = limitOf();
  const url = '/api/v1/criteria/:name';
  expect([1, 2, 3, 4].map(() => isFree('a', url))).toEqual([true, true, true, false]);
  expect([isFree('a'), isFree('a'), isFree('a')]).toEqual([true, true, false]);
});

it('lets probes through, unless they show a token', () => {
  const { isFree } = limitOf();
  const url = '/health/ready';
  expect([1, 2, 3].map(() => isFree('a', url))).toEqual([true, true, true]);
  const token = { authorization: 'Bearer x' };
  expect([1, 2, 3].map(() => isFree('a', url, token))).toEqual([true, true, false]);
});

it('remembers 5000 clients, and forgets the oldest first', () => {
  const { isFree } = limitOf();
  for (let i = 0; i < 5001; i++) for (let n = 0; n < 2; n++) isFree(`c${i}`);
  expect(isFree('c5000')).toBe(false);
  expect(isFree('c0')).toBe(true);
});
