/** Reads a field table as it came over the wire, and loses no type. */
import { emptyTable, MAX_DEPTH, numbers, type Tagged, type TaggedTable } from './tagged.ts';

/**
 * A header that is nested too deep is left out and named in `lost`. So is one of a type that nobody knows, or that is cut
 * off, and with it what stands after it, since nobody can tell where that begins.
 */
export function readTable(bytes: Uint8Array): { table: TaggedTable; lost: string[] } {
  const table = emptyTable();
  const lost: string[] = [];
  const reader = new Reader(bytes);
  while (!reader.isAtEnd) {
    const name = reader.shortText();
    const end = reader.endOfValue();
    if (end === undefined) return { table, lost: [...lost, name] };
    const value = reader.value(1);
    if (value === undefined) lost.push(name);
    else table[name] = value;
    reader.offset = end;
  }
  return { table, lost };
}

/** A value is undefined where it cannot be told. */
class Reader {
  readonly #bytes: Buffer;
  offset = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get isAtEnd(): boolean {
    return this.offset >= this.#bytes.length;
  }

  shortText(): string {
    return this.#take(this.#take(1)[0] ?? 0).toString();
  }

  /** Where the value ends that stands here, by its type and length alone. */
  endOfValue(): number | undefined {
    const type = this.#typeAt(this.offset);
    const fixed = fixedBytes(type);
    if (fixed !== undefined) return this.#within(this.offset + 1 + fixed);
    if (!'SxAF'.includes(type) || this.#within(this.offset + 5) === undefined) return undefined;
    return this.#within(this.offset + 5 + this.#bytes.readUInt32BE(this.offset + 1));
  }

  value(depth: number): Tagged | undefined {
    const end = depth > MAX_DEPTH ? undefined : this.endOfValue();
    if (end === undefined) return undefined;
    const type = this.#typeAt(this.offset);
    const isLong = fixedBytes(type) === undefined;
    this.offset += isLong ? 5 : 1;
    if (type === 'A') return this.#array(end, depth);
    if (type === 'F') return this.#table(end, depth);
    return scalarOf(type, this.#take(end - this.offset));
  }

  #array(end: number, depth: number): Tagged[] | undefined {
    const values: Tagged[] = [];
    while (this.offset < end) {
      const value = this.value(depth + 1);
      if (value === undefined) return undefined;
      values.push(value);
    }
    return values;
  }

  #table(end: number, depth: number): Tagged | undefined {
    const table = emptyTable();
    while (this.offset < end) {
      const name = this.shortText();
      const value = this.value(depth + 1);
      if (value === undefined) return undefined;
      table[name] = value;
    }
    return { '!': 'table', value: table };
  }

  #typeAt(offset: number): string {
    return String.fromCharCode(this.#bytes[offset] ?? 0);
  }

  #within(end: number): number | undefined {
    return end <= this.#bytes.length ? end : undefined;
  }

  /** What is there of so many bytes. */
  #take(length: number): Buffer {
    const start = this.offset;
    this.offset += length;
    return this.#bytes.subarray(start, start + length);
  }
}

/** Undefined for a type that says its length itself, and for one that does not exist. */
function fixedBytes(type: string): number | undefined {
  if (type === 't') return 1;
  if (type === 'V') return 0;
  if (type === 'D') return 5;
  return Object.hasOwn(numbers, type) ? numbers[type as keyof typeof numbers].bytes : undefined;
}

function scalarOf(type: string, bytes: Buffer): Tagged {
  switch (type) {
    case 't':
      return bytes[0] !== 0;
    case 'V':
      return null;
    case 'S':
      return textOf(bytes);
    case 'x':
      return { '!': 'bytes', value: bytes.toString('base64') };
    case 'D':
      return { '!': 'decimal', value: { places: bytes[0]!, digits: bytes.readUInt32BE(1) } };
    default:
      return numberOf(numbers[type as keyof typeof numbers].name, bytes);
  }
}

function numberOf(name: (typeof numbers)[keyof typeof numbers]['name'], bytes: Buffer): Tagged {
  switch (name) {
    case 'int64':
      return { '!': name, value: exact(bytes.readBigInt64BE()) };
    case 'timestamp':
      return { '!': name, value: exact(bytes.readBigUInt64BE()) };
    case 'float':
      return { '!': name, value: written(bytes.readFloatBE()) };
    case 'double':
      return { '!': name, value: written(bytes.readDoubleBE()) };
    case 'int8':
    case 'int16':
    case 'int32':
      return { '!': name, value: bytes.readIntBE(0, bytes.length) };
    case 'uint8':
    case 'uint16':
    case 'uint32':
      return { '!': name, value: bytes.readUIntBE(0, bytes.length) };
  }
}

function exact(value: bigint): number | string {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : String(value);
}

/** JSON knows neither NaN nor the infinities, and forgets the sign of -0. */
function written(value: number): number | string {
  if (Object.is(value, -0)) return '-0';
  return Number.isFinite(value) ? value : String(value);
}

function textOf(bytes: Buffer): Tagged {
  const text = bytes.toString();
  // A sign for what is no UTF-8 may also have been meant.
  const isItself = !text.includes('\uFFFD') || Buffer.from(text).equals(bytes);
  if (isItself && !text.includes('\0')) return text;
  return { '!': 'text', value: bytes.toString('base64') };
}
