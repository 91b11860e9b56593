import { describe, expect, it } from 'vitest';
import {
  afterFailure,
  afterSuccess,
  isOutage,
  type LaneHistory,
  newHistory,
  withoutRun,
} from './lane-history.ts';

const settings = { failures: 5, concurrency: 10 };
const nobody = () => 0;

/** A history of these outcomes, each of another task, one after the other. */
function historyOf(outcomes: readonly boolean[], from = newHistory): LaneHistory {
  let history = from;
  for (const [i, worked] of outcomes.entries()) {
    history = worked
      ? afterSuccess(history, i, settings)
      : afterFailure(history, { taskId: i, startedAt: i, isRefused: false }, settings);
  }
  return history;
}

/** After how many failures in a row, each of another task, it is an outage. */
function failuresToOpen(from: LaneHistory, by = settings, older = 0): number {
  let history = from;
  let count = 0;
  while (!isOutage(history, by, () => older)) {
    count += 1;
    history = afterFailure(history, { taskId: -count, startedAt: 1e6, isRefused: false }, by);
  }
  return count;
}

const works = (count: number) => Array.from({ length: count }, () => true);
const fails = (count: number) => Array.from({ length: count }, () => false);
/** Every nth fails, and the last one works. */
const everyNth = (n: number) => Array.from({ length: 500 }, (_, i) => i % n !== 0);

describe('failures in a row', () => {
  it('open a lane that works otherwise after as many as are set', () => {
    const healthy = historyOf(works(100));
    expect(isOutage(historyOf(fails(4), healthy), settings, nobody)).toBe(false);
    const down = historyOf([...works(100), ...fails(5)]);
    expect(isOutage(down, settings, nobody)).toBe(true);
  });

  it('open a lane of which nothing is known after twice as many', () => {
    expect(isOutage(historyOf(fails(9)), settings, nobody)).toBe(false);
    expect(isOutage(historyOf(fails(10)), settings, nobody)).toBe(true);
    expect(isOutage(historyOf([...works(9), ...fails(9)]), settings, nobody)).toBe(false);
    expect(isOutage(historyOf([...works(10), ...fails(5)]), settings, nobody)).toBe(true);
  });

  it('open a flaky lane later, the flakier it is, but after 60 at most', () => {
    const needed = [100, 10, 3, 2].map((n) => failuresToOpen(historyOf(everyNth(n))));
    expect(needed).toEqual([5, 7, 15, 25]);
    const worst = historyOf([...fails(200), true]);
    expect(failuresToOpen(worst)).toBe(60);
  });

  it('open a lane no earlier than is set, however many that are', () => {
    const patient = { ...settings, failures: 100 };
    expect(failuresToOpen(historyOf(works(100)), patient)).toBe(100);
    expect(failuresToOpen(historyOf([...fails(200), true]), patient)).toBe(100);
  });

  it('of one task count once', () => {
    let history = historyOf(works(100));
    for (let i = 0; i < 50; i++) {
      history = afterFailure(
        history,
        { taskId: 7, startedAt: 200 + i, isRefused: false },
        settings,
      );
    }
    expect(isOutage(history, settings, nobody)).toBe(false);
    history = afterFailure(history, { taskId: 8, startedAt: 300, isRefused: false }, settings);
    expect(isOutage(history, settings, nobody)).toBe(false);
  });

  it('of one task that the destination refused count each', () => {
    let history = historyOf(works(100));
    for (let i = 0; i < 5; i++) {
      expect(isOutage(history, settings, nobody)).toBe(false);
      history = afterFailure(history, { taskId: 7, startedAt: 200 + i, isRefused: true }, settings);
    }
    expect(isOutage(history, settings, nobody)).toBe(true);
  });

  it('need another task even where one failure is set', () => {
    const nervous = { ...settings, failures: 1 };
    const one = { taskId: 1, startedAt: 200, isRefused: false };
    const healthy = historyOf(works(100));
    expect(isOutage(afterFailure(healthy, one, nervous), nervous, nobody)).toBe(false);
    const refused = afterFailure(healthy, { ...one, isRefused: true }, nervous);
    expect(isOutage(refused, nervous, nobody)).toBe(true);
  });

  it('are forgotten when the breaker changes, and are not the usual failure rate', () => {
    const before = historyOf(works(100));
    const history = withoutRun(historyOf(fails(5), { ...before, workedAt: -1 }));
    expect(history).toMatchObject({ outcomes: before.outcomes, failures: 0 });
    expect(isOutage(history, settings, nobody)).toBe(false);
  });
});

describe('deliveries that end out of order', () => {
  it('that failed, and began before the last success did, are no part of a run', () => {
    let history = afterSuccess(historyOf(works(100)), 1000, settings);
    for (let i = 0; i < 50; i++) {
      history = afterFailure(history, { taskId: i, startedAt: 999, isRefused: false }, settings);
    }
    expect(history.run.length).toBe(0);
    expect(history.failures).toBeGreaterThan(30);
  });

  it('that worked, and began before another success did, take nothing back', () => {
    const worked = afterSuccess(historyOf(works(100)), 1000, settings);
    const slow = afterSuccess(worked, 500, settings);
    const failed = { taskId: 1, startedAt: 999, isRefused: false };
    expect(afterFailure(slow, failed, settings).run.length).toBe(0);
  });

  it('and are still in flight may succeed: a flaky lane is given the failures that go with them', () => {
    const flaky = historyOf(everyNth(2));
    const alone = failuresToOpen(flaky, settings, 0);
    expect(failuresToOpen(flaky, settings, 10)).toBe(alone + 20);
    expect(failuresToOpen(historyOf(works(100)), settings, 100)).toBe(5);
    expect(failuresToOpen(newHistory, settings, 100)).toBe(20);
  });

  it('are counted only where that may decide', () => {
    const count = () => {
      throw new Error('counted');
    };
    expect(isOutage(historyOf([...works(100), ...fails(4)]), settings, count)).toBe(false);
  });
});
