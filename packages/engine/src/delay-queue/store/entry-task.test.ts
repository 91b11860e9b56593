import { expect, test } from 'vitest';
import type { Task } from '../../model/task.ts';
import { finish, newTask, placeOf } from './entry-task.ts';

const entry = { id: 'a', delayMs: 0, payload: new Uint8Array() };
const { due: _, ...fresh } = newTask(placeOf('default'), entry);
const task: Task = {
  ...fresh,
  id: 1,
  createdAtMs: 5,
  dueAtMs: 5,
  visibleAtMs: 50,
  lease: 2,
  claims: 2,
};

test('an answer done counts only with the lease that the entry has now', () => {
  expect(finish(task, 1)).toEqual({ result: undefined });
  expect(finish({ ...task, status: 'done' }, 2)).toEqual({ result: undefined });
  expect(finish(undefined, 2)).toEqual({ result: undefined });
  expect(finish(task, 2).task).toMatchObject({ status: 'done' });
  expect(finish(task, 2).task).not.toHaveProperty('lease');
});
