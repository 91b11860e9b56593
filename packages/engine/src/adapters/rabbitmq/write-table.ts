/** Tagged values as amqplib takes them for writing. They must have no faults: see `faultOf`. */
import { isUtf8 } from 'node:buffer';
import { emptyTable, isArray, type Tagged, type TaggedTable } from './tagged.ts';

export function writableOf(value: Tagged): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (isArray(value)) return value.map(writableOf);
  switch (value['!']) {
    case 'table':
      return writableTable(value.value);
    case 'bytes':
      return Buffer.from(value.value, 'base64');
    case 'text': {
      const bytes = Buffer.from(value.value, 'base64');
      // amqplib writes texts from strings only, so that one which is no UTF-8 can go as bytes at best.
      return isUtf8(bytes) ? bytes.toString() : bytes;
    }
    case 'decimal':
      return value;
    case 'int64':
    case 'timestamp':
      return { '!': value['!'], value: BigInt(value.value) };
    case 'int8':
    case 'uint8':
    case 'int16':
    case 'uint16':
    case 'int32':
    case 'uint32':
    case 'float':
    case 'double':
      return { '!': value['!'], value: Number(value.value) };
  }
}

/**
 * A number of ours, always of the same type: a consumer that asks for an integer must not find a byte today and a short
 * tomorrow.
 */
export function writableNumber(value: number): unknown {
  if (!Number.isSafeInteger(value)) return { '!': 'double', value };
  return { '!': (value | 0) === value ? 'int32' : 'int64', value };
}

/**
 * Headers for amqplib, in one object that is filled anew. amqplib makes what it is given a prototype, which for an object
 * that never was one costs more than all else about a message; and most messages have the same names.
 */
export class HeaderSheet {
  #sheet: Record<string, unknown> = {};
  #names: string[] = [];

  /** Good until the next call. */
  write(headers: ReadonlyMap<string, unknown>): object {
    if (!this.#hasNames(headers)) {
      this.#sheet = {};
      this.#names = [...headers.keys()];
    }
    for (const [name, value] of headers) this.#put(name, value);
    return this.#sheet;
  }

  #hasNames(headers: ReadonlyMap<string, unknown>): boolean {
    if (headers.size !== this.#names.length) return false;
    let at = 0;
    for (const name of headers.keys()) if (name !== this.#names[at++]) return false;
    return true;
  }

  #put(name: string, value: unknown): void {
    if (name !== '__proto__') this.#sheet[name] = value;
    else Object.defineProperty(this.#sheet, name, { value, enumerable: true, writable: true });
  }
}

/** amqplib takes an object with a `!` of its own for a typed value, but writes inherited names like own ones. */
function writableTable(table: TaggedTable): unknown {
  const { '!': mark, ...rest } = table;
  const base = emptyTable<unknown>();
  if (mark !== undefined) base['!'] = writableOf(mark);
  const written = Object.create(base) as Record<string, unknown>;
  for (const name of Object.keys(rest)) written[name] = writableOf(rest[name]!);
  return written;
}
