import type { InboxItem, Task } from '@redrive/engine';
import { describe, expect, it } from 'vitest';
import { account } from './account.ts';
import type { JournalEntry } from './journal.ts';

const id = '00000000-0000-4000-8000-000000000001';
const task = {
  id: 1,
  messageId: id,
  payload: new TextEncoder().encode('{"number":1,"plan":"works"}'),
  status: 'done',
  attempt: 0,
  maxAttempts: 3,
  finishedAtMs: 100,
} as Task;
const item = { messageId: id, reason: 'EXHAUSTED' } as InboxItem;

const accepted: JournalEntry = { type: 'accepted', number: 1, id, status: 'accepted' };
const began = (attempt = 1, atMs = 10): JournalEntry => ({ type: 'began', id, attempt, atMs });
const ended = (attempt = 1, how: 'worked' | 'threw' | 'aborted' = 'worked'): JournalEntry => ({
  type: 'ended',
  id,
  attempt,
  atMs: 20,
  how,
});
const settled = (
  to: 'done' | 'retry' | 'failed' | 'leaseLost',
  attempt = 1,
  delayMs = 30,
): JournalEntry => ({ type: 'settled', id, attempt, to, delayMs });

function child(name: string, wasKilled: boolean, ...entries: JournalEntry[]) {
  return { name, wasKilled, entries };
}

/** The accounts of one task that was executed so. */
function accountOf(of: {
  children: ReturnType<typeof child>[];
  tasks?: Task[];
  items?: InboxItem[];
}) {
  return account({ tasks: [task], items: [], ...of });
}

const good = child('a', false, accepted, began(), ended(), settled('done'));

describe('the accounts', () => {
  it('have no fault where all went well', () => {
    expect(accountOf({ children: [good] })).toEqual({
      faults: [],
      ends: { works: { done: 1 } },
      executions: { works: 1 },
      accepted: 1,
      duplicates: 0,
      cutOff: 0,
      leasesLost: 0,
    });
  });

  it.each([
    ['a kill', child('b', true, began(1, 5), ended())],
    ['a lost lease', child('b', false, began(1, 5), ended(), settled('leaseLost'))],
    ['an abort', child('b', false, began(1, 5), ended(1, 'aborted'), settled('retry', 1, 0))],
    ['a stop that did not wait', child('b', false, began(1, 5), { type: 'stopped' })],
  ])('excuse a duplicate by %s', (_, before) => {
    const { faults, duplicates } = accountOf({ children: [before, good] });
    expect({ faults, duplicates }).toEqual({ faults: [], duplicates: 1 });
  });

  it('know whose lease was lost where a process had a task twice', () => {
    const twice = [began(1, 5), ended(), began(1, 30), ended()];
    const late = child('a', false, ...twice, settled('done'), settled('leaseLost'));
    expect(accountOf({ children: [late] }).faults).toEqual([]);
    const wrong = child('a', false, began(1, 5), ended(), settled('done'), began(1, 30));
    expect(accountOf({ children: [wrong] }).faults).toHaveLength(1);
  });

  it.each([
    [
      'a task that was accepted and is gone',
      { children: [good], tasks: [] },
      'was accepted and is lost',
    ],
    [
      'a task that was left over',
      { children: [good], tasks: [{ ...task, status: 'pending' as const }] },
      'was left pending',
    ],
    [
      'a task that is done and never ran',
      { children: [child('a', false, accepted)] },
      'is done, but no execution of it worked',
    ],
    [
      'a task that is done though its execution threw',
      { children: [child('a', false, began(), ended(1, 'threw'), settled('done'))] },
      'is done, but no execution of it worked',
    ],
    [
      'a failed task that is not in the inbox',
      { children: [good], tasks: [{ ...task, status: 'failed' as const }] },
      'is failed without an item',
    ],
    ['a done task that is', { children: [good], items: [item] }, 'is done with an item'],
    [
      'two items of one task',
      { children: [good], tasks: [{ ...task, status: 'failed' as const }], items: [item, item] },
      'has several items',
    ],
    [
      'a task that was given up too soon',
      { children: [good], tasks: [{ ...task, status: 'failed' as const }], items: [item] },
      'is exhausted after attempt 1',
    ],
    [
      'more attempts than allowed',
      { children: [child('a', true, ...[1, 2, 3, 4].flatMap((n) => [began(n), ended(n)]))] },
      'has 4 attempts',
    ],
    [
      'an attempt that was left out',
      { children: [child('a', true, began(1), ended(), began(3), ended(3))] },
      'has attempts 1,3',
    ],
    [
      'a duplicate without a cause',
      { children: [good, child('b', false, began(1, 30), ended(), settled('done'))] },
      'attempt 1 was begun by b after a had it (done)',
    ],
    [
      'an execution of what was settled, also if its worker is killed then',
      { children: [good, child('b', true, began(1, 30))] },
      'attempt 1 was begun by b after a had it (done)',
    ],
    [
      'an execution of what is over',
      { children: [good, child('b', true, began(2, 101))] },
      'was begun by b after it was over',
    ],
    [
      'a retry before its time',
      {
        children: [
          child('a', false, began(), ended(1, 'threw'), settled('retry'), began(2, 49), ended(2)),
        ],
      },
      'was begun 1 ms early by a',
    ],
  ])('find %s', (_, evidence, fault) => {
    expect(accountOf(evidence).faults).toContain(`${id} ${fault}`);
  });
});
