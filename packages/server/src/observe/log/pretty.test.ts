import { describe, expect, it } from 'vitest';
import { prettyLines } from './pretty.ts';

const time = '2025-01-01T12:34:56.789Z';

function shown(record: object, options: { isTTY?: boolean; env?: Record<string, string> } = {}) {
  const texts: string[] = [];
  const { isTTY = false, env = {} } = options;
  prettyLines({ write: (text) => texts.push(text), isTTY }, env).write(
    `${JSON.stringify({ level: 'info', time, service: 's', instance: 'i', msg: 'it works', ...record })}\n`,
  );
  return texts.join('');
}

describe('a line for people', () => {
  it('has the time, the level, the sentence and the fields', () => {
    expect(shown({ lane: 'queue:a', count: 3, why: 'two words' })).toBe(
      '12:34:56.789 INFO  it works lane=queue:a count=3 why="two words"\n',
    );
  });

  it('says why it failed, with the code', () => {
    expect(
      shown({ level: 'warn', err: { message: 'away', code: 'STORE_DOWN', stack: 'at x' } }),
    ).toBe('12:34:56.789 WARN  it works: away (STORE_DOWN)\n');
    expect(shown({ err: { odd: 1 } })).toContain('it works: {"odd":1}');
  });

  it('shows where, of an error without a code', () => {
    const stack = [
      'Error: boom',
      ...Array.from({ length: 12 }, (_, i) => `    at f${i} (x.ts:1:1)`),
    ];
    const text = shown({ level: 'error', err: { message: 'boom', stack: stack.join('\n') } });
    expect(text.split('\n').slice(0, 2)).toEqual([
      '12:34:56.789 ERROR it works: boom',
      '    at f0 (x.ts:1:1)',
    ]);
    expect(text.trimEnd().split('\n')).toHaveLength(9);
    expect(shown({ level: 'error', err: { message: 'boom' } })).toBe(
      '12:34:56.789 ERROR it works: boom\n',
    );
  });

  it('is coloured on a terminal only', () => {
    expect(shown({}, { isTTY: true })).toContain('\u001B[32mINFO \u001B[0m');
    expect(shown({}, { isTTY: true, env: { NO_COLOR: '1' } })).not.toContain('\u001B');
    expect(shown({ level: 'odd' }, { isTTY: true })).toContain('\u001B[1mODD  ');
  });

  it('lets nothing from outside move the cursor', () => {
    const text = shown({ msg: 'a\u001B[2Jb\nc', evil: '\u009B31m', 'k\n': 1 });
    const codes = Array.from(text.trimEnd(), (letter) => letter.charCodeAt(0));
    expect(codes.filter((code) => code < 32 || (code >= 127 && code < 160))).toEqual([]);
  });

  it('that is no record goes out as it came', () => {
    const texts: string[] = [];
    prettyLines({ write: (text) => texts.push(text) }, {}).write('what is this\n');
    expect(texts).toEqual(['what is this\n']);
  });
});
