import { createHash } from 'node:crypto';

/** A UUIDv5 by our own namespace: the same texts, the same id. */
export function uuidOf(...texts: readonly string[]): string {
  const hash = createHash('sha1').update(namespace);
  // With their lengths, so that ('a', 'bc') and ('ab', 'c') differ.
  for (const text of texts) hash.update(`${Buffer.byteLength(text)}:`).update(text);
  return formatted(hash.digest().subarray(0, 16), 5);
}

const namespace = Buffer.from('6f1c3c1e9d5b4a7e8a2f0c4d7b9e1a35', 'hex');

/** A UUIDv7: its first half grows with time, so that new rows go to the end of an index. */
export function uuidAt(nowMs: number, random: () => number): string {
  const bytes = Buffer.alloc(16);
  bytes.writeUIntBE(Math.max(0, Math.floor(nowMs)) % 2 ** 48, 0, 6);
  for (let i = 6; i < 16; i += 2) bytes.writeUInt16BE(Math.floor(random() * 65_536), i);
  return formatted(bytes, 7);
}

function formatted(bytes: Buffer, version: number): string {
  bytes[6] = (bytes[6]! & 0x0f) | (version << 4);
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
