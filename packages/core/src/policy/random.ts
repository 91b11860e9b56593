import type { Random } from '../clock.ts';

/**
 * The random number of a decision, in [0, 1), derived from (seed, key, attempt).
 *
 * The same question always gets the same answer, on any machine, so that instances agree and an audit
 * trail can be replayed: its values are part of the contract and pinned by tests.
 */
export function unitRandom(seed: number, key: string, attempt: number): number {
  const start = mix(seed, 0x9e3779b9 + Math.floor(seed / 4294967296));
  const high = mix(hashText(key, start), attempt);
  const low = mix(high, attempt + 0x7f4a7c15);
  return ((high >>> 0) * 2097152 + (low >>> 11)) / 9007199254740992;
}

/** A 64-bit hash of a text as 16 hex digits. For names and fingerprints, not against an adversary. */
export function hash64(text: string): string {
  return (
    hex(mix(hashText(text, 0x2545f491), text.length)) + hex(mix(hashText(text, 0x8f1bbcdc), 1))
  );
}

/** A generator of reproducible numbers in [0, 1): the same seed, the same sequence. */
export function seededRandom(seed: number): Random {
  let counter = 0;
  return () => unitRandom(seed, '', ++counter);
}

function hashText(text: string, start: number): number {
  let hash = start;
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
    hash ^= hash >>> 15;
  }
  return hash;
}

/** Spreads two numbers over 32 bits, so that neighbours (attempt 1 and 2) end up far apart. */
function mix(a: number, b: number): number {
  let hash = Math.imul(a ^ (a >>> 16), 0x85ebca6b) ^ Math.imul(b, 0xc2b2ae35);
  hash = Math.imul(hash ^ (hash >>> 13), 0x27d4eb2f);
  hash = Math.imul(hash ^ (hash >>> 15), 0x165667b1);
  return hash ^ (hash >>> 16);
}

function hex(hash: number): string {
  return (hash >>> 0).toString(16).padStart(8, '0');
}
