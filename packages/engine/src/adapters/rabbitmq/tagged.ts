/**
 * Values of AMQP field tables as JSON that names their exact type. A client reads an int64 and a byte both as a number,
 * and would write both as whatever fits: a consumer that asks for a long would get a byte then, and a large one another value.
 */

/** Numbers, by the byte that stands before them on the wire. The names are those that amqplib takes for writing. */
export const numbers = {
  b: { name: 'int8', bytes: 1 },
  B: { name: 'uint8', bytes: 1 },
  s: { name: 'int16', bytes: 2 },
  u: { name: 'uint16', bytes: 2 },
  I: { name: 'int32', bytes: 4 },
  i: { name: 'uint32', bytes: 4 },
  l: { name: 'int64', bytes: 8 },
  T: { name: 'timestamp', bytes: 8 },
  f: { name: 'float', bytes: 4 },
  d: { name: 'double', bytes: 8 },
} as const;

type NumberType = (typeof numbers)[keyof typeof numbers]['name'];

/**
 * A text, a boolean and null are themselves. A number is a text where JSON has no number for it: past 2^53, `NaN`, `-0`.
 * `text`: base64 of a text that is not UTF-8, or that not every database takes.
 */
export type Tagged =
  | string
  | boolean
  | null
  | readonly Tagged[]
  | { readonly '!': NumberType; readonly value: number | string }
  | { readonly '!': 'decimal'; readonly value: Readonly<Record<'places' | 'digits', number>> }
  | { readonly '!': 'bytes' | 'text'; readonly value: string }
  | { readonly '!': 'table'; readonly value: TaggedTable };

export type TaggedTable = Readonly<Record<string, Tagged>>;

/** Deeper than anybody means it. One that is deeper by far ends the stack of whoever reads it. */
export const MAX_DEPTH = 64;

/** A table that takes any name, `__proto__` too. */
export function emptyTable<T = Tagged>(): Record<string, T> {
  return Object.create(null) as Record<string, T>;
}

export function isArray(value: Tagged): value is readonly Tagged[] {
  return Array.isArray(value);
}

/** Bytes that a value takes on the wire, its type included. */
export function bytesOf(value: Tagged): number {
  if (typeof value === 'string') return 5 + Buffer.byteLength(value);
  if (typeof value === 'boolean') return 2;
  if (value === null) return 1;
  if (isArray(value)) return value.reduce((sum, one) => sum + bytesOf(one), 5);
  const type = value['!'];
  if (type === 'table') return bytesOfTable(value.value);
  if (type === 'decimal') return 6;
  if (type === 'bytes' || type === 'text') return 5 + Buffer.byteLength(value.value, 'base64');
  return 1 + bytesByName.get(type)!;
}

/** What is wrong with something that should be a tagged value; undefined: nothing is. What was stored may have been edited. */
export function faultOf(value: unknown, depth = 1): string | undefined {
  if (depth > MAX_DEPTH) return `is nested deeper than ${MAX_DEPTH}`;
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return undefined;
  if (Array.isArray(value)) return firstFault(value, depth);
  const { '!': type, value: inner } = Object(value) as { '!'?: unknown; value?: unknown };
  switch (type) {
    case 'bytes':
    case 'text':
      return typeof inner === 'string' ? undefined : 'is not base64';
    case 'decimal':
      return decimalFault(inner);
    case 'table':
      if (typeof inner !== 'object' || inner === null) return 'is no table';
      return Object.keys(inner).some(isLong)
        ? 'has a name of more than 255 bytes in it'
        : firstFault(Object.values(inner), depth);
    default:
      return bytesByName.has(type as string)
        ? numberFault(type as NumberType, inner)
        : 'is of no type that RabbitMQ knows';
  }
}

/** Too long for what AMQP calls a short string: names, and most properties. */
export function isLong(text: string): boolean {
  // No character has more than three bytes per unit: few are long enough to be counted.
  return text.length > 85 && Buffer.byteLength(text) > 255;
}

const bytesByName = new Map<string, number>(
  Object.values(numbers).map(({ name, bytes }) => [name, bytes]),
);

function bytesOfTable(table: TaggedTable): number {
  let bytes = 5;
  for (const name of Object.keys(table)) {
    bytes += 1 + Buffer.byteLength(name) + bytesOf(table[name]!);
  }
  return bytes;
}

function firstFault(values: readonly unknown[], depth: number): string | undefined {
  for (const value of values) {
    const fault = faultOf(value, depth + 1);
    if (fault) return fault;
  }
  return undefined;
}

function decimalFault(value: unknown): string | undefined {
  const { places, digits } = Object(value) as Record<string, unknown>;
  const isOne =
    isWhole(places, [0n, 255n]) && isWhole(digits, ranges.uint32) && typeof digits === 'number';
  return isOne ? undefined : 'is no decimal';
}

function numberFault(type: NumberType, value: unknown): string | undefined {
  const isOne =
    type === 'float' || type === 'double'
      ? Number.isFinite(value) || /^(-0|NaN|-?Infinity)$/.test(String(value))
      : isWhole(value, ranges[type]);
  return isOne ? undefined : `is no ${type}`;
}

type Range = readonly [bigint, bigint];

const ranges: Readonly<Record<Exclude<NumberType, 'float' | 'double'>, Range>> = {
  int8: [-(2n ** 7n), 2n ** 7n - 1n],
  uint8: [0n, 2n ** 8n - 1n],
  int16: [-(2n ** 15n), 2n ** 15n - 1n],
  uint16: [0n, 2n ** 16n - 1n],
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  uint32: [0n, 2n ** 32n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
  timestamp: [0n, 2n ** 64n - 1n],
};

function isWhole(value: unknown, [least, most]: Range): boolean {
  const isOne =
    typeof value === 'string' ? /^-?\d{1,20}$/.test(value) : Number.isSafeInteger(value);
  if (!isOne) return false;
  const whole = BigInt(value as string | number);
  return whole >= least && whole <= most;
}
