import { describe, expect, it } from 'vitest';
import type { MoveProgress } from '../../upkeep/move.ts';
import { CommandError, type Io } from '../command.ts';
import { progressOf, summaryOf } from './move-progress.ts';
import { storeError } from '../store-error.ts';

const none = { tasks: 0, attempts: 0, items: 0, messages: 0, events: 0 };

function show(isTty: boolean, json: boolean, all: Partial<MoveProgress>[]): string {
  let text = '';
  const write = (part: string) => void (text += part);
  const io: Io = {
    out: write,
    err: write,
    env: {},
    cwd: '',
    isTty,
    columns: 80,
    input: () => Promise.resolve(new Uint8Array()),
  };
  const progress = progressOf(io, json);
  for (const one of all) {
    progress.show({
      step: 'tasks',
      moved: none,
      known: none,
      of: { ...none, tasks: 2000 },
      ...one,
    });
  }
  progress.end();
  return text;
}

describe('the progress of a move', () => {
  const half = { moved: { ...none, tasks: 1000 } };

  it('is one line on a terminal, and gone at the end', () => {
    const text = show(true, false, [{}, half]);
    expect(text).toContain('█'.repeat(15));
    expect(text).toContain('1,000 of 2,000 tasks');
    expect(text.endsWith('\r\u001B[K')).toBe(true);
    expect(text).not.toContain('\n');
  });

  it('is a line per step elsewhere, and nothing beside JSON', () => {
    const of = { ...none, tasks: 2000, events: 42 };
    const later = [
      { ...half, of, step: 'events' },
      { step: 'documents' },
      { step: 'done' },
    ] as const;
    expect(show(false, false, [half, half, ...later])).toBe(
      'tasks: 1,000 of 2,000\nevents: 0 of 42\n',
    );
    expect(show(false, true, [half])).toBe('');
  });

  it('ends with what was moved, and what was not', () => {
    const text = summaryOf({
      type: 'moved',
      moved: { ...none, tasks: 1200, items: 3 },
      known: { ...none, tasks: 2 },
      openJobs: 1,
      renamedTo: 'redrive.db.moved-2026-01-31',
    });
    expect(text).toContain('Moved 1,200 tasks');
    expect(text).toContain('Known there already, and left as they are there: 2 tasks, 0 items.');
    expect(text).toContain('Left behind: 1 bulk job ');
    expect(text).toContain('redrive.db.moved-2026-01-31');
  });
});

describe('a store that cannot be had', () => {
  it.each([
    [Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }), 69],
    [Object.assign(new Error('all failed'), { errors: [{ code: 'ECONNREFUSED' }] }), 69],
    [Object.assign(new Error('shutting down'), { code: '57P01' }), 69],
    [new Error('Connection terminated unexpectedly'), 69],
    [Object.assign(new Error('password authentication failed'), { code: '28P01' }), 77],
    [Object.assign(new Error('database "x" does not exist'), { code: '3D000' }), 69],
  ])('%s ends with %i', (error, exit) => {
    expect(storeError(error)).toMatchObject({ name: 'CommandError', exit });
  });

  it('is not what any other error is', () => {
    const error = new TypeError('x is not a function');
    expect(storeError(error)).toBe(error);
    const known = new CommandError('known');
    expect(storeError(known)).toBe(known);
  });
});
