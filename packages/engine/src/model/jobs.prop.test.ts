import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { afterAct, afterFreeze, type Job, left, newJob, nextMove, resumedJob } from './jobs.ts';
import type { ActResult, JobTally } from '../ports/inbox.ts';

/** What becomes of one that was sent, and how long it takes. `taken`: a broker has it, and it may come back later. */
interface Fate {
  result: ActResult;
  end: 'done' | 'taken' | 'back' | 'cancelled' | 'taken and back' | 'taken and done';
  afterMs: number;
  backAfterMs: number;
}

const fate: fc.Arbitrary<Fate> = fc.record({
  result: fc.oneof(
    { weight: 8, arbitrary: fc.constant<ActResult>('done') },
    { weight: 1, arbitrary: fc.constantFrom<ActResult>('closed', 'gone', 'unknown') },
    { weight: 1, arbitrary: fc.constantFrom<ActResult>('conflict', 'fault', 'unaddressed') },
  ),
  end: fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom<Fate['end']>('done', 'taken', 'taken and done') },
    { weight: 1, arbitrary: fc.constantFrom<Fate['end']>('back', 'cancelled', 'taken and back') },
  ),
  afterMs: fc.nat(3000),
  backAfterMs: fc.nat(3000),
});

const worlds = fc.record({
  fates: fc.array(fate, { maxLength: 120, size: 'max' }),
  canary: fc.constantFrom([], [1], [1, 10], [2, 3, 5, 50], [1000]),
  perSecond: fc.constantFrom(undefined, 0.5, 7, 40, 1000),
  maxFailures: fc.constantFrom(undefined, 0, 2),
  observeMs: fc.constantFrom(0, 1000),
  page: fc.integer({ min: 1, max: 50 }),
  resumes: fc.nat(3),
  /** How long the runner is away between two looks, in turn. */
  lateMs: fc.array(fc.nat(500), { minLength: 1, maxLength: 5 }),
});

interface Sent extends Fate {
  atMs: number;
  step: number;
}

/** One job, its runner, and what becomes of what it sends. */
class World {
  nowMs = 1_000_000;
  job: Job;
  readonly sent: Sent[] = [];
  /** What was sent before it was last let go on. */
  since = 0;
  readonly chunks: { atMs: number; count: number }[] = [];
  readonly #fates: readonly Fate[];
  #next = 0;

  constructor({ fates, canary, perSecond, maxFailures, observeMs }: Given) {
    this.#fates = fates;
    this.job = newJob({
      id: 1,
      action: 'replay',
      filter: {},
      ...(perSecond === undefined ? {} : { perSecond }),
      ...(maxFailures === undefined ? {} : { maxFailures }),
      canary,
      observeMs,
      createdAtMs: this.nowMs,
      before: 1000,
    });
  }

