import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson } from './canonical-json.ts';

describe('canonical JSON, by the examples of RFC 8785', () => {
  it('serialises literals, texts and numbers (3.2.2)', () => {
    const value = {
      numbers: [333_333_333.333_333_3, 1e30, 4.5, 2e-3, 0.000000000000000000000000001],
      string: '\u20ac$\u000f\u000aA\'B"\\\\"/',
      literals: [null, true, false],
    };
    expect(canonicalJson(value)).toBe(
      `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA'B\\"\\\\\\\\\\"/"}`,
    );
  });

  it('sorts members by their UTF-16 units (3.2.3)', () => {
    const value = {
      '\u20ac': 'Euro Sign',
      '\r': 'Carriage Return',
      '\ufb33': 'Hebrew Letter Dalet With Dagesh',
      '1': 'One',
      '\ud83d\ude00': 'Emoji: Grinning Face',
      '\u0080': 'Control',
      '\u00f6': 'Latin Small Letter O With Diaeresis',
    };
    const names = Object.keys(JSON.parse(canonicalJson(value)) as object);
    const texts = [...canonicalJson(value).matchAll(/:"(.*?)"[,}]/g)].map((match) => match[1]);
    expect(texts).toEqual([
      'Carriage Return',
      'One',
      'Control',
      'Latin Small Letter O With Diaeresis',
      'Euro Sign',
      'Emoji: Grinning Face',
      'Hebrew Letter Dalet With Dagesh',
    ]);
    expect(names).toHaveLength(7);
  });

  /** The doubles of its appendix B, by their bits. */
  it.each([
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['ffefffffffffffff', '-1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['c340000000000000', '-9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['44b52d02c7e14af7', '1.0000000000000001e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef4f', '999999999999999900000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ])('prints the double %s as %s', (bits, text) => {
    const view = new DataView(new ArrayBuffer(8));
    view.setBigUint64(0, BigInt(`0x${bits}`));
    expect(canonicalJson(view.getFloat64(0))).toBe(text);
  });

  it('agrees with another implementation for random values', () => {
    const json = fc.jsonValue({ maxDepth: 5 }).map((value) => JSON.stringify(value));
    fc.assert(
      fc.property(json, (text) => {
        const value: unknown = JSON.parse(text);
        expect(canonicalJson(value)).toBe(canonicalize(value));
      }),
      { numRuns: 1000 },
    );
  });

  it('agrees with another implementation for random numbers', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        expect(canonicalJson(value)).toBe(canonicalize(value));
      }),
      { numRuns: 1000 },
    );
  });

  it('does not depend on the order of members', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const turned = Object.fromEntries(Object.entries(value).toReversed());
        expect(canonicalJson(turned)).toBe(canonicalJson(value));
      }),
    );
  });
});

describe('canonical JSON of what is not plain', () => {
  it('leaves out undefined members, and takes what toJSON gives', () => {
    const value = { b: undefined, a: new Date(0), d: { toJSON: () => [1] } };
    expect(canonicalJson(value)).toBe('{"a":"1970-01-01T00:00:00.000Z","d":[1]}');
  });

  it('takes objects without a prototype, and members of any name', () => {
    const bare = Object.assign(Object.create(null) as object, { a: 1 });
    expect(canonicalJson(bare)).toBe('{"a":1}');
    expect(canonicalJson(JSON.parse('{"__proto__":{"x":1},"constructor":2}'))).toBe(
      '{"__proto__":{"x":1},"constructor":2}',
    );
  });

  const ring: Record<string, unknown> = {};
  ring['ring'] = ring;
  let deep: unknown = 1;
  for (let i = 0; i < 100_000; i++) deep = [deep];

  it.each<[string, unknown, RegExp]>([
    ['a BigInt', { a: 1n }, /value\.a: a value of type bigint/],
    ['a function', [() => 1], /value\[0\]: a value of type function/],
    ['a symbol', Symbol('x'), /a value of type symbol/],
    ['undefined itself', undefined, /a value of type undefined/],
    ['undefined in a list', [undefined], /value\[0\]/],
    ['a hole in a list', Array.from({ length: 1 }), /value\[0\]/],
    ['NaN', NaN, /NaN/],
    ['Infinity', { x: { y: -Infinity } }, /value\.x\.y: -Infinity/],
    ['half a surrogate pair', ['\ud800'], /half a surrogate pair/],
    ['half a pair in a name', { '\udc00': 1 }, /half a surrogate pair/],
    ['a cycle', ring, /contains itself/],
    ['deep nesting', deep, /nesting over 256/],
    ['a Map', new Map([[1, 2]]), /a Map/],
    ['bytes', new Uint8Array(2), /a Uint8Array/],
    ['a boxed text', Object('x'), /a String/],
    ['an error', new Error('x'), /a Error/],
    ['a promise', Promise.resolve(1), /a Promise/],
    [
      'a getter that throws',
      {
        get a(): number {
          throw new Error('not now');
        },
      },
      /not now/,
    ],
    [
      'a toJSON that throws no error',
      {
        toJSON() {
          throw 'odd';
        },
      },
      /odd/,
    ],
  ])('refuses %s', (_, value, message) => {
    expect(() => canonicalJson(value)).toThrow(message);
    expect(() => canonicalJson(value)).toThrow(expect.objectContaining({ code: 'NOT_JSON' }));
  });

  it('refuses what throws anything at all when it is read, in a short sentence', () => {
    const odd = new Proxy(
      {},
      {
        ownKeys: () => {
          throw Object.create(null);
        },
      },
    );
    const refused = expect.objectContaining({ code: 'NOT_JSON' }) as Error;
    expect(() => canonicalJson(odd)).toThrow(refused);
    expect(() => canonicalJson({ ['k'.repeat(100_000)]: 1n })).toThrow(/^.{1,400}$/);
  });

  it('takes the same object twice, which is no cycle', () => {
    const twice = { x: 1 };
    expect(canonicalJson([twice, twice])).toBe('[{"x":1},{"x":1}]');
  });
});
