import { describe, expect, it } from 'vitest';
import {
  afterAct,
  afterFreeze,
  cancelledJob,
  isOver,
  type Job,
  left,
  newJob,
  nextMove,
  pausedJob,
  resumedJob,
  whyNow,
  WINDOW,
} from './jobs.ts';
import type { JobTally } from '../ports/inbox.ts';

const NOW = 100_000;

function job(changes: Partial<Job> = {}): Job {
  return newJob({
    id: 1,
    action: 'replay',
    filter: {},
    canary: [],
    observeMs: 30_000,
    createdAtMs: 0,
    total: 2000,
    ...changes,
  });
}

function tally(changes: Partial<JobTally> = {}): JobTally {
  return { underway: 0, blocked: 0, taken: 0, cancelled: 0, back: 0, ...changes };
}

/** Counted and answered at once. */
const moveAt = (of: Job, counted: JobTally, nowMs: number) => nextMove(of, counted, nowMs, nowMs);

describe('a job that is not running', () => {
  it.each(['paused', 'stopped', 'cancelled', 'finished'] as const)('is left alone: %s', (state) => {
    expect(moveAt(job({ state, before: 9 }), tally(), NOW)).toEqual({ do: 'leave' });
  });
});

describe('freezing', () => {
  it('comes before anything else', () => {
    expect(moveAt(job({ before: 9, total: 0 }), tally(), NOW)).toEqual({ do: 'freeze' });
  });

  it('goes on where the page ended', () => {
    const after = afterFreeze(job({ before: 90, total: 10 }), { added: 5, next: 40 });
    expect([after.before, after.total]).toEqual([40, 15]);
  });

  it('ends with the last page, and forgets what it was asked for', () => {
    const filter = { ids: [1, 2], lane: 'a', orderingKey: 'Eva' };
    const after = afterFreeze(job({ before: 90, total: 10, filter }), { added: 5 });
    expect(after).not.toHaveProperty('before');
    expect([after.total, after.filter]).toEqual([15, {}]);
  });
});

describe('sending', () => {
  it('acts in chunks', () => {
    expect(moveAt(job(), tally(), NOW)).toEqual({ do: 'act', limit: 2000, isTrial: false });
  });

  it.each(['resolve', 'discard'] as const)('%s needs no room, and no step', (action) => {
    const full = tally({ underway: WINDOW, back: 9, cancelled: 3 });
    const move = moveAt(job({ action, canary: [1], maxFailures: 0 }), full, NOW);
    expect(move).toEqual({ do: 'act', limit: 2000, isTrial: false });
    const over = moveAt(job({ action, total: 3, done: 3 }), full, NOW);
    expect(over).toMatchObject({ do: 'write', job: { state: 'finished', finishedAtMs: NOW } });
  });

  it('sends no more than there is room for', () => {
    const move = moveAt(job(), tally({ underway: WINDOW - 3 }), NOW);
    expect(move).toEqual({ do: 'act', limit: 3, isTrial: false });
  });

  it('waits until it may', () => {
    const paced = job({ perSecond: 10, nextAtMs: NOW + 40 });
    expect(moveAt(paced, tally(), NOW)).toEqual({ do: 'wait', ms: 40 });
    expect(moveAt(paced, tally(), NOW + 40)).toMatchObject({ do: 'act', limit: 1 });
  });

  it.each([
    { perSecond: 0.5, limit: 1 },
    { perSecond: 25, limit: 2 },
    { perSecond: 100_000, limit: 2000 },
  ])('sends $limit at a time where it may send $perSecond a second', ({ perSecond, limit }) => {
    expect(moveAt(job({ perSecond }), tally(), NOW)).toMatchObject({ do: 'act', limit });
  });

  it('is not stopped for long by a clock that was set back', () => {
    const paced = job({ perSecond: 10, nextAtMs: NOW + 3_600_000 });
    expect(moveAt(paced, tally(), NOW)).toMatchObject({ do: 'act' });
  });

  it('is finished when all is sent and nothing is under way', () => {
    const sent = job({ total: 5, done: 3, skipped: 1, failed: 1 });
    expect(left(sent)).toBe(0);
    expect(moveAt(sent, tally({ underway: 1 }), NOW)).toMatchObject({ do: 'wait' });
    const move = moveAt(sent, tally({ taken: 2, takenAtMs: NOW }), NOW);
    expect(move).toMatchObject({ do: 'write', job: { state: 'finished', finishedAtMs: NOW } });
  });

  it('is finished at once where nothing was found', () => {
    expect(moveAt(job({ total: 0 }), tally(), NOW)).toMatchObject({
      do: 'write',
      job: { state: 'finished' },
    });
  });
});

