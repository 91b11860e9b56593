/**
 * What others wrote, made fit to be shown. Payloads, headers and error texts are hostile: a terminal obeys escape
 * sequences, and direction marks make a text read as another.
 */

/** Controls of either set, marks of direction, breaks of line that are not seen, what has no width, half characters. */
const UNSAFE =
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}\ud800-\udfff]/gu;

const named: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** On one line, with what is not safe spelled out: `\x1b`, `\n`, `\u202e`. */
export function shown(text: string): string {
  return text.replace(UNSAFE, (character) => named[character] ?? spelled(character));
}

/** Line by line. */
export function shownLines(text: string): string[] {
  return text.split(/\r\n|\n/).map(shown);
}

/** On one line. It is the same value when it is read, and nothing in it is obeyed by a terminal. */
export function safeJson(value: unknown): string {
  return JSON.stringify(value).replace(UNSAFE, asJson);
}

/** For people: indented. */
export function prettyJson(value: unknown): string[] {
  return JSON.stringify(value, null, 2)
    .split('\n')
    .map((line) => line.replace(UNSAFE, asJson));
}

function spelled(character: string): string {
  const code = character.codePointAt(0) as number;
  return code < 0x100
    ? `\\x${code.toString(16).padStart(2, '0')}`
    : `\\u${code.toString(16).padStart(4, '0')}`;
}

function asJson(character: string): string {
  return Array.from({ length: character.length }, (_, i) => character.charCodeAt(i))
    .map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`)
    .join('');
}