  get tally(): JobTally {
    const now = this.sent.map((one) => ({ one, is: this.#is(one) }));
    const taken = now.filter(({ is }) => is === 'taken').map(({ one }) => one.atMs + one.afterMs);
    return {
      underway: now.filter(({ is }) => is === 'underway').length,
      blocked: 0,
      taken: taken.length,
      ...(taken.length > 0 ? { takenAtMs: Math.max(...taken) } : {}),
      cancelled: now.filter(({ is }) => is === 'cancelled').length,
      back: now.filter(({ is }) => is === 'back').length,
    };
  }

  /** One step of the runner, as the store carries it out. */
  step(page: number): void {
    const { job, tally } = this;
    const move = nextMove(job, tally, this.nowMs, this.nowMs);
    switch (move.do) {
      case 'leave':
        return;
      case 'freeze': {
        const added = Math.min(page, this.#fates.length - job.total);
        const isMore = job.total + added < this.#fates.length;
        this.job = afterFreeze(job, { added, ...(isMore ? { next: 1 } : {}) });
        return;
      }
      case 'wait':
        assert.ok(move.ms > 0, 'a wait takes time');
        this.nowMs += move.ms;
        return;
      case 'write':
        this.#check(move.job, tally);
        this.job = move.job;
        return;
      case 'act':
        return this.#act(move);
    }
  }

  #act({ limit, isTrial }: { limit: number; isTrial: boolean }): void {
    const { job } = this;
    assert.equal(job.before, undefined, 'members are frozen before the first is sent');
    assert.ok(limit > 0);
    const size = job.canary[job.step];
    assert.equal(isTrial, size !== undefined);
    const some = this.#fates.slice(this.#next, this.#next + limit);
    assert.ok(some.length > 0, 'it acts on somebody');
    this.#next += some.length;
    const sent = some.filter(({ result }) => result === 'done');
    this.sent.push(...sent.map((one) => ({ ...one, atMs: this.nowMs, step: job.step })));
    this.chunks.push({ atMs: this.nowMs, count: sent.length });
    const results = some.map(({ result }) => result);
    this.job = afterAct(
      job,
      some.map((_, i) => i),
      results,
      this.nowMs,
    );
    if (size === undefined) return;
    // Those that an operator took out on their way prove nothing: others take their place.
    const counted = this.sent
      .slice(this.since)
      .filter((one) => one.step === job.step && this.#is(one) !== 'cancelled');
    assert.ok(counted.length <= size, `step ${job.step} of ${size} has sent ${counted.length}`);
  }

  /** What may be written of a job. */
  #check(next: Job, tally: JobTally): void {
    const { job } = this;
    const isPassed = next.step > job.step;
    if (isPassed || next.state === 'finished') {
      assert.equal(tally.underway, 0, 'a step is over when nothing is under way');
      const isWatched = job.canary.length === 0 || tally.takenAtMs === undefined;
      assert.ok(isWatched || this.nowMs >= tally.takenAtMs! + job.observeMs, 'a broker is watched');
      const { maxFailures = Infinity } = job;
      assert.ok(tally.back - job.forgiven <= maxFailures, 'too many are back to go on');
    }
    if (isPassed) assert.equal(next.step, job.step + 1);
    if (next.state === 'finished') assert.equal(left(next), 0);
    if (next.state === 'stopped') {
      const isTooMany = tally.back - job.forgiven > (job.maxFailures ?? Infinity);
      assert.ok(isTooMany || tally.back - job.stepBack >= job.stepSent);
    }
  }

  #is({
    end,
    atMs,
    afterMs,
    backAfterMs,
  }: Sent): 'underway' | 'taken' | 'back' | 'cancelled' | 'done' {
    if (this.nowMs < atMs + afterMs) return 'underway';
    if (end === 'done' || end === 'taken' || end === 'back' || end === 'cancelled') return end;
    if (this.nowMs < atMs + afterMs + backAfterMs) return 'taken';
    return end === 'taken and back' ? 'back' : 'done';
  }
}

type Given = typeof worlds extends fc.Arbitrary<infer T> ? T : never;

const MOST_MOVES = 20_000;

it('never sends more than its step or its pace, and always ends', () => {
  const ends = new Set<string>();
  fc.assert(
    fc.property(worlds, (given) => {
      const world = new World(given);
      let { resumes } = given;
      let moves = 0;
      for (; moves < MOST_MOVES; moves++) {
        if (world.job.state === 'stopped' && resumes > 0) {
          resumes -= 1;
          world.job = resumedJob(world.job, world.tally);
          world.since = world.sent.length;
        }
        if (world.job.state !== 'running') break;
        world.step(given.page);
        world.nowMs += given.lateMs[moves % given.lateMs.length]!;
      }
      const { job, sent } = world;
      assert.ok(moves < MOST_MOVES, 'it ends');
      assert.equal(job.done, sent.length);
      if (job.state === 'finished')
        assert.equal(job.done + job.skipped + job.failed, given.fates.length);
      checkPace(world.chunks, given.perSecond);
      ends.add(job.state);
    }),
    { numRuns: 400 },
  );
  expect([...ends].toSorted()).toEqual(['finished', 'stopped']);
});

/** Between any two chunks lies the time that those from the first on may take. */
function checkPace(
  chunks: readonly { atMs: number; count: number }[],
  perSecond: number | undefined,
) {
  if (perSecond === undefined) return;
  let allowedAtMs = -Infinity;
  for (const { atMs, count } of chunks) {
    assert.ok(atMs >= allowedAtMs - 0.001, `sent ${allowedAtMs - atMs} ms too early`);
    assert.ok(count <= Math.max(1, perSecond / 10), `${count} at once`);
    allowedAtMs = atMs + (count * 1000) / perSecond;
  }
}
