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

it.each([
  ['2001:db8:1:2::1', '2001:DB8:0001:2:ffff:ffff:ffff:ffff', 'one /64'],
  ['2001:db8::1', '2001:db8:0:0:5::9', 'one /64 with zeros left out'],
  ['::1', '::2', 'one /64 of nothing but zeros'],
  ['::ffff:192.0.2.7', '192.0.2.7', 'IPv4 written as IPv6'],
  ['fe80::1%eth0', 'fe80::2%eth1', 'one /64 of a link'],
])('counts %s and %s as one client: %s', (one, other) => {
  const { isFree } = limitOf();
  expect([isFree(one), isFree(other), isFree(one)]).toEqual([true, true, false]);
});

it.each([
  ['2001:db8:1:2::1', '2001:db8:1:3::1'],
  ['2001:db8::1', '2001:db8:0:1::1'],
  ['::1:0:0:0:1', '::2:0:0:0:1'],
  ['::ffff:192.0.2.7', '::ffff:192.0.2.8'],
])('counts %s and %s as two clients', (one, other) => {
  const { isFree } = limitOf();
  expect([isFree(one), isFree(one), isFree(other)]).toEqual([true, true, true]);
});
