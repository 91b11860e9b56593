import { inspect } from 'node:util';
import type { Failure } from 'redrive';

const MAX_MESSAGE = 8 * 1024;
const MAX_WORD = 200;
const MAX_NAMES = 10;

/** A text without what no database takes: NUL, and half of a surrogate pair. */
export function cleanText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD');
}

/** JSON data whose texts, names included, any database takes. */
export function cleanData(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value);
  if (Array.isArray(value)) return value.map(cleanData);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [cleanText(name), cleanData(one)]),
  );
}

/** A failure as it is kept: clean, and not endless. */
export function cleanFailure(failure: Failure): Failure {
  const { code, message, names, ...rest } = failure;
  const kept: Failure = rest;
  if (code !== undefined) kept.code = cut(code, MAX_WORD);
  if (message !== undefined) kept.message = cut(message, MAX_MESSAGE);
  if (Array.isArray(names))
    kept.names = names.slice(0, MAX_NAMES).map((name) => cut(name, MAX_WORD));
  return kept;
}

/** Whatever somebody put there instead of a text. */
function cut(value: unknown, length: number): string {
  return cleanText((typeof value === 'string' ? value : inspect(value)).slice(0, length));
}
