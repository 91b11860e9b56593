import { describe, expect, it } from 'vitest';
import { contains, kindOf, lastOf, parseAddress, parseRange } from './address.ts';

function kind(text: string): string | undefined {
  const address = parseAddress(text);
  return address && kindOf(address);
}

describe('the kind of an address', () => {
  it.each([
    ['8.8.8.8', 'public'],
    ['1.1.1.1', 'public'],
    ['11.0.0.0', 'public'],
    ['172.15.255.255', 'public'],
    ['172.32.0.0', 'public'],
    ['100.63.255.255', 'public'],
    ['100.128.0.0', 'public'],
    ['126.255.255.255', 'public'],
    ['128.0.0.0', 'public'],
    ['169.253.255.255', 'public'],
    ['223.255.255.255', 'public'],
    ['127.0.0.1', 'loopback'],
    ['127.255.255.255', 'loopback'],
    ['10.0.0.1', 'private'],
    ['172.16.0.0', 'private'],
    ['172.31.255.255', 'private'],
    ['192.168.255.1', 'private'],
    ['100.64.0.1', 'private'],
    ['100.127.255.255', 'private'],
    ['169.254.0.1', 'link-local'],
    ['169.254.169.254', 'link-local'],
    ['100.100.100.200', 'metadata'],
    ['168.63.129.16', 'metadata'],
    ['192.0.0.192', 'metadata'],
    ['0.0.0.0', 'unspecified'],
    ['0.1.2.3', 'unspecified'],
    ['224.0.0.1', 'multicast'],
    ['239.255.255.255', 'multicast'],
    ['255.255.255.255', 'broadcast'],
    ['240.0.0.1', 'reserved'],
    ['192.0.2.1', 'reserved'],
    ['198.19.255.255', 'reserved'],
    ['198.51.100.7', 'reserved'],
    ['203.0.113.7', 'reserved'],
    ['192.88.99.1', 'reserved'],
    ['192.0.0.8', 'reserved'],
  ])('%s is %s', (text, expected) => {
    expect(kind(text)).toBe(expected);
  });

  it.each([
    ['2606:4700:4700::1111', 'public'],
    ['2a00::1', 'public'],
    ['::1', 'loopback'],
    ['0:0:0:0:0:0:0:1', 'loopback'],
    ['::', 'unspecified'],
    ['fe80::1', 'link-local'],
    ['fe80::1%eth0', 'link-local'],
    ['febf:ffff::1', 'link-local'],
    ['fec0::1', 'private'],
    ['fc00::1', 'private'],
    ['fd12:3456::1', 'private'],
    ['fd00:ec2::254', 'metadata'],
    ['fd20:ce::254', 'metadata'],
    ['ff02::1', 'multicast'],
    ['2001:db8::1', 'reserved'],
    ['2001:0:4136:e378::1', 'reserved'],
    ['3fff::1', 'reserved'],
    ['100::1', 'reserved'],
    ['64:ff9b:1::1', 'reserved'],
    ['4000::1', 'reserved'],
  ])('%s is %s', (text, expected) => {
    expect(kind(text)).toBe(expected);
  });

  it.each(['127.0.0.1', '10.1.2.3', '169.254.169.254', '0.0.0.0', '255.255.255.255', '8.8.8.8'])(
    'of %s is the same inside every IPv6 address that leads to it',
    (text) => {
      const [a, b, c, d] = text.split('.').map(Number) as [number, number, number, number];
      const hex = [(a << 8) | b, (c << 8) | d].map((group) => group.toString(16)).join(':');
      for (const spelling of [
        `::ffff:${text}`,
        `::ffff:${hex}`,
        `::${text}`,
        `::ffff:0:${text}`,
        `64:ff9b::${text}`,
        `64:ff9b::${hex}`,
        `2002:${hex}::`,
        `2002:${hex}:1:2:3:4:5`,
      ]) {
        expect(kind(spelling), spelling).toBe(kind(text));
      }
    },
  );

  it('is not known of what is no address', () => {
    for (const text of [
      '',
      'localhost',
      '1.2.3',
      '0x7f.1',
      '1.2.3.4.5',
      '::1::',
      '[::1]',
      '10.0.0.0/8',
    ]) {
      expect(parseAddress(text), text).toBeUndefined();
    }
  });
});

describe('the spellings of an IPv4 address in a URL', () => {
  it.each([
    'http://127.1/',
    'http://0x7f.1/',
    'http://0x7f000001/',
    'http://2130706433/',
    'http://017700000001/',
    'http://0177.0.0.01/',
    'http://127.0.0.1./',
    'http://①②⑦.0.0.1/',
    'http://%31%32%37.0.0.1/',
  ])('%s is loopback by the time it is checked', (url) => {
    expect(kind(new URL(url).hostname)).toBe('loopback');
  });

  it('of IPv6 too', () => {
    expect(kind(new URL('http://[::FFFF:7F00:1]/').hostname.slice(1, -1))).toBe('loopback');
    expect(kind(new URL('http://[0:0::0:1]/').hostname.slice(1, -1))).toBe('loopback');
  });
});

describe('a range of addresses', () => {
  it('is read with its length, or is one address', () => {
    expect(parseRange('10.0.0.0/8')).toEqual({ first: Uint8Array.of(10, 0, 0, 0), bits: 8 });
    expect(parseRange('10.0.0.7')?.bits).toBe(32);
    expect(parseRange('::1')?.bits).toBe(128);
    expect(parseRange('::ffff:10.0.0.0/104')).toEqual(parseRange('10.0.0.0/8'));
  });

  it('is not read where it makes no sense', () => {
    const odd = [
      '10.0.0.0/33',
      '10.0.0.0/-1',
      '10.0.0.0/',
      '10.0.0.0/8/8',
      '10/8',
      '::/129',
      'a/8',
      '::ffff:1.2.3.4/95',
      '10.0.0.0/1e1',
    ];
    for (const text of odd) expect(parseRange(text), text).toBeUndefined();
  });

  it('ends where its bits end', () => {
    expect(lastOf(parseRange('10.1.2.3/9')!)).toEqual(Uint8Array.of(10, 127, 255, 255));
    expect(lastOf(parseRange('10.1.2.3')!)).toEqual(Uint8Array.of(10, 1, 2, 3));
    expect(lastOf(parseRange('0.0.0.0/0')!)).toEqual(Uint8Array.of(255, 255, 255, 255));
  });

  it('holds no address of the other family', () => {
    expect(contains(parseRange('0.0.0.0/0')!, parseAddress('2a00::1')!)).toBe(false);
    expect(contains(parseRange('::/0')!, parseAddress('8.8.8.8')!)).toBe(false);
  });
});
