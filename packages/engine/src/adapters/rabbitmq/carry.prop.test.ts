import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Received } from '../../ports/broker.ts';
import type { TaskContext } from '../../model/task.ts';
import { carriedContext } from './carry.ts';
import { prepare } from './checks.ts';
import { readTable } from './read-table.ts';
import { bytesOf, emptyTable, faultOf, type Tagged, type TaggedTable } from './tagged.ts';
import { HeaderSheet, writableOf } from './write-table.ts';

/** What amqplib puts on the wire. */
const require = createRequire(import.meta.url);
const codecPath = join(dirname(require.resolve('amqplib')), 'lib', 'codec.js');
const { encodeTable } = require(codecPath) as {
  encodeTable: (buffer: Buffer, table: object, offset: number) => number;
};

/** Without the length before it. */
function encoded(table: object): Buffer {
  const buffer = Buffer.alloc(1024 * 1024);
  return buffer.subarray(4, encodeTable(buffer, table, 0));
}

function written(table: TaggedTable): object {
  const headers = Object.entries(table).map(([name, value]) => [name, writableOf(value)] as const);
  return new HeaderSheet().write(new Map(headers));
}

const whole = (type: 'int8' | 'uint8' | 'int16' | 'uint16' | 'int32' | 'uint32') => {
  const bits = Number(/\d+/.exec(type)![0]);
  const [min, max] = type.startsWith('u')
    ? [0, 2 ** bits - 1]
    : [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1];
  return fc.integer({ min, max }).map((value): Tagged => ({ '!': type, value }));
};
const large = (type: 'int64' | 'timestamp', min: bigint, max: bigint) =>
  fc.bigInt({ min, max }).map((value): Tagged => {
    const isSafe = Number.isSafeInteger(Number(value));
    return { '!': type, value: isSafe ? Number(value) : String(value) };
  });
const real = (type: 'float' | 'double') =>
  (type === 'float' ? fc.float() : fc.double()).map((value): Tagged => {
    if (Object.is(value, -0)) return { '!': type, value: '-0' };
    return { '!': type, value: Number.isFinite(value) ? value : String(value) };
  });
const text = fc.string({ unit: 'binary' }).filter((one) => !one.includes('\0'));
/** Any name, those that JavaScript treats in its own way too; numbers stand in an order of their own. */
const name = fc
  .oneof(fc.constantFrom('__proto__', '!', 'constructor', 'x-a', ''), text)
  .filter((one) => Buffer.byteLength(one) <= 255 && !/^\d+$/.test(one));

const { value: anyValue } = fc.letrec<{ value: Tagged; table: Tagged }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    text,
    fc.boolean(),
    fc.constant(null),
    whole('int8'),
    whole('uint8'),
    whole('int16'),
    whole('uint16'),
    whole('int32'),
    whole('uint32'),
    large('int64', -(2n ** 63n), 2n ** 63n - 1n),
    large('timestamp', 0n, 2n ** 64n - 1n),
    real('float'),
    real('double'),
    fc
      .record({ places: fc.nat(255), digits: fc.nat({ max: 0xffff_ffff }) })
      .map((value): Tagged => ({ '!': 'decimal', value })),
    fc
      .uint8Array({ maxLength: 20 })
      .map((bytes): Tagged => ({ '!': 'bytes', value: Buffer.from(bytes).toString('base64') })),
    // A text with a NUL in it, which not every database takes.
    text.map((one): Tagged => ({ '!': 'text', value: Buffer.from(`${one}\0`).toString('base64') })),
    fc.array(tie('value'), { maxLength: 3 }),
    tie('table'),
  ),
  table: fc
    .array(fc.tuple(name, tie('value')), { maxLength: 3 })
    .map((entries): Tagged => ({ '!': 'table', value: tableOf(entries) })),
}));

function tableOf(entries: readonly (readonly [string, Tagged])[]): TaggedTable {
  const table = emptyTable();
  for (const [one, value] of entries) table[one] = value;
  return table;
}

const anyTable = fc.array(fc.tuple(name, anyValue), { maxLength: 6 }).map(tableOf);

const asJson = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

describe('any header table', () => {
  it('is read with every type, and written again byte for byte', () => {
    fc.assert(
      fc.property(anyTable, (table) => {
        const wire = encoded(written(table));
        const { table: read, lost } = readTable(wire);
        expect(lost).toEqual([]);
        expect(encoded(written(asJson(read)))).toEqual(wire);
        expect(asJson(read)).toEqual(asJson(table));
      }),
    );
  });

  it('has the size that was computed', () => {
    fc.assert(
      fc.property(anyTable, (table) => {
        const value: Tagged = { '!': 'table', value: table };
        expect(faultOf(asJson(value))).toBeUndefined();
        expect(bytesOf(value)).toBe(encoded(written(table)).length + 5);
      }),
    );
  });

  it('is never a reason to throw, whatever the bytes are', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const { table } = readTable(bytes);
        expect(faultOf({ '!': 'table', value: asJson(table) })).toBeUndefined();
      }),
    );
    fc.assert(
      fc.property(anyTable, fc.nat(), (table, at) => {
        const wire = encoded(written(table));
        expect(() => readTable(wire.subarray(0, at % (wire.length + 1)))).not.toThrow();
      }),
    );
  });
});

function receivedWith(table: TaggedTable): Received {
  const extra = { exchange: '', routingKey: 'q', properties: {}, table: encoded(written(table)) };
  return { tag: 1, payload: new Uint8Array(), headers: {}, redelivered: false, extra };
}

/** What stands on the message that goes out, but for what the engine adds. */
function republished({ headers, extra, contentType }: TaskContext): TaggedTable {
  const ready = prepare(
    {
      address: 'q',
      payload: new Uint8Array(),
      headers: { ...headers },
      ...(extra ? { extra } : {}),
      ...(contentType === undefined ? {} : { contentType }),
    },
    { frameBytes: 1 << 30, messageBytes: 1 << 30 },
  );
  if (ready.outcome === 'impossible') throw new Error(ready.failure.message);
  return readTable(encoded(new HeaderSheet().write(ready.headers))).table;
}

describe('what is carried', () => {
  it('goes out as it came in, through any store', () => {
    fc.assert(
      fc.property(anyTable, (table) => {
        const { context, lost } = carriedContext(receivedWith(table));
        expect(lost).toEqual([]);
        expect(asJson(republished(asJson(context)))).toEqual(asJson(table));
      }),
    );
  });

  it('holds nothing that belongs to the message that it came with', () => {
    const unwanted = fc.constantFrom(
      'CC',
      'BCC',
      'x-delay',
      'x-death',
      'x-first-death-queue',
      'x-last-death-reason',
      'x-retry-count',
      'x-message-id',
      'x-original-error',
      'x-original-queue',
      'x-original-exchange',
      'x-retry-scheduler',
      'x-redrive-generation',
      'x-redrive-seq',
    );
    fc.assert(
      fc.property(anyTable, fc.array(fc.tuple(unwanted, anyValue)), (table, added) => {
        const all = tableOf([...Object.entries(table), ...added]);
        const carried = carriedContext(receivedWith(all));
        expect(asJson(carried)).toEqual(asJson(carriedContext(receivedWith(table))));
      }),
    );
  });
});
