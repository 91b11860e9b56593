import { type Database, describePostgres } from '@redrive/services/vitest';
import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ElementType, encodeArray } from './arrays.ts';

const text = fc.string({ unit: 'grapheme', maxLength: 40 }).map((one) => one.replaceAll('\0', ''));

/** What each type takes, and what `pg` gives back for it. */
const kinds: {
  type: ElementType;
  values: fc.Arbitrary<unknown>;
  back: (value: unknown) => unknown;
}[] = [
  { type: 'bool', values: fc.boolean(), back: (value) => value },
  { type: 'int4', values: fc.integer(), back: (value) => value },
  { type: 'int8', values: fc.maxSafeInteger(), back: Number },
  { type: 'float8', values: fc.double({ noNaN: true }), back: (value) => value },
  { type: 'text', values: text, back: (value) => value },
  {
    type: 'json',
    values: fc.jsonValue().map((value) => JSON.stringify(value)),
    back: (value) => value,
  },
  { type: 'uuid', values: fc.uuid(), back: (value) => value },
  {
    type: 'bytea',
    values: fc.uint8Array({ maxLength: 300 }),
    back: (value) => Uint8Array.from(value as Buffer),
  },
];

describePostgres(({ freshDatabase }) => {
  let database: Database;
  let client: pg.Client;

  beforeAll(async () => {
    database = await freshDatabase();
    client = new pg.Client(database.url);
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await database.drop();
  });

  test.each(kinds)(
    'gives a server every $type as it is, and nothing where there is nothing',
    async ({ type, values, back }) => {
      await fc.assert(
        fc.asyncProperty(fc.array(fc.option(values), { maxLength: 20 }), async (list) => {
          const { rows } = await client.query<{ value: unknown }>(
            `SELECT value${type === 'json' ? '::text' : ''} FROM unnest($1::${type}[]) WITH ORDINALITY AS a(value, n) ORDER BY n`,
            [encodeArray(type, list as never)],
          );
          const received = rows.map(({ value }) => (value === null ? null : back(value)));
          expect(received).toEqual(type === 'float8' ? list.map(asSent) : list);
        }),
        { numRuns: 30 },
      );
    },
  );
});

/** The text form that comes back has no sign for a zero. */
function asSent(value: unknown): unknown {
  return value === 0 ? expect.closeTo(0) : value;
}
