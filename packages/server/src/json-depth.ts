/** The deepest nesting of arrays and objects that is read. Reading, writing and comparing recurse once per level. */
export const MAX_DEPTH = 512;

/**
 * The position of the first bracket that is nested deeper than `most` levels; undefined: there is none. Brackets within
 * strings do not count, and the text need not be JSON. Ask before `JSON.parse`, which takes a second for 8 MB of brackets.
 */
export function tooDeepAt(text: string, most = MAX_DEPTH): number | undefined {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === OPEN_ARRAY || code === OPEN_OBJECT) {
      if (++depth > most) return at;
    } else if (code === CLOSE_ARRAY || code === CLOSE_OBJECT) depth--;
  }
  return undefined;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const [OPEN_ARRAY, CLOSE_ARRAY] = [0x5b, 0x5d];
const [OPEN_OBJECT, CLOSE_OBJECT] = [0x7b, 0x7d];

/** The position of the closing quote, or the end of the text. A quote after an odd number of backslashes does not close. */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let before = at - 1;
    while (text.charCodeAt(before) === BACKSLASH) before--;
    if ((at - before) % 2 === 1) return at;
  }
  return text.length;
}
