import type { Failure } from 'redrive';

const MAX_MESSAGE = 8 * 1024;
const MAX_WORD = 200;
const MAX_NAMES = 10;

/** A text without what no database takes: NUL, and half of a surrogate pair. */
function cleanText(text: string): string {
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
  const { code, message, names } = failure;
  return {
    ...failure,
    ...(code === undefined ? {} : { code: cleanText(code.slice(0, MAX_WORD)) }),
    ...(message === undefined ? {} : { message: cleanText(message.slice(0, MAX_MESSAGE)) }),
    ...(names === undefined
      ? {}
      : { names: names.slice(0, MAX_NAMES).map((name) => cleanText(name.slice(0, MAX_WORD))) }),
  };
}
