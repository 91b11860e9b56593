import { expect, it } from 'vitest';
import { DueLanes } from './due-lanes.ts';
import type { Lane } from './lanes.ts';

function stage() {
  const agenda = new DueLanes((name) => ({ name }) as Lane);
  agenda.expect('a', 0);
  return { agenda, lane: agenda.takeNext(0)! };
}

const names = (agenda: DueLanes) => [...agenda.due].map(({ name }) => name);

it('has a lane that was held back until a time once more then', () => {
  const { agenda, lane } = stage();
  agenda.holdBack(lane, 100);
  expect(names(agenda)).toEqual([]);
  expect(agenda.takeNext(99)).toBeUndefined();
  expect(agenda.takeNext(100)).toEqual(lane);
  expect(names(agenda)).toEqual(['a']);
});

it('has a lane that was released early once: it does not come again at its time', () => {
  const { agenda, lane } = stage();
  agenda.holdBack(lane, 100);
  agenda.release('a');
  expect(names(agenda)).toEqual(['a']);
  expect(agenda.nextAt).toBe(Infinity);
  expect(agenda.takeNext(100)).toBeUndefined();
});