describe('a window that is full', () => {
  const full = tally({ underway: WINDOW });

  it('is looked at, then awaited', () => {
    expect(moveAt(job(), full, NOW)).toMatchObject({
      do: 'write',
      job: { looked: { underway: WINDOW, atMs: NOW } },
    });
    const looked = job({ looked: { underway: WINDOW, atMs: NOW } });
    expect(moveAt(looked, full, NOW + 4999)).toMatchObject({ do: 'wait' });
    expect(nextMove(looked, full, NOW + 9000, NOW + 4999)).toMatchObject({ do: 'wait' });
  });

  it('is looked at again when it moves', () => {
    const looked = job({ looked: { underway: WINDOW + 5, atMs: NOW - 60_000 } });
    expect(moveAt(looked, full, NOW)).toMatchObject({
      do: 'write',
      job: { looked: { underway: WINDOW, atMs: NOW } },
    });
  });

  it('takes no room from others when it stands still', () => {
    const looked = job({ looked: { underway: WINDOW, atMs: NOW - 5000 } });
    const move = moveAt(looked, full, NOW);
    expect(move).toMatchObject({ do: 'write', job: { parked: WINDOW } });
    const { job: parked } = move as { job: Job };
    expect(parked).not.toHaveProperty('looked');
    expect(moveAt(parked, full, NOW)).toMatchObject({ do: 'act', limit: 2000 });
  });
});

