import { EngineError } from '../../errors.ts';

/** A message id as its 16 bytes: less than half of its text in every index entry. */
export function bytesOfUuid(id: string): Uint8Array {
  const bytes = parse(id);
  if (bytes) return bytes;
  throw new EngineError('INVALID_ID', `The message id ${JSON.stringify(id)} is not a UUID.`);
}

/** The same for a search, where what is no UUID is only not found. */
export function bytesOfUuidOrNone(id: string): Uint8Array | undefined {
  return parse(id);
}

/** From the 32 digits that SQLite's `hex` gives. */
export function uuidOfHex(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

const pattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** Where in the text each byte's two digits are. */
const places = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

function parse(id: string): Uint8Array | undefined {
  if (!pattern.test(id)) return undefined;
  const bytes = new Uint8Array(16);
  for (let i = 0; i < 16; i++) {
    const at = places[i]!;
    bytes[i] = (digit(id.charCodeAt(at)) << 4) | digit(id.charCodeAt(at + 1));
  }
  return bytes;
}

/** 0-9 end in their own value; a-f and A-F end in 1 to 6. */
function digit(code: number): number {
  return code < 58 ? code & 15 : (code & 15) + 9;
}
