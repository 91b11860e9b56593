import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { memory } from '../adapters/memory/index.ts';
import { createEngine } from '../engine.ts';
import { jsonLoss } from './json-loss.ts';

const pathOf = (value: unknown) => jsonLoss(value, 'payload')?.path;

describe('what JSON would lose', () => {
  it.each<[unknown, string]>([
    [new Map(), 'payload'],
    [NaN, 'payload'],
    [{ tags: new Set([1]) }, 'payload.tags'],
    [{ a: { b: [{ c: 1 }, { c: -Infinity }] } }, 'payload.a.b.1.c'],
    [[[new Map()]], 'payload.0.0'],
    [[1, 2, NaN], 'payload.2'],
    [runInNewContext('({ tags: new Set([1]) })'), 'payload.tags'],
    [Object.assign(Object.create(null), { n: Infinity }), 'payload.n'],
    [
      new (class Order {
        lines = new Map();
      })(),
      'payload.lines',
    ],
  ])('is found in %o', (value, path) => {
    expect(pathOf(value)).toBe(path);
  });

  it.each<[unknown]>([
    [{ a: [1, 'b', null, true, undefined, () => 1], b: undefined, c: Symbol('d') }],
    [{ at: new Date(), bytes: Buffer.from('a'), url: new URL('https://a.test') }],
    [{ tags: Object.assign(new Set([1]), { toJSON: () => [1] }) }],
    // JSON writes no inherited members.
    [Object.create({ n: NaN })],
    [undefined],
  ])('is not found in %o', (value) => {
    expect(pathOf(value)).toBeUndefined();
  });

  it('is looked for to a depth that no stack minds', () => {
    const nested = (depth: number, value: unknown) => {
      let outer = value;
      for (let i = 0; i < depth; i++) outer = { a: outer };
      return outer;
    };
    expect(pathOf(nested(400, NaN))).toBe(`payload${'.a'.repeat(400)}`);
    expect(pathOf(nested(3000, NaN))).toBeUndefined();
  });

  it('is refused by submit with its place, together with other faults', async () => {
    const engine = createEngine({ store: memory() });
    await expect(engine.submit('a', { tags: new Set([1]) })).rejects.toMatchObject({
      code: 'INVALID_PAYLOAD',
      faults: [{ path: 'payload.tags' }],
    });
    const both = engine.submit('a', { rate: NaN }, { maxAttempts: 0 });
    await expect(both).rejects.toMatchObject({
      faults: [{ path: 'payload.rate' }, { path: 'maxAttempts' }],
    });
    const cyclic: Record<string, unknown> = {};
    Object.assign(cyclic, { a: cyclic, b: cyclic });
    await expect(engine.submit('a', cyclic)).rejects.toMatchObject({
      code: 'INVALID_PAYLOAD',
      faults: [{ path: 'payload' }],
    });
    await engine.stop();
  });
});
