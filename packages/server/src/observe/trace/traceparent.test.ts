import { expect, it } from 'vitest';
import { readTraceparent, traceIdOf, writeTraceparent } from './traceparent.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const spanId = 'b7ad6b7169203331';

it('is read as it is written', () => {
  const text = `00-${traceId}-${spanId}-01`;
  expect(readTraceparent(text)).toEqual({ traceId, spanId, traceFlags: 1, isRemote: true });
  expect(writeTraceparent(readTraceparent(text)!)).toBe(text);
  expect(traceIdOf(text)).toBe(traceId);
});

it('keeps only the flag that is known, and takes later versions', () => {
  expect(readTraceparent(`00-${traceId}-${spanId}-fe`)?.traceFlags).toBe(0);
  expect(readTraceparent(`cc-${traceId}-${spanId}-01-more`)?.traceId).toBe(traceId);
});

it.each([
  undefined,
  7,
  '',
  `ff-${traceId}-${spanId}-01`,
  `00-${'0'.repeat(32)}-${spanId}-01`,
  `00-${traceId}-${'0'.repeat(16)}-01`,
  `00-${traceId.toUpperCase()}-${spanId}-01`,
  `00-${traceId}-${spanId}-01x`,
  `00-${traceId}-${spanId}`,
])('is not one: %s', (text) => {
  expect(readTraceparent(text)).toBeUndefined();
});