describe('a canary', () => {
  const canary = [1, 10];

  it('sends its step as a trial, and no more', () => {
    expect(moveAt(job({ canary }), tally(), NOW)).toEqual({ do: 'act', limit: 1, isTrial: true });
    const second = job({ canary, step: 1, stepSent: 4 });
    expect(moveAt(second, tally(), NOW)).toEqual({ do: 'act', limit: 6, isTrial: true });
  });

  it('waits for what is under way', () => {
    const sent = job({ canary, stepSent: 1 });
    expect(moveAt(sent, tally({ underway: 1 }), NOW)).toMatchObject({ do: 'wait' });
  });

  it('passes when nothing is under way and nothing was left to a broker', () => {
    const move = moveAt(job({ canary, stepSent: 1, done: 1 }), tally(), NOW);
    expect(move).toMatchObject({ do: 'write', job: { step: 1, stepSent: 0 } });
  });

  it('watches for a while what a broker took', () => {
    const sent = job({ canary, stepSent: 1, done: 1 });
    const taken = tally({ taken: 1, takenAtMs: NOW });
    expect(moveAt(sent, taken, NOW + 29_999)).toEqual({ do: 'wait', ms: 1 });
    expect(moveAt(sent, taken, NOW + 30_000)).toMatchObject({ do: 'write', job: { step: 1 } });
    // Counted too early, and answered late: it is counted again.
    const late = nextMove(sent, taken, NOW + 31_000, NOW + 29_999);
    expect(late).toEqual({ do: 'wait', ms: 1 });
  });

  it('sends the rest as usual after its last step', () => {
    const move = moveAt(job({ canary, step: 2 }), tally(), NOW);
    expect(move).toEqual({ do: 'act', limit: 2000, isTrial: false });
  });

  it('sends another for one that was cancelled on its way: that proves nothing', () => {
    const move = moveAt(job({ canary, stepSent: 1 }), tally({ cancelled: 1 }), NOW);
    expect(move).toMatchObject({ do: 'write', job: { cancelled: 1, stepSent: 0 } });
  });

  it('stops when more comes back than it may, and says why', () => {
    const failure = { class: 'business', message: 'No such customer' } as const;
    const sent = job({ canary, maxFailures: 0, stepSent: 1, done: 1 });
    const move = moveAt(sent, tally({ back: 1, failure }), NOW);
    expect(move).toMatchObject({ do: 'write', job: { state: 'stopped', finishedAtMs: NOW } });
    const { why } = (move as { job: Job }).job;
    expect(why).toBe('1 of 1 came back in step 1.');
    // Its words are read when they are wanted: what is erased meanwhile is not in the document.
    expect(whyNow(why!, failure)).toBe(`${why} The last failure: No such customer`);
    expect(whyNow(why!, { class: 'business', code: 'ERASED' })).toBe(
      `${why} The last failure: ERASED`,
    );
    expect(whyNow(why!, undefined)).toBe(why);
  });

  it('does not stop for as many as it may, unless none has worked', () => {
    const sent = job({ canary: [2, 10], maxFailures: 5, stepSent: 2, done: 2 });
    const passed = { do: 'write', job: { step: 1, stepSent: 0, stepBack: 1 } };
    expect(moveAt(sent, tally({ back: 1 }), NOW)).toMatchObject(passed);
    expect(moveAt(sent, tally({ back: 2 }), NOW)).toMatchObject({
      do: 'write',
      job: { state: 'stopped', why: '2 of 2 came back in step 1.' },
    });
  });

  it('has to prove itself anew when it is let go on', () => {
    const stopped = job({ canary, state: 'stopped', stepSent: 1, done: 1 });
    const again = resumedJob(stopped, tally({ back: 1 }));
    expect(again).toMatchObject({ state: 'running', stepSent: 0, stepBack: 1, forgiven: 1 });
    expect(moveAt(again, tally({ back: 1 }), NOW)).toMatchObject({ do: 'act', limit: 1 });
  });

  it('stops where all that it sent waits behind others of its key, and nothing moves', () => {
    const sent = job({ canary, stepSent: 1, done: 1 });
    const stuck = tally({ underway: 1, blocked: 1 });
    const looked = { underway: 1, atMs: NOW };
    expect(moveAt(sent, stuck, NOW)).toMatchObject({ do: 'write', job: { looked } });
    expect(moveAt({ ...sent, looked }, stuck, NOW + 4999)).toMatchObject({ do: 'wait' });
    expect(moveAt({ ...sent, looked }, stuck, NOW + 5000)).toMatchObject({
      job: { state: 'stopped', why: expect.stringContaining('behind others of its ordering key') },
    });
  });

  it('takes what came back and was deleted since for neither forgiven nor proven', () => {
    const going = job({ canary, forgiven: 3, stepBack: 3, cancelled: 2 });
    expect(moveAt(going, tally({ back: 1, cancelled: 1 }), NOW)).toMatchObject({
      do: 'write',
      job: { forgiven: 1, stepBack: 1, cancelled: 1 },
    });
  });
});

