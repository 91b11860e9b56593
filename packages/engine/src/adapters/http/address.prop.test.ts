import { BlockList, isIPv6 } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { contains, embeddedIn, kindOf, lastOf, parseAddress, parseRange } from './address.ts';

const never = new Set(['link-local', 'metadata', 'multicast', 'unspecified', 'broadcast']);

/** Close to the edges that matter, not only anywhere. */
const ipV4 = fc.oneof(
  fc.ipV4(),
  fc
    .tuple(
      fc.constantFrom(0, 10, 100, 127, 169, 172, 192, 198, 203, 224, 255),
      fc.constantFrom(0, 15, 16, 31, 32, 51, 63, 64, 127, 128, 168, 254, 255),
      fc.nat(255),
      fc.nat(255),
    )
    .map((bytes) => bytes.join('.')),
);
const ipV6 = fc.oneof(
  fc.ipV6(),
  ipV4.map((text) => `::ffff:${text}`),
  ipV4.map((text) => `64:ff9b::${text}`),
);

describe('any address', () => {
  it('has its own bytes back when they are read as an address', () => {
    fc.assert(
      fc.property(ipV4, (text) => {
        expect([...parseAddress(text)!].join('.')).toBe(text);
      }),
    );
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (bytes) => {
        const groups = Array.from({ length: 8 }, (_, i) =>
          ((bytes[2 * i]! << 8) | bytes[2 * i + 1]!).toString(16),
        );
        const address = parseAddress(groups.join(':'))!;
        expect(address).toEqual(address.length === 4 ? bytes.subarray(12) : bytes);
        // The shortened spelling is the same address.
        const shortened = new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
        expect(parseAddress(shortened)).toEqual(address);
      }),
    );
  });

  it('is in a range exactly when Node says so', () => {
    fc.assert(
      fc.property(ipV4, ipV4, fc.nat(32), (text, first, bits) => {
        const list = new BlockList();
        list.addSubnet(first, bits, 'ipv4');
        const range = parseRange(`${first}/${bits}`)!;
        expect(contains(range, parseAddress(text)!)).toBe(list.check(text, 'ipv4'));
        expect(list.check([...lastOf(range)].join('.'), 'ipv4')).toBe(true);
      }),
    );
    const wide = (text: string) => parseAddress(text)!.length === 16;
    fc.assert(
      fc.property(
        fc.ipV6().filter(wide),
        fc.ipV6().filter(wide),
        fc.nat(128),
        (text, first, bits) => {
          const list = new BlockList();
          list.addSubnet(first, bits, 'ipv6');
          const range = parseRange(`${first}/${bits}`)!;
          expect(contains(range, parseAddress(text)!)).toBe(list.check(text, 'ipv6'));
        },
      ),
    );
  });

  it('is public only outside of every special range', () => {
    const special = new BlockList();
    for (const range of [
      '0.0.0.0/8',
      '10.0.0.0/8',
      '100.64.0.0/10',
      '127.0.0.0/8',
      '169.254.0.0/16',
      '172.16.0.0/12',
      '192.168.0.0/16',
      '198.18.0.0/15',
      '224.0.0.0/3',
    ]) {
      const [first = '', bits] = range.split('/');
      special.addSubnet(first, Number(bits), 'ipv4');
    }
    for (const range of ['::/127', 'fc00::/7', 'fe80::/10', 'fec0::/10', 'ff00::/8']) {
      const [first = '', bits] = range.split('/');
      special.addSubnet(first, Number(bits), 'ipv6');
    }
    fc.assert(
      fc.property(fc.oneof(ipV4, ipV6), (text) => {
        if (special.check(text, isIPv6(text) ? 'ipv6' : 'ipv4')) {
          expect(kindOf(parseAddress(text)!), text).not.toBe('public');
        }
      }),
      { numRuns: 1000 },
    );
  });

  it('that hides another has the kind of the other', () => {
    fc.assert(
      fc.property(ipV4, fc.constantFrom('::ffff:', '64:ff9b::', '::ffff:0:'), (text, prefix) => {
        const inner = parseAddress(text)!;
        const outer = parseAddress(prefix + text)!;
        expect(kindOf(outer)).toBe(kindOf(inner));
        expect(embeddedIn(outer) ?? outer).toEqual(inner);
      }),
    );
  });

  it('that must never be reached cannot be spelled into another kind', () => {
    fc.assert(
      fc.property(ipV4, (text) => {
        const number = parseAddress(text)!.reduce((sum, byte) => sum * 256 + byte, 0);
        for (const spelling of [
          String(number),
          `0x${number.toString(16)}`,
          `0${number.toString(8)}`,
        ]) {
          const { hostname } = new URL(`http://${spelling}/`);
          expect(never.has(kindOf(parseAddress(hostname)!))).toBe(
            never.has(kindOf(parseAddress(text)!)),
          );
        }
      }),
    );
  });
});
