/** What a request says in `Idempotency-Key`. */
type KeyHeader = { state: 'absent' } | { state: 'malformed' } | { state: 'given'; key: string };

const MAX_KEY_LENGTH = 255;
/** The quotes, and a backslash before every character. */
const MAX_HEADER_LENGTH = 2 * MAX_KEY_LENGTH + 2;

/** A string of RFC 9651, which the draft asks for: `"8e03978e"`. */
const quoted = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/;
/** What most clients send: `8e03978e`. A comma would be two headers in one, a semicolon a parameter. */
const bare = /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]+$/;

/** Reads the header. `"abc"` and `abc` are the same key. */
export function readKeyHeader(header: string | null | undefined): KeyHeader {
  if (header === null || header === undefined) return { state: 'absent' };
  const text = header.trim();
  if (text.length > MAX_HEADER_LENGTH) return { state: 'malformed' };
  const inside = quoted.exec(text)?.[1]?.replaceAll(/\\(["\\])/g, '$1');
  const key = inside ?? bare.exec(text)?.[0] ?? '';
  return key === '' || key.length > MAX_KEY_LENGTH
    ? { state: 'malformed' }
    : { state: 'given', key };
}