describe('a canary whose messages failed', () => {
  const canary = [2, 2];
  const ofStep = job({ canary, maxFailures: 9 });

  /** The job after one move that only writes its document. */
  const written = (of: Job, counted: JobTally): Job => {
    const move = moveAt(of, counted, NOW);
    if (move.do !== 'write') throw new Error(`It does ${move.do}.`);
    return move.job;
  };
  /** The job after one move that sends, all of which is taken. */
  const sent = (of: Job, counted: JobTally): Job => {
    const move = moveAt(of, counted, NOW);
    if (move.do !== 'act') throw new Error(`It does ${move.do}.`);
    const ids = Array.from({ length: move.limit }, (_, i) => of.cursor + 1 + i);
    return afterAct(
      of,
      ids,
      ids.map(() => 'done'),
      NOW,
    );
  };

  it('judges a step by what came back since it began', () => {
    const second = written(sent(ofStep, tally()), tally({ back: 1 }));
    const both = sent(second, tally({ back: 1 }));
    // One of each step: neither has failed as a whole.
    expect(written(both, tally({ back: 2 }))).toMatchObject({ state: 'running', step: 2 });
    expect(written(both, tally({ back: 3 }))).toMatchObject({
      state: 'stopped',
      why: '3 of 4 came back in step 2.',
    });
  });

  it('that is let go on by hand is judged by what it sends after that', () => {
    const stopped = written(sent(ofStep, tally()), tally({ back: 2 }));
    expect(stopped.state).toBe('stopped');
    const again = sent(resumedJob(stopped, tally({ back: 2 })), tally({ back: 2 }));
    expect([again.step, again.stepSent, again.done]).toEqual([0, 2, 4]);
    expect(written(again, tally({ back: 3 }))).toMatchObject({ state: 'running', step: 1 });
    expect(written(again, tally({ back: 4 }))).toMatchObject({
      state: 'stopped',
      why: '2 of 4 came back in step 1.',
    });
  });

  it('that is let go on by hand sends no more where what was sent before that is cancelled', () => {
    const one = job({ canary: [1, 5], maxFailures: 0 });
    const stopped = { ...sent(one, tally()), state: 'stopped' as const };
    const again = sent(resumedJob(stopped, tally({ underway: 1 })), tally({ underway: 1 }));
    const counted = tally({ underway: 1, cancelled: 1 });
    const first = written(again, counted);
    expect(moveAt(first, counted, NOW)).toMatchObject({ do: 'wait' });
    // The second one was sent since: that proves nothing, and another is sent.
    const second = written(first, tally({ cancelled: 2 }));
    expect(moveAt(second, tally({ cancelled: 2 }), NOW)).toMatchObject({ do: 'act', limit: 1 });
  });

  it('that was paused goes on in the middle of its step, with nothing forgiven', () => {
    const half = { ...ofStep, done: 1, stepSent: 1 };
    const again = resumedJob(pausedJob(half), tally({ back: 1 }));
    const both = sent(again, tally({ back: 1 }));
    expect(both.stepSent).toBe(2);
    expect(written(both, tally({ back: 2 }))).toMatchObject({
      state: 'stopped',
      why: '2 of 2 came back in step 1.',
    });
  });
});

describe('what became of a chunk', () => {
  it('is counted as done, skipped or failed', () => {
    const results = [
      'done',
      'closed',
      'unknown',
      'gone',
      'open',
      'unaddressed',
      'conflict',
      'fault',
    ] as const;
    const ids = results.map((_, i) => i + 11);
    const after = afterAct(job({ done: 1, stepSent: 1 }), ids, results, NOW);
    const { done, skipped, failed, stepSent, cursor } = after;
    expect({ done, skipped, failed, stepSent, cursor }).toEqual({
      done: 2,
      skipped: 4,
      failed: 3,
      stepSent: 2,
      cursor: 18,
    });
  });

  it('sets the pace by what was sent', () => {
    const after = afterAct(job({ perSecond: 4 }), [1, 2, 3], ['done', 'done', 'closed'], NOW);
    expect(after.nextAtMs).toBe(NOW + 500);
    expect(afterAct(job(), [1], ['done'], NOW).nextAtMs).toBe(NOW);
  });
});

describe('an operator', () => {
  it('pauses, resumes and cancels', () => {
    expect(pausedJob(job()).state).toBe('paused');
    const owner = { by: 'somebody who is gone', untilMs: 1e15 };
    expect(resumedJob(job({ state: 'paused', owner }), tally())).not.toHaveProperty('owner');
    expect(resumedJob(job({ state: 'paused', forgiven: 2 }), tally({ back: 9 }))).toMatchObject({
      state: 'running',
      forgiven: 2,
    });
    expect(cancelledJob(job(), NOW)).toMatchObject({ state: 'cancelled', finishedAtMs: NOW });
  });

  it('lets a stopped job go on, and forgives what had come back', () => {
    const stopped = job({ state: 'stopped', why: 'x', finishedAtMs: 5, maxFailures: 0 });
    const resumed = resumedJob(stopped, tally({ back: 3 }));
    expect(resumed).not.toHaveProperty('why');
    expect(resumed).not.toHaveProperty('finishedAtMs');
    expect(moveAt(resumed, tally({ back: 3 }), NOW)).toMatchObject({ do: 'act' });
    expect(moveAt(resumed, tally({ back: 4 }), NOW)).toMatchObject({
      do: 'write',
      job: { state: 'stopped' },
    });
  });

  it('can do nothing to what is over', () => {
    const states = ['running', 'paused', 'stopped', 'cancelled', 'finished'] as const;
    expect(states.filter((state) => isOver(job({ state })))).toEqual(['cancelled', 'finished']);
  });
});
