import crypto from 'node:crypto';

/** A UUIDv5 by our own namespace: the same texts, the same id. */
export function uuidOf(...texts: readonly string[]): string {
  // With their lengths, so that ('a', 'bc') and ('ab', 'c') differ.
  const named = texts.map((text) => `${Buffer.byteLength(text)}:${text}`).join('');
  const digest = crypto.hash('sha1', Buffer.concat([namespace, Buffer.from(named)]), 'buffer');
  return formatted(digest.subarray(0, 16), 5);
}

const namespace = Buffer.from('6f1c3c1e9d5b4a7e8a2f0c4d7b9e1a35', 'hex');

/** A UUIDv7: its first half grows with time, so that new rows go to the end of an index. */
export function uuidAt(nowMs: number, random: () => number): string {
  const time = hex48(Math.max(0, Math.floor(nowMs)) % 2 ** 48);
  const version = (0x7000 + Math.floor(random() * 0x1000)).toString(16);
  const variant = (0x8000 + Math.floor(random() * 0x4000)).toString(16);
  const rest = hex48(Math.floor(random() * 2 ** 48));
  return `${time.slice(0, 8)}-${time.slice(8)}-${version}-${variant}-${rest}`;
}

/** By halves, with a leading 1 that keeps the zeros: writing one large number takes several times as long. */
function hex48(value: number): string {
  const high = (0x1000000 + Math.floor(value / 0x1000000)).toString(16);
  const low = (0x1000000 + (value % 0x1000000)).toString(16);
  return high.slice(1) + low.slice(1);
}

function formatted(bytes: Buffer, version: number): string {
  bytes[6] = (bytes[6]! & 0x0f) | (version << 4);
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const text = bytes.toString('hex');
  return `${text.slice(0, 8)}-${text.slice(8, 12)}-${text.slice(12, 16)}-${text.slice(16, 20)}-${text.slice(20)}`;
}
