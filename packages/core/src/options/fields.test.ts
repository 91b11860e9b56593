import { describe, expect, it } from 'vitest';
import type { Fault } from '../errors.ts';
import { defaultOf, type Fields, isName, joinPath, readFields } from './fields.ts';

const fields = {
  count: { kind: 'integer', min: 1, max: 10, default: 3 },
  ratio: { kind: 'number', min: 0, max: 1 },
  wait: { kind: 'duration', min: 5, default: 100 },
  waits: { kind: 'durations', max: 3 },
  flag: { kind: 'boolean', default: true },
  colour: { kind: 'choice', of: ['red', 'blue'], default: 'red' },
  words: { kind: 'names', known: ['transient', 'unknown'], default: [] },
  parts: { kind: 'objects', max: 2 },
} as const satisfies Fields;

function read(data: unknown, path = '') {
  const faults: Fault[] = [];
  const values = readFields(data, fields, Object.keys(fields), path, faults);
  return { values, faults: faults.map((fault) => [fault.path, fault.code]) };
}

describe('reading fields', () => {
  it('keeps what makes sense, durations in ms', () => {
    const data = {
      count: 2,
      ratio: 0.5,
      wait: '2s',
      waits: [0, '1s'],
      flag: false,
      colour: 'blue',
      words: ['transient', 'ECONNRESET', '429'],
      parts: { a: 1 },
    };
    expect(read(data)).toEqual({ values: { ...data, wait: 2000, waits: [0, 1000] }, faults: [] });
  });

  it('takes the ends of a range', () => {
    const ends = [
      { count: 1, ratio: 0, wait: 5, waits: [0], parts: {}, words: [] },
      { count: 10, ratio: 1, waits: [1, 2, 3], parts: { a: 1, b: 2 } },
    ];
    for (const data of ends) expect(read(data)).toEqual({ values: data, faults: [] });
  });

  it('leaves out what was not written, defaults too', () => {
    expect(read({})).toEqual({ values: {}, faults: [] });
    expect(read({ count: undefined })).toEqual({ values: {}, faults: [] });
  });

  it('lists every fault at once, each with its path', () => {
    const data = {
      count: 1.5,
      ratio: 2,
      wait: 4,
      waits: ['1s', 'soon', -1],
      flag: 1,
      colour: 'green',
      words: ['transiet', 'fine', ''],
      parts: { a: 1, b: 2, c: 3 },
      counts: 1,
    };
    expect(read(data, 'top')).toEqual({
      values: {},
      faults: [
        ['top.count', 'INVALID_VALUE'],
        ['top.ratio', 'INVALID_VALUE'],
        ['top.wait', 'INVALID_DURATION'],
        ['top.waits.1', 'INVALID_DURATION'],
        ['top.waits.2', 'INVALID_DURATION'],
        ['top.flag', 'INVALID_VALUE'],
        ['top.colour', 'INVALID_VALUE'],
        ['top.words.0', 'INVALID_VALUE'],
        ['top.words.2', 'INVALID_VALUE'],
        ['top.parts', 'INVALID_VALUE'],
        ['top.counts', 'UNKNOWN_FIELD'],
      ],
    });
  });

  it.each([
    ['count', [0, 11, NaN, Infinity, '3', null, [], 3n]],
    ['ratio', [-0.1, 1.1, NaN, '0.5', null]],
    ['wait', [0, -1, '5', null, Infinity]],
    ['waits', [[], [1, 2, 3, 4], '5s', 5, null, { length: 1, 0: 5 }]],
    ['flag', ['true', 0, null]],
    ['colour', ['', 'Red', ['red'], null, 0]],
    ['words', ['transient', null, { 0: 'transient' }, Array.from({ length: 101 }, () => 'a')]],
    ['parts', [[], null, 'a', 5, new Map()]],
  ])('refuses for %s what it does not take', (name, values) => {
    for (const value of values) {
      const { faults, values: kept } = read({ [name]: value });
      expect([faults.length, kept]).toEqual([1, {}]);
      expect(faults[0]?.[0]).toBe(name);
    }
  });

  it.each([
    ['null', null],
    ['a list', []],
    ['a text', 'count=3'],
    ['a function', () => ({})],
    ['a promise that was not awaited', Promise.resolve({ count: 3 })],
    ['a map', new Map([['count', 3]])],
    ['a date', new Date(0)],
    ['nothing', undefined],
  ])('refuses %s where an object is wanted', (_what, data) => {
    expect(read(data)).toEqual({ values: {}, faults: [['', 'INVALID_VALUE']] });
  });

  it('takes an object whatever its prototype is', () => {
    class Settings {
      count = 2;
    }
    const bare = Object.assign(Object.create(null) as object, { count: 2 });
    expect(read(new Settings()).values).toEqual({ count: 2 });
    expect(read(bare).values).toEqual({ count: 2 });
  });

  it('sees the holes of a list', () => {
    const holes: unknown[] = [1000];
    holes[2] = 3000;
    expect(read({ waits: holes }).faults).toEqual([['waits.1', 'INVALID_DURATION']]);
    expect(read({ waits: [undefined] }).faults).toEqual([['waits.0', 'INVALID_DURATION']]);
    expect(read({ words: [undefined] }).faults).toEqual([['words.0', 'INVALID_VALUE']]);
  });

  it('keeps a name once, in the order of writing', () => {
    expect(read({ words: ['b', 'a', 'b'] }).values).toEqual({ words: ['b', 'a'] });
  });

  it('takes -0 for 0', () => {
    expect(read({ ratio: -0 }).values).toEqual({ ratio: 0 });
  });

  it('knows no field by inheritance', () => {
    const data = JSON.parse('{"__proto__": {"count": 2}, "constructor": 1, "toString": 1}');
    expect(read(data)).toEqual({
      values: {},
      faults: [
        ['__proto__', 'UNKNOWN_FIELD'],
        ['constructor', 'UNKNOWN_FIELD'],
        ['toString', 'UNKNOWN_FIELD'],
      ],
    });
    expect(read(Object.create({ count: 2 }))).toEqual({ values: {}, faults: [] });
  });

  it('knows only the names it was given', () => {
    const faults: Fault[] = [];
    expect(readFields({ flag: true, count: 2 }, fields, ['count'], '', faults)).toEqual({
      count: 2,
    });
    expect(faults).toMatchObject([{ path: 'flag', code: 'UNKNOWN_FIELD' }]);
  });

  it('looks at a getter once', () => {
    let looks = 0;
    const data = {
      get count() {
        return ++looks === 1 ? 2 : 'something else';
      },
    };
    expect(read(data)).toEqual({ values: { count: 2 }, faults: [] });
  });

  it('passes over the `$schema` of a file, at its top only', () => {
    expect(read({ $schema: './x.json', count: 2 })).toEqual({ values: { count: 2 }, faults: [] });
    expect(read({ $schema: './x.json' }, 'parts.a').faults).toEqual([
      ['parts.a.$schema', 'UNKNOWN_FIELD'],
    ]);
  });
});

describe('a name', () => {
  const known = ['transient', 'unknown'];

  it.each([
    'transient',
    'ECONNRESET',
    '429',
    'TypeError',
    'UNKNOWN',
    'my own code',
    'any',
    '💥',
    'x'.repeat(200),
  ])('may be %s', (name) => {
    expect(isName(name, known)).toBe(true);
  });

  it.each([['transiet'], ['unknow'], [''], ['x'.repeat(201)], [429], [undefined], [null]])(
    'may not be %s',
    (name) => {
      expect(isName(name, known)).toBe(false);
    },
  );
});

describe('small helpers', () => {
  it('give the default of a field, where it has one', () => {
    expect(defaultOf(fields.count)).toBe(3);
    expect(defaultOf(fields.ratio)).toBeUndefined();
  });

  it('join a path', () => {
    expect(joinPath('', 'base')).toBe('base');
    expect(joinPath('overrides.429', 'base')).toBe('overrides.429.base');
  });
});
