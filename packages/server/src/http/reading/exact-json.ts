/** JSON without loss: what a payload says is passed on as it was said, whatever numbers can hold here. */

import { MAX_DEPTH, tooDeepAt } from '../../json-depth.ts';

/** `{ rawJSON: '12345678901234567890' }` is written as those digits. In Node since 21; the types lag behind. */
const { rawJSON } = JSON as unknown as { rawJSON: (text: string) => object };

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown;

/** An integer of so many digits may be more than a double holds, up to 15 always fit; and so may such a power. */
const LONG_NUMBER = /\d{16}|(?:^|[\s:,[])-?[\d.]+[Ee]\+?\d{3}/;

/** A JSON text whose brackets are nested deeper than `MAX_DEPTH`. */
export class JsonTooDeep extends Error {
  override readonly name = 'JsonTooDeep';
  /** Where the bracket stands that is one too many. */
  readonly position: number;

  constructor(position: number) {
    super(`It is nested more than ${MAX_DEPTH} levels deep, from position ${position} on.`);
    this.position = position;
  }
}

/**
 * What a text says. Integers and powers beyond what a double holds are kept digit by digit. Throws a SyntaxError, or
 * `JsonTooDeep`.
 */
export function parseExactly(text: string): unknown {
  checkDepth(text);
  // The usual case costs one look at the text.
  return LONG_NUMBER.test(text) ? parseWith(text, keepDigits) : (JSON.parse(text) as unknown);
}

/** The same with numbers as JavaScript has them: for what is looked at, and not passed on. */
export function parsePlainly(text: string): unknown {
  checkDepth(text);
  return JSON.parse(text) as unknown;
}

function checkDepth(text: string): void {
  const position = tooDeepAt(text);
  if (position !== undefined) throw new JsonTooDeep(position);
}

/** What bytes say, if that is UTF-8 and JSON that can be written again; undefined: it is not. */
export function readPayload(bytes: Uint8Array): { value: unknown } | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
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
