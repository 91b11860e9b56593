import { describe, expect, it } from 'vitest';
import type { Io } from '../command.ts';
import {
  absolute,
  type Column,
  facts,
  grid,
  moment,
  type Output,
  outputOf,
  plural,
  relative,
} from './output.ts';
import { visibleLength } from './terminal.ts';

const now = Date.parse('2026-03-01T12:00:00Z');

describe('what a command writes', () => {
  it('is words without --json, and JSON with it', () => {
    const words = screen({});
    words.output.say('one', 'two');
    words.output.data({ a: 1 });
    expect(words.text()).toBe('one\ntwo\n');
    const data = screen({}, true);
    data.output.say('one');
    data.output.data({ a: 1 });
    data.output.data({ a: '\u009b' });
    expect(data.text()).toBe('{"a":1}\n{"a":"\\u009b"}\n');
  });

  it('has colours on a terminal, and none with NO_COLOR', () => {
    expect(screen({ isTty: true }).output.paint('red', 'x')).toBe('\u001b[31mx\u001b[0m');
    expect(screen({ isTty: true, env: { NO_COLOR: '1' } }).output.paint('red', 'x')).toBe('x');
    expect(screen({}).output.paint('red', 'x')).toBe('x');
  });

  it('is drawn again only for a person who does not want JSON', () => {
    expect(screen({ isTty: true }).output.live).toBe(true);
    expect(screen({ isTty: true }, true).output.live).toBe(false);
  });
});

describe('a table', () => {
  const columns: readonly Column[] = [
    { title: 'ID', right: true },
    { title: 'WHERE', least: 6 },
    { title: 'WHY', least: 5 },
    { title: 'NOTE', optional: true },
    { title: 'WHEN', optional: true },
  ];
  const rows = [
    ['1', 'queue:orders', { text: 'it was refused', style: 'red' }, 'n', 'now'],
    ['22', 'q', 'no', '', ''],
  ] as const;

  it('is as wide as it needs to be where nobody looks', () => {
    expect(grid(columns, rows, screen({}).output)).toEqual([
      'ID  WHERE         WHY             NOTE  WHEN',
      ' 1  queue:orders  it was refused  n     now',
      '22  q             no',
    ]);
  });

  it.each([40, 50, 60, 100])('has no line longer than %i columns, whatever is in it', (width) => {
    const { output } = screen({ isTty: true, columns: width });
    const odd = [
      ...rows,
      ['333', '日本語'.repeat(20), 'x'.repeat(99), 'y'.repeat(30), 'z'.repeat(30)],
    ];
    const widths = grid(columns, odd, output).map(visibleLength);
    expect(Math.max(...widths)).toBeLessThanOrEqual(width);
  });

  it('leaves out what is optional before it cuts what is good to read', () => {
    const good = columns.map((column) => ({ ...column, ...(column.least ? { good: 12 } : {}) }));
    const { output } = screen({ isTty: true, columns: 40, env: { NO_COLOR: '1' } });
    expect(grid(good, rows, output)).toEqual([
      'ID  WHERE         WHY             NOTE',
      ' 1  queue:orders  it was refused  n',
      '22  q             no',
    ]);
  });

  it('leaves out what is optional and empty', () => {
    expect(grid(columns, [['1', 'a', 'b']], screen({}).output)[0]).toBe('ID  WHERE  WHY');
  });

  it('leaves out the last ones where nothing may be cut', () => {
    const wide = [{ title: 'A'.repeat(30) }, { title: 'B'.repeat(30) }];
    expect(
      grid(wide, [], screen({ isTty: true, columns: 40, env: { NO_COLOR: '1' } }).output),
    ).toEqual(['A'.repeat(30)]);
  });
});

describe('facts', () => {
  it('stand in one column, several lines below each other, those that are not known not at all', () => {
    const lines = facts(
      [
        ['state', { text: 'open', style: 'red' }],
        ['headers', ['a: 1', 'b: 2']],
        ['gone', undefined],
      ],
      screen({}).output,
    );
    expect(lines).toEqual(['state    open', 'headers  a: 1', '         b: 2']);
  });
});

describe('times', () => {
  it.each([
    ['2026-03-01T12:00:12Z', 'in 12 s'],
    ['2026-03-01T11:57:00Z', '3 min ago'],
    ['2026-03-01T12:00:00.400Z', 'now'],
    ['nonsense', ''],
  ])('%s is %j', (at, text) => {
    expect(relative(at, now)).toBe(text);
  });

  it('are absolute in UTC, to the second', () => {
    expect(absolute('2026-03-01T13:00:00.123+01:00')).toBe('2026-03-01 12:00:00Z');
    expect(absolute('nonsense')).toBe('');
    expect(moment(now + 5000, now)).toBe('in 5 s (2026-03-01 12:00:05Z)');
  });
});

it('counts in words', () => {
  expect([plural(1, 'item'), plural(1200, 'item'), plural(0, 'policy is', 'policies are')]).toEqual(
    ['1 item', '1,200 items', '0 policies are'],
  );
});

function screen(io: Partial<Io>, json = false): { output: Output; text: () => string } {
  let text = '';
  const all: Io = {
    out: (part) => (text += part),
    err: () => {},
    env: {},
    cwd: '/',
    isTty: false,
    columns: 80,
    input: () => Promise.resolve(new Uint8Array()),
    ...io,
  };
  return { output: outputOf(all, json), text: () => text };
}
