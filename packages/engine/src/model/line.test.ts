import { describe, expect, it } from 'vitest';
import { holdsPlace, leaseOf, lineOf, turnOf } from './line.ts';
import { newTask } from '../testing/fixtures.ts';
import type { Task } from './task.ts';

function rowOf(changes: Partial<Task> = {}): Task {
  const { due: _, record: __, ...task } = newTask();
  return { ...task, id: 1, dueAtMs: 0, visibleAtMs: 0, createdAtMs: 0, ...changes };
}

describe('lineOf', () => {
  it('is the lane and the key', () => {
    expect(lineOf(rowOf({ lane: 'a', orderingKey: 'k' }))).toEqual({ lane: 'a', key: 'k' });
  });

  it('takes an empty key for a key', () => {
    expect(lineOf(rowOf({ lane: 'a', orderingKey: '' }))).toEqual({ lane: 'a', key: '' });
  });

  it('is undefined without a key', () => {
    expect(lineOf(rowOf())).toBeUndefined();
  });
});

describe('leaseOf', () => {
  it('names the line of an ordered task', () => {
    const task = rowOf({ id: 7, lease: 9, lane: 'a', orderingKey: 'k' });
    expect(leaseOf(task)).toEqual({ id: 7, lease: 9, line: { lane: 'a', key: 'k' } });
  });

  it('has no line for another', () => {
    expect(leaseOf(rowOf({ id: 7, lease: 9 }))).toEqual({ id: 7, lease: 9 });
  });
});

describe('holdsPlace', () => {
  const key = { orderingKey: 'k' };

  it('holds while it is pending, whether its turn has come or not', () => {
    expect(holdsPlace(rowOf({ ...key, blocked: true }))).toBe(true);
    expect(holdsPlace(rowOf({ ...key, lease: 3 }))).toBe(true);
    expect(holdsPlace(rowOf({ ...key, onDead: 'release' }))).toBe(true);
  });

  it('holds in the inbox, unless it lets others pass', () => {
    expect(holdsPlace(rowOf({ ...key, status: 'failed' }))).toBe(true);
    expect(holdsPlace(rowOf({ ...key, status: 'failed', onDead: 'release' }))).toBe(false);
  });

  it.each(['done', 'retried', 'cancelled'] as const)('does not hold when it is %s', (status) => {
    expect(holdsPlace(rowOf({ ...key, status }))).toBe(false);
  });

  it('does not hold without a key', () => {
    expect(holdsPlace(rowOf())).toBe(false);
    expect(holdsPlace(rowOf({ status: 'failed' }))).toBe(false);
  });
});

describe('turnOf', () => {
  const pending = { id: 3, status: 'pending' } as const;
  const failed = { id: 3, status: 'failed' } as const;

  it('gives the turn to the first where nobody has it', () => {
    expect(turnOf(pending, [])).toEqual({ block: [], unblock: 3 });
  });

  it('leaves it with the first', () => {
    expect(turnOf(pending, [{ id: 3 }])).toEqual({ block: [] });
    expect(turnOf(pending, [{ id: 3, lease: 1 }])).toEqual({ block: [] });
  });

  it('takes it from one that only waits, where an older one came back', () => {
    expect(turnOf(pending, [{ id: 5 }])).toEqual({ block: [5], unblock: 3 });
    expect(turnOf(failed, [{ id: 5 }])).toEqual({ block: [5] });
  });

  it('awaits one that is in delivery', () => {
    expect(turnOf(pending, [{ id: 5, lease: 1 }])).toEqual({ block: [] });
    expect(turnOf(failed, [{ id: 5, lease: 1 }])).toEqual({ block: [] });
  });

  it('gives it to nobody while the first lies in the inbox', () => {
    expect(turnOf(failed, [])).toEqual({ block: [] });
  });

  it('has nothing to say of an empty line', () => {
    expect(turnOf(undefined, [])).toEqual({ block: [] });
  });

  it('puts right what somebody else wrote: several have the turn', () => {
    expect(turnOf(pending, [{ id: 3 }, { id: 4 }, { id: 5 }])).toEqual({ block: [4, 5] });
    expect(turnOf(pending, [{ id: 4 }, { id: 5 }])).toEqual({ block: [4, 5], unblock: 3 });
    expect(turnOf(pending, [{ id: 4, lease: 1 }, { id: 5 }])).toEqual({ block: [5] });
  });
});
