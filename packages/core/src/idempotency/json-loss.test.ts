import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { jsonLoss } from './json-loss.ts';

class Order {
  readonly lines = new Set(['a']);
}

describe('what JSON would lose', () => {
  it.each<[string, unknown, string]>([
    ['NaN', NaN, 'NaN'],
    ['Infinity', { rate: Infinity }, 'Infinity at rate'],
    ['-Infinity', [0, [-Infinity]], '-Infinity at 1.0'],
    ['a Map', new Map(), 'a Map'],
    ['a Set', { items: [1, { tags: new Set([1]) }] }, 'a Set at items.1.tags'],
    ['a Map with fields of its own', Object.assign(new Map(), { name: 'x' }), 'a Map'],
    ['a Set of another realm', runInNewContext('({ tags: new Set([1]) })'), 'a Set at tags'],
    ['a Set in an object of a class', new Order(), 'a Set at lines'],
    ['NaN in an object without a prototype', bare({ n: NaN }), 'NaN at n'],
  ])('is named with its place: %s', (_, value, loss) => {
    const { lost, path } = jsonLoss(value)!;
    expect(path === '' ? lost : `${lost} at ${path}`).toBe(loss);
  });

  it.each<[string, unknown]>([
    ['plain data', { a: [1, 'x', null, true, { b: -0 }], c: undefined }],
    ['nothing', undefined],
    ['a Date, which is a text', { at: new Date(0) }],
    ['what has a toJSON', Object.assign(new Map(), { toJSON: () => [] })],
    ['what an object inherits', Object.create({ n: NaN })],
    ['a function, which JSON leaves out of an object', { f: () => NaN }],
    ['deep nesting', JSON.parse('['.repeat(2000) + ']'.repeat(2000))],
  ])('is nothing: %s', (_, value) => {
    expect(jsonLoss(value)).toBeUndefined();
  });
});

function bare(members: object): object {
  return Object.assign(Object.create(null) as object, members);
}
