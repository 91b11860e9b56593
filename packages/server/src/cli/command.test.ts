import { describe, expect, it } from 'vitest';
import { command, readArguments } from './command.ts';

const show = command({
  name: 'review show',
  summary: 'Show.',
  usage: 'review show <id> [field]',
  options: {
    limit: { kind: 'number', value: 'n', min: 1, max: 10, whole: true, default: 5, summary: '' },
    state: { kind: 'choice', of: ['open', 'closed'], summary: '' },
    header: { kind: 'texts', value: 'name:value', short: 'H', summary: '' },
    wait: { kind: 'duration', value: 'time', summary: '' },
    note: { kind: 'text', value: 'text', summary: '' },
    all: { kind: 'flag', summary: '' },
  },
  examples: [],
  run: () => Promise.resolve(0),
});

const read = (...args: string[]) => readArguments(show, args);

describe('arguments', () => {
  it('are read by the table, with its defaults', () => {
    expect(read('7')).toEqual({
      type: 'run',
      args: {
        positionals: ['7'],
        json: false,
        options: {
          limit: 5,
          state: undefined,
          header: [],
          wait: undefined,
          note: undefined,
          all: false,
        },
      },
    });
    const line = '7 payload --limit 3 --state=open -H a:1 --header b:2 --wait 2s --note x --all';
    expect(read(...line.split(' '), '--json')).toEqual({
      type: 'run',
      args: {
        positionals: ['7', 'payload'],
        json: true,
        options: {
          limit: 3,
          state: 'open',
          header: ['a:1', 'b:2'],
          wait: 2000,
          note: 'x',
          all: true,
        },
      },
    });
  });

  it('that are faulty are all told at once', () => {
    const line = '7 --limit 11 --state opn --wait 30 --notes x --all=yes --note=';
    expect(read(...line.split(' '))).toEqual({
      type: 'faults',
      faults: [
        "--limit: '11' is not a whole number from 1 to 10.",
        "--state: 'opn' is not one of open, closed. Did you mean open?",
        '--wait: 30 what? Write 30s or 30ms.',
        '--notes: there is no such option. Did you mean --note?',
        '--all: takes no value.',
        '--note: needs a value.',
      ],
    });
  });

  it('are as many as the usage names', () => {
    expect(read()).toEqual({ type: 'faults', faults: ['<id> is missing.'] });
    expect(read('1', '2', '3')).toEqual({ type: 'faults', faults: ["'3' is one too many."] });
    const two = readArguments({ ...show, usage: 'review show <id> <file>' }, []);
    expect(two).toEqual({ type: 'faults', faults: ['<id> and <file> are missing.'] });
    const any = { ...show, usage: 'review show <id>...' };
    expect(readArguments(any, ['1', '2', '3'])).toMatchObject({ type: 'run' });
  });

  it('that ask for help get it, whatever else they say', () => {
    expect(read('--help', '--nonsense')).toEqual({ type: 'help' });
    expect(read('-h')).toEqual({ type: 'help' });
  });

  it('after -- are words', () => {
    expect(read('--', '--limit')).toMatchObject({
      type: 'run',
      args: { positionals: ['--limit'] },
    });
  });
});
