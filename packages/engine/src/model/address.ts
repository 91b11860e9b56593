import { createHash } from 'node:crypto';
import type { Destination } from './task.ts';

const MAX_BYTES = 255;
const PREFIX_BYTES = 200;
const HASH_DIGITS = 32;

/**
 * An address as it stands in `original_queue`, which holds 255 bytes: itself, or its beginning and a hash of the
 * whole. It is part of a task's identity, so what it gives must never change.
 */
export function queueNameOf(address: string): string {
  // No character takes more than 3 bytes per UTF-16 unit: most addresses need no counting.
  if (address.length * 3 <= MAX_BYTES) return address;
  const bytes = Buffer.from(address, 'utf8');
  if (bytes.length <= MAX_BYTES) return address;
  const hash = createHash('sha256').update(bytes).digest('hex').slice(0, HASH_DIGITS);
  return `${bytes.toString('utf8', 0, characterEnd(bytes, PREFIX_BYTES))}#${hash}`;
}

/** A URL without its query string and fragment, which may be personal. Undefined: the destination has neither. */
export function erasedAddress({ kind, address }: Destination): string | undefined {
  const end = kind === 'http' ? address.search(/[?#]/) : -1;
  return end === -1 ? undefined : address.slice(0, end);
}

/** What `original_queue` of such a task becomes. The number keeps two URLs apart that differ in their queries only. */
export function erasedQueueName(address: string, taskId: number): string {
  return queueNameOf(`${address}#erased-${taskId}`);
}

/** The last place up to `end` that does not cut a character in two. */
function characterEnd(bytes: Uint8Array, end: number): number {
  let at = end;
  while (at > 0 && (bytes[at]! & 0xc0) === 0x80) at -= 1;
  return at;
}
