import { describe, expect, it } from 'vitest';
import {
  bar,
  count,
  cut,
  duration,
  level,
  table,
  terminalOf,
  visibleLength,
  wrap,
} from './terminal.ts';

describe('a terminal', () => {
  it('has colours when a person is looking', () => {
    const terminal = terminalOf({ isTTY: true, columns: 80 }, {});
    expect(terminal.paint('red', 'down')).toBe('\u001B[31mdown\u001B[0m');
    expect(terminal.paint('red', '')).toBe('');
    expect(terminal.live).toBe(true);
  });

  it.each([
    ['a pipe', { isTTY: false }, {}],
    ['NO_COLOR', { isTTY: true }, { NO_COLOR: '1' }],
    ['NO_COLOR and FORCE_COLOR', { isTTY: true }, { NO_COLOR: '1', FORCE_COLOR: '1' }],
    ['a dumb terminal', { isTTY: true }, { TERM: 'dumb' }],
    ['FORCE_COLOR=0 on a pipe', {}, { FORCE_COLOR: '0' }],
  ])('has none with %s', (_name, stream, env) => {
    expect(terminalOf(stream, env).paint('bold', 'x')).toBe('x');
  });

  it('has colours on a pipe that asks for them', () => {
    expect(terminalOf({}, { FORCE_COLOR: '1' }).paint('bold', 'x')).not.toBe('x');
  });

  it('is as wide as it says, within reason, and 80 columns where nothing is said', () => {
    expect(terminalOf({}, {}).width).toBe(80);
    expect(terminalOf({ columns: 70 }, {}).width).toBe(70);
    expect(terminalOf({ columns: 300 }, {}).width).toBe(100);
    expect(terminalOf({ columns: 12 }, {}).width).toBe(40);
  });

  it('does not redraw lines that would not fit', () => {
    expect(terminalOf({ isTTY: true, columns: 12 }, {}).live).toBe(false);
  });
});

describe('drawing', () => {
  it('fills a bar to an eighth of a column', () => {
    expect(bar(0, 4)).toBe('');
    expect(bar(0.5, 4)).toBe('██');
    expect(bar(0.53125, 4)).toBe('██▏');
    expect(bar(2, 4)).toBe('████');
    expect(bar(-1, 4)).toBe('');
  });

  it('shows nothing as blank and a little as the lowest block', () => {
    expect([0, 1, 50, 100, 500].map((value) => level(value, 100)).join('')).toBe(' ▁▄██');
    expect(level(3, Infinity)).toBe('▁');
  });

  it('lines up the columns of a table, colours or not', () => {
    const { paint } = terminalOf({ isTTY: true }, {});
    const lines = table(
      [
        ['jitter', 'peak', 'end'],
        [paint('bold', 'none'), '1,000', ''],
      ],
      1,
    );
    expect(lines.map(visibleLength)).toEqual([18, 13]);
    expect(lines[0]).toBe('jitter   peak  end');
  });

  it('knows how many columns a letter takes', () => {
    expect(visibleLength('日本')).toBe(4);
    expect(visibleLength('e\u0301')).toBe(1);
    expect(visibleLength('🚀ok')).toBe(4);
  });

  it('cuts what is too long, and says so', () => {
    expect(cut('abcdef', 6)).toBe('abcdef');
    expect(cut('abcdefg', 6)).toBe('abcde…');
    expect(cut('日本語', 4)).toBe('日…');
  });

  it('breaks lines between words, and never between a number and its unit', () => {
    expect(wrap('it waits for 200 ms and then it calls', 17, '  ')).toEqual([
      'it waits for',
      '  200 ms and then',
      '  it calls',
    ]);
    expect(wrap('  indented', 40)).toEqual(['  indented']);
    expect(wrap('', 10)).toEqual(['']);
  });

  it.each([
    [0, '0 ms'],
    [613, '613 ms'],
    [1000, '1 s'],
    [1449, '1.4 s'],
    [90_000, '1.5 min'],
    [7_200_000, '2 h'],
    [172_800_000, '2 d'],
    [59_949, '59.9 s'],
    [59_950, '1 min'],
    [86_399_990, '1 d'],
  ])('says %i ms as %s', (ms, text) => {
    expect(duration(ms)).toBe(text);
  });

  it('groups the digits of large numbers', () => {
    expect(count(1_234_567)).toBe('1,234,567');
  });
});
