/** JSON without loss: what a payload says is passed on as it was said, whatever numbers can hold here. */

/** `{ rawJSON: '12345678901234567890' }` is written as those digits. In Node since 21; the types lag behind. */
const { rawJSON } = JSON as unknown as { rawJSON: (text: string) => object };

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown;

/** An integer of so many digits may be more than a double holds, up to 15 always fit; and so may such a power. */
const LONG_NUMBER = /\d{16}|(?:^|[\s:,[])-?[\d.]+[Ee]\+?\d{3}/;

/** Deeper than this nothing is shown as JSON: who writes it calls itself that often. */
const MAX_DEPTH = 500;

/** What a text says. Integers and powers beyond what a double holds are kept digit by digit. Throws a SyntaxError. */
export function parseExactly(text: string): unknown {
  // The usual case costs one look at the text.
  return LONG_NUMBER.test(text) ? parseWith(text, keepDigits) : (JSON.parse(text) as unknown);
}

/** What bytes say, if that is UTF-8 and JSON that can be written again; undefined: it is not. */
export function readPayload(bytes: Uint8Array): { value: unknown } | undefined {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    if (depthOf(text) > MAX_DEPTH) return undefined;
    return { value: parseExactly(text) };
  } catch {
    return undefined;
  }
}

const keepDigits: Reviver = (_, value, { source }) => {
  if (typeof value !== 'number' || source === undefined) return value;
  // As null it would be another message.
  if (!Number.isFinite(value)) return rawJSON(source);
  if (!/^-?\d{16,}$/.test(source)) return value;
  return BigInt(source) === BigInt(value) ? value : rawJSON(source);
};

function parseWith(text: string, reviver: Reviver): unknown {
  return (JSON.parse as (text: string, reviver: Reviver) => unknown)(text, reviver);
}

/** How deep brackets are nested, texts left out. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x22) i = endOfText(text, i);
    else if (code === 0x5b || code === 0x7b) deepest = Math.max(deepest, ++depth);
    else if (code === 0x5d || code === 0x7d) depth--;
  }
  return deepest;
}

/** Where the text that begins there ends. */
function endOfText(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x5c) i++;
    else if (code === 0x22) return i;
  }
  return text.length;
}
