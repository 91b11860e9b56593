/** What an IP address is for. Pure: texts to bytes, bytes to a kind. */
import { isIPv4, isIPv6 } from 'node:net';

/** 4 bytes or 16. An IPv4 address that is written as IPv6 (`::ffff:10.0.0.1`) is 4. */
export type Address = Uint8Array;

export interface AddressRange {
  first: Address;
  /** How many leading bits all of its addresses share. */
  bits: number;
}

export type AddressKind =
  | 'public'
  | 'loopback'
  | 'private'
  | 'link-local'
  | 'metadata'
  | 'multicast'
  | 'unspecified'
  | 'broadcast'
  | 'reserved';

/** Undefined where the text is no address. A zone (`%eth0`) says nothing about the kind and is left out. */
export function parseAddress(text: string): Address | undefined {
  if (isIPv4(text)) return Uint8Array.from(text.split('.'), Number);
  if (!isIPv6(text)) return undefined;
  const address = parseIPv6(text.replace(/%.*$/, ''));
  return contains(mapped, address) ? address.subarray(12) : address;
}

/** `10.0.0.0/8`, or one address. */
export function parseRange(text: string): AddressRange | undefined {
  const [written = '', length, ...rest] = text.split('/');
  const first = parseAddress(written);
  if (!first || rest.length > 0) return undefined;
  const width = first.length * 8;
  if (length === undefined) return { first, bits: width };
  // A mapped address has lost its first 96 bits.
  const lost = first.length === 4 && isIPv6(written) ? 96 : 0;
  const bits = /^\d{1,3}$/.test(length) ? Number(length) - lost : -1;
  return bits >= 0 && bits <= width ? { first: firstOf(first, bits), bits } : undefined;
}

export function contains({ first, bits }: AddressRange, address: Address): boolean {
  if (first.length !== address.length) return false;
  for (let i = 0, left = bits; left > 0; i++, left -= 8) {
    const differing = first[i]! ^ address[i]!;
    if (differing >> Math.max(0, 8 - left) !== 0) return false;
  }
  return true;
}

/** `10.1.2.3/8` begins with 10.0.0.0. */
function firstOf(address: Address, bits: number): Address {
  return address.map((byte, i) => byte & ~(0xff >> Math.min(8, Math.max(0, bits - i * 8))));
}

/** The last address of a range. */
export function lastOf({ first, bits }: AddressRange): Address {
  return first.map((byte, i) => byte | (0xff >> Math.min(8, Math.max(0, bits - i * 8))));
}

export function kindOf(address: Address): AddressKind {
  const inner = embeddedIn(address);
  if (inner) return kindOf(inner);
  const known = address.length === 4 ? kinds4 : kinds6;
  return known.find(([each]) => contains(each, address))?.[1] ?? 'reserved';
}

/** The IPv4 address that a translator or a tunnel reaches under this IPv6 one. */
export function embeddedIn(address: Address): Address | undefined {
  if (address.length === 4 || contains(loopback6, address)) return undefined;
  const [, at] = embeddings.find(([each]) => contains(each, address)) ?? [];
  return at === undefined ? undefined : address.subarray(at, at + 4);
}

/** `::ffff:0:0/96`, by its bytes: parsing needs it. */
const mapped: AddressRange = {
  first: Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0),
  bits: 96,
};
const loopback6 = range('::1');

/** Where the four bytes stand: compatible and translated addresses, NAT64, 6to4. */
const embeddings: readonly [AddressRange, number][] = [
  [range('::/96'), 12],
  [range('::ffff:0:0:0/96'), 12],
  [range('64:ff9b::/96'), 12],
  [range('2002::/16'), 2],
];

/** The first that matches counts. */
const kinds4: readonly [AddressRange, AddressKind][] = [
  [range('255.255.255.255'), 'broadcast'],
  // Linux takes all of these for itself.
  [range('0.0.0.0/8'), 'unspecified'],
  [range('127.0.0.0/8'), 'loopback'],
  [range('169.254.0.0/16'), 'link-local'],
  // Where clouds hand out credentials, outside of link-local.
  [range('100.100.100.200'), 'metadata'],
  [range('168.63.129.16'), 'metadata'],
  [range('192.0.0.192'), 'metadata'],
  [range('10.0.0.0/8'), 'private'],
  [range('172.16.0.0/12'), 'private'],
  [range('192.168.0.0/16'), 'private'],
  [range('100.64.0.0/10'), 'private'],
  [range('224.0.0.0/4'), 'multicast'],
  [range('192.0.0.0/24'), 'reserved'],
  [range('192.0.2.0/24'), 'reserved'],
  [range('192.88.99.0/24'), 'reserved'],
  [range('198.18.0.0/15'), 'reserved'],
  [range('198.51.100.0/24'), 'reserved'],
  [range('203.0.113.0/24'), 'reserved'],
  [range('240.0.0.0/4'), 'reserved'],
  [range('0.0.0.0/0'), 'public'],
];

/** What is in none of these is reserved. */
const kinds6: readonly [AddressRange, AddressKind][] = [
  [loopback6, 'loopback'],
  [range('fe80::/10'), 'link-local'],
  [range('fd00:ec2::254'), 'metadata'],
  [range('fd20:ce::254'), 'metadata'],
  [range('fc00::/7'), 'private'],
  [range('fec0::/10'), 'private'],
  [range('ff00::/8'), 'multicast'],
  // Teredo, which hides an IPv4 address, is among these.
  [range('2001::/23'), 'reserved'],
  [range('2001:db8::/32'), 'reserved'],
  [range('3fff::/20'), 'reserved'],
  [range('2000::/3'), 'public'],
];

/** For the tables above. */
function range(text: string): AddressRange {
  const parsed = parseRange(text);
  if (!parsed) throw new TypeError(`${text} is not a range of addresses`);
  return parsed;
}

/** Of a text that is known to be one. */
function parseIPv6(text: string): Address {
  const [head = '', tail] = text.split('::');
  const before = groupsOf(head);
  const after = groupsOf(tail ?? '');
  const bytes = new Uint8Array(16);
  bytes.set(before);
  bytes.set(after, 16 - after.length);
  return bytes;
}

/** The bytes of `2001:db8` or of `ffff:10.0.0.1`. */
function groupsOf(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    if (group.includes('.')) return group.split('.').map(Number);
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}
