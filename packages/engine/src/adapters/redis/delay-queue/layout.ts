/** Where an entry is in Redis, and how it is written there. Pure. */
import type { DelayedEntry } from '../../../ports/delay-queue.ts';

/** The keys of one slot. They share a hash tag, so that a script may use all of them. */
export interface SlotKeys {
  readonly slot: number;
  readonly queue: string;
  readonly entries: string;
  readonly hands: string;
  /** Counts writes whose replication is waited for. */
  readonly fence: string;
}

export function slotKeys(prefix: string, slot: number): SlotKeys {
  const tag = `{${prefix}${slot}}`;
  return { slot, queue: `${tag}:q`, entries: `${tag}:e`, hands: `${tag}:h`, fence: `${tag}:f` };
}

/** By the id alone, since only that is known when an entry is cancelled. FNV-1a over UTF-16. */
export function slotOf(id: string, slots: number): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < id.length; i++) hash = Math.imul(hash ^ id.charCodeAt(i), 0x01000193);
  // Ids that differ in their last characters only would share low bits.
  hash ^= hash >>> 15;
  return (Math.imul(hash, 0x2c1b3c6d) >>> 0) % slots;
}

/** The payload after a 0, or after a 1 and the key with its length. */
export function contentOf({ id, key, payload }: DelayedEntry): Buffer {
  if (key === undefined || key === id) {
    const content = Buffer.allocUnsafe(1 + payload.byteLength);
    content[0] = 0;
    content.set(payload, 1);
    return content;
  }
  const text = Buffer.from(key);
  const content = Buffer.allocUnsafe(3 + text.length + payload.byteLength);
  content[0] = 1;
  content.writeUInt16BE(text.length, 1);
  content.set(text, 3);
  content.set(payload, 3 + text.length);
  return content;
}

export function readContent(id: string, content: Buffer): { key: string; payload: Uint8Array } {
  if (content[0] !== 1) return { key: id, payload: bytesOf(content.subarray(1)) };
  const end = 3 + content.readUInt16BE(1);
  return { key: content.toString('utf8', 3, end), payload: bytesOf(content.subarray(end)) };
}

/** A copy: the buffer is a part of what the connection has read. */
function bytesOf(part: Buffer): Uint8Array {
  return new Uint8Array(part);
}

/** Entries in one call of a script. More would hold up the server's other clients, and `unpack` fails at 8000 values. */
export const MAX_ENTRIES = 500;
const MAX_BYTES = 512 * 1024;

/** What belongs together by slot, in parts that one call of a script may have. */
export function partsBySlot<T>(
  all: readonly T[],
  slotFor: (one: T) => number,
  bytesIn: (one: T) => number = () => 0,
): { slot: number; part: T[] }[] {
  const open = new Map<number, { part: T[]; bytes: number }>();
  const parts: { slot: number; part: T[] }[] = [];
  for (const one of all) {
    const slot = slotFor(one);
    let current = open.get(slot);
    if (!current || current.part.length >= MAX_ENTRIES || current.bytes >= MAX_BYTES) {
      current = { part: [], bytes: 0 };
      open.set(slot, current);
      parts.push({ slot, part: current.part });
    }
    current.part.push(one);
    current.bytes += bytesIn(one);
  }
  return parts;
}
