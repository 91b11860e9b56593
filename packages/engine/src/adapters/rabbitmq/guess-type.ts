/** Tagged values from what a client has made of a field table, where its bytes are not known. */
import { emptyTable, faultOf, type Tagged } from './tagged.ts';

/** Undefined for what stands for no value of a table. A number gets a type that surely holds it. */
export function guessed(value: unknown): Tagged | undefined {
  const tagged = guess(value, MOST_STEPS);
  return faultOf(tagged) === undefined ? (tagged as Tagged) : undefined;
}

/** Past what is taken, so that a value with a cycle in it ends there. */
const MOST_STEPS = 100;

function guess(value: unknown, steps: number): unknown {
  if (steps === 0) return undefined;
  if (typeof value === 'number') return number(value);
  if (typeof value === 'bigint') return { '!': 'int64', value: String(value) };
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Uint8Array) {
    return { '!': 'bytes', value: Buffer.from(value).toString('base64') };
  }
  if (Array.isArray(value)) return value.map((one) => guess(one, steps - 1));
  if (Object.hasOwn(value, '!')) return value;
  const table = emptyTable<unknown>();
  for (const [name, one] of Object.entries(value)) table[name] = guess(one, steps - 1);
  return { '!': 'table', value: table };
}

function number(value: number): unknown {
  if (Number.isSafeInteger(value) && !Object.is(value, -0)) {
    return { '!': (value | 0) === value ? 'int32' : 'int64', value };
  }
  const isWritten = Number.isFinite(value) && !Object.is(value, -0);
  return { '!': 'double', value: isWritten ? value : Object.is(value, -0) ? '-0' : String(value) };
}
