import { types } from 'node:util';

/** A value that JSON would replace without a word, and where in the payload it is: `payload.items.2.tags`. */
export interface JsonLoss {
  path: string;
  message: string;
}

/** What lies deeper is not looked at. */
const MAX_DEPTH = 500;

/**
 * The first value that would arrive as another one: a Map, a Set, NaN or Infinity. What JSON leaves out (undefined,
 * functions) and what says by `toJSON` how it is written is no loss. The value must not be cyclic. Nothing is allocated
 * where nothing is lost, since every submit pays for this.
 */
export function jsonLoss(value: unknown, path: string): JsonLoss | undefined {
  const found = lossIn(value, 0);
  return found && { path: [path, ...found.keys.toReversed()].join('.'), message: found.message };
}

/** The keys from the innermost to the outermost: they are gathered on the way back. */
interface Found {
  keys: string[];
  message: string;
}

function lossIn(value: unknown, depth: number): Found | undefined {
  if (typeof value === 'number') return lostNumber(value);
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return undefined;
  if (Array.isArray(value)) return lossInList(value, depth);
  if (Object.getPrototypeOf(value) !== Object.prototype) {
    if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return undefined;
    // Also those of another realm, such as a test runner's.
    if (types.isMap(value) || types.isSet(value)) return { keys: [], message: lostCollection };
  }
  // Cheaper than a list of the keys. What is inherited is told apart only where something is lost.
  for (const key in value) {
    const member = (value as Record<string, unknown>)[key];
    if (typeof member === 'string') continue;
    const found = lossIn(member, depth + 1);
    if (found && Object.hasOwn(value, key)) return within(key, found);
  }
  return undefined;
}

function lossInList(list: readonly unknown[], depth: number): Found | undefined {
  for (let i = 0; i < list.length; i++) {
    const member = list[i];
    if (typeof member === 'string') continue;
    const found = typeof member === 'number' ? lostNumber(member) : lossIn(member, depth + 1);
    if (found) return within(String(i), found);
  }
  return undefined;
}

function lostNumber(value: number): Found | undefined {
  if (Number.isFinite(value)) return undefined;
  const message = `JSON cannot hold ${String(value)}: it would arrive as null. Submit null, or a text.`;
  return { keys: [], message };
}

const lostCollection =
  'JSON cannot hold a Map or a Set: it would arrive as {}. Submit an array or an object.';

function within(key: string, found: Found): Found {
  found.keys.push(key);
  return found;
}
