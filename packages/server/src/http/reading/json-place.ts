/** Where a text stops being JSON: the parser of the platform does not always say. Only asked when it is none. */

type Wanted = 'value' | 'value or ]' | 'key' | 'key or }' | ':' | ', or ]' | ', or }' | 'end';
type Token = { type: 'sign' | 'text' | 'word' | 'none'; end: number };

/** The position of the first character that cannot stand where it does; undefined: it is JSON. */
export function faultPlace(text: string): number | undefined {
  const open: string[] = [];
  let wanted: Wanted = 'value';
  let at = 0;
  for (;;) {
    while (isSpace(text.charCodeAt(at))) at++;
    if (at === text.length) return wanted === 'end' ? undefined : at;
    const { type, end } = tokenAt(text, at);
    const next: Wanted | undefined =
      type === 'sign' ? afterSign(wanted, text[at]!, open) : afterOther(wanted, type, open);
    if (next === undefined) return type === 'none' ? end : at;
    wanted = next;
    at = end;
  }
}

const signs = new Set(Array.from('[]{}:,', (sign) => sign.charCodeAt(0)));

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

const WORD = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[Ee][+-]?\d+)?|true|false|null/y;

/** What stands there; `none`: nothing that JSON has, from `end` on. */
function tokenAt(text: string, at: number): Token {
  const first = text.charCodeAt(at);
  if (signs.has(first)) return { type: 'sign', end: at + 1 };
  if (first === 0x22) return textAt(text, at);
  WORD.lastIndex = at;
  return WORD.test(text) ? { type: 'word', end: WORD.lastIndex } : { type: 'none', end: at };
}

const ESCAPE = /\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4})/y;

/** Not by one expression: of a text of many megabytes that would remember every character. */
function textAt(text: string, start: number): Token {
  let at = start + 1;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === 0x22) return { type: 'text', end: at + 1 };
    if (code < 0x20) break;
    if (code === 0x5c) {
      ESCAPE.lastIndex = at;
      if (!ESCAPE.test(text)) break;
      at = ESCAPE.lastIndex;
    } else at++;
  }
  return { type: 'none', end: at };
}

/** What may come after a bracket, a colon or a comma; undefined: it may not stand here. */
function afterSign(wanted: Wanted, sign: string, open: string[]): Wanted | undefined {
  switch (sign) {
    case '[':
    case '{':
      if (!isValue(wanted)) return undefined;
      open.push(sign);
      return sign === '[' ? 'value or ]' : 'key or }';
    case ']':
      return wanted === 'value or ]' || wanted === ', or ]' ? closed(open) : undefined;
    case '}':
      return wanted === 'key or }' || wanted === ', or }' ? closed(open) : undefined;
    case ':':
      return wanted === ':' ? 'value' : undefined;
    default:
      if (wanted === ', or ]') return 'value';
      return wanted === ', or }' ? 'key' : undefined;
  }
}

function afterOther(
  wanted: Wanted,
  type: 'text' | 'word' | 'none',
  open: string[],
): Wanted | undefined {
  if (type === 'text' && (wanted === 'key' || wanted === 'key or }')) return ':';
  return type !== 'none' && isValue(wanted) ? afterValue(open) : undefined;
}

function isValue(wanted: Wanted): boolean {
  return wanted === 'value' || wanted === 'value or ]';
}

function closed(open: string[]): Wanted {
  open.pop();
  return afterValue(open);
}

function afterValue(open: readonly string[]): Wanted {
  const last = open.at(-1);
  if (last === undefined) return 'end';
  return last === '[' ? ', or ]' : ', or }';
}
