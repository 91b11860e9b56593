import { randomFillSync } from 'node:crypto';

const pool = Buffer.alloc(16 * 1024);
let used = pool.length;

/** A UUID that begins with the time, as Redrive makes them: an index takes them at its end. */
export function uuidBytes(): Buffer {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const bytes = Buffer.from(pool.subarray(used, (used += 16)));
  bytes.writeUIntBE(Date.now(), 0, 6);
  bytes[6] = (Number(bytes[6]) & 0x0f) | 0x70;
  bytes[8] = (Number(bytes[8]) & 0x3f) | 0x80;
  return bytes;
}
