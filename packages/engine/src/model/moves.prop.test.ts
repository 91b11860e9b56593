import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { definePolicy } from 'redrive';
import { it } from 'vitest';
import { release } from './judge.ts';
import { accept, type Arrival, cancel, type Change, expedite, hindrance, settle } from './moves.ts';
import type { Settlement } from '../ports/schedule.ts';
import { newTask, unreachable } from '../testing/fixtures.ts';
import type { NewTask, Task } from './task.ts';

const MAX_ATTEMPTS = 3;
const LEASE_MS = 1000;
const policy = definePolicy({ maxAttempts: MAX_ATTEMPTS, base: 2000, jitter: 'none' });

type Step =
  | { do: 'wait'; ms: number }
  | { do: 'submit' | 'cancel' | 'expedite' | 'claim' }
  | { do: 'fail'; count: number; ours: boolean; token: number; permanent: boolean }
  | { do: 'settle'; to: Settlement['to'] | 'released'; stale: boolean };

const steps = fc.array(
  fc.oneof<fc.Arbitrary<Step>[]>(
    fc.record({ do: fc.constant('wait'), ms: fc.constantFrom(1, 500, 1000, 5000) }),
    fc.record({ do: fc.constantFrom('submit', 'cancel', 'expedite', 'claim', 'claim') }),
    fc.record({
      do: fc.constant('fail'),
      count: fc.nat({ max: MAX_ATTEMPTS }),
      ours: fc.boolean(),
      token: fc.nat({ max: 5 }),
      permanent: fc.boolean(),
    }),
    fc.record({
      do: fc.constant('settle'),
      to: fc.constantFrom('done', 'retried', 'cancelled', 'pending', 'failed', 'released'),
      stale: fc.boolean(),
    }),
  ),
  { maxLength: 60, size: 'max' },
);

/** One row of a store that does what the moves say, and holds them to what must always be true. */
class Row {
  nowMs = 1_700_000_000_000;
  task: Task | undefined;
  openItems = 0;
  /** Failures that were accepted, and the leases that they arrived under. */
  readonly arrivals = new Set<number>();
  readonly #fresh = newTask();
  #lastLease = 0;

  take(step: Step): void {
    switch (step.do) {
      case 'wait':
        this.nowMs += step.ms;
        return;
      case 'submit':
        return void this.#write(accept(this.#arrival('submit'), this.task, this.nowMs, 0));
      case 'cancel':
        return void this.#write(cancel(this.task, this.nowMs));
      case 'expedite':
        return void this.#write(expedite(this.task, this.nowMs));
      case 'claim':
        return this.#claim();
      case 'fail':
        return this.#fail(step);
      case 'settle':
        return this.#settle(step.to, step.stale);
    }
  }

  /** As every store does it. */
  #claim(): void {
    const { task } = this;
    if (task?.status !== 'pending' || task.visibleAtMs > this.nowMs) return;
    this.#lastLease += 1;
    const visibleAtMs = this.nowMs + LEASE_MS;
    const claims = task.claims + 1;
    this.task = { ...task, lease: this.#lastLease, claims, arrived: false, visibleAtMs };
    const why = hindrance(this.task, this.nowMs, { maxLostLeases: 3, mostAttempts: MAX_ATTEMPTS });
    // What is started was promised for now at the latest, and has an attempt left.
    if (why === undefined) {
      assert.ok(this.task.dueAtMs <= this.nowMs, 'started early');
      assert.ok(this.task.attempt < MAX_ATTEMPTS, 'started without an attempt left');
    } else if (why === 'CANCELLED') this.#settle('cancelled', false);
    else this.#settle(why === 'NOT_DUE' ? 'released' : 'failed', false);
  }

  #fail({ count, ours, token, permanent }: Extract<Step, { do: 'fail' }>): void {
    const before = this.task;
    const arrival = this.#arrival('failure', {
      attempt: count + 1,
      failure: permanent ? { class: 'business' } : unreachable,
      ...(token > 0 ? { arrival: token } : {}),
    });
    const { result } = this.#write(
      accept(ours ? { ...arrival, generation: 0 } : arrival, before, this.nowMs, 0),
    );
    const wasRepeated = token > 0 && before?.arrival === token;
    if (result !== 'accepted' || wasRepeated || before?.lease === undefined) return;
    this.arrivals.add(before.lease);
  }

  #settle(to: Settlement['to'] | 'released', stale: boolean): void {
    const { task } = this;
    if (!task) return;
    const lease = stale ? this.#lastLease - 1 : (task.lease ?? this.#lastLease);
    const change = settle(task, settlementOf(task, to, lease), this.nowMs);
    if (stale || task.lease === undefined) assert.deepEqual(change, { result: 'lost' });
    this.#write(change);
    // An arrival in delivery is never forgotten, whatever the settlement said.
    if (change.result !== 'lost' && this.arrivals.has(lease)) {
      const isKept = change.result === 'rearmed' && this.task?.status === 'pending';
      assert.ok(isKept || this.task?.status === 'cancelled', 'an arrival was forgotten');
    }
  }

  #arrival(type: Arrival['type'], changes: Partial<NewTask> = {}): Arrival {
    return { type, policy, task: { ...this.#fresh, maxAttempts: MAX_ATTEMPTS, ...changes } };
  }

  #write<T>(change: Change<T>): Change<T> {
    const { task, item, occurrence } = change;
    const before = this.task;
    if (task) {
      this.task = 'id' in task ? task : this.#insert(task);
      if (item) this.openItems += 1;
      if (before?.status === 'failed' && this.task.status !== 'failed') this.openItems -= 1;
      // Counted once, never uncounted.
      assert.ok(this.task.attempt >= (before?.attempt ?? 0), 'the count went back');
    }
    if (occurrence) assert.equal(before?.status, 'failed');
    return change;
  }

  #insert(fresh: NewTask): Task {
    const { nowMs } = this;
    const { due, record: _, ...task } = fresh;
    const dueAtMs = 'inMs' in due ? nowMs + due.inMs : due.atMs;
    const finished = task.status === 'pending' ? {} : { finishedAtMs: nowMs };
    const times = { dueAtMs, visibleAtMs: dueAtMs, createdAtMs: nowMs, ...finished };
    return { ...task, ...times, id: 1 };
  }

  check(): void {
    const { task } = this;
    if (!task) return;
    const isOver = task.status !== 'pending';
    assert.equal(this.openItems, task.status === 'failed' ? 1 : 0, 'open items');
    assert.equal(task.finishedAtMs !== undefined, isOver, 'finished');
    if (isOver) {
      assert.ok(!('lease' in task) && !('verdict' in task), 'over, and yet leased or judged');
    }
    if (task.lease === undefined) {
      assert.ok(!task.arrived && !task.cancelling, 'a mark for a delivery without a delivery');
      if (!isOver) assert.equal(task.visibleAtMs, task.dueAtMs, 'visible as promised');
    }
  }
}

function settlementOf(task: Task, to: Settlement['to'] | 'released', lease: number): Settlement {
  const at = { id: task.id, lease };
  const attempt = task.attempt + 1;
  switch (to) {
    case 'done':
    case 'retried':
    case 'cancelled':
      return { ...at, to };
    case 'released':
      return { ...release(task), ...at };
    case 'pending': {
      const record = { attempt, failure: unreachable, durationMs: 1 };
      const counts = { attempt, uncounted: 0, claims: 0 };
      return { ...at, to, delayMs: 2000, ...counts, reschedule: true, record };
    }
    case 'failed': {
      const item = { reason: 'EXHAUSTED', failure: unreachable, fingerprint: 'f' } as const;
      return { ...at, to, attempt: task.attempt, item };
    }
  }
}

it('keeps every promise about a task, whatever happens to it and in whatever order', () => {
  fc.assert(
    fc.property(steps, (course) => {
      const row = new Row();
      for (const step of course) {
        row.take(step);
        row.check();
      }
    }),
    { numRuns: 1000 },
  );
});

it('changes nothing that it was given', () => {
  fc.assert(
    fc.property(steps, (course) => {
      const row = new Row();
      for (const step of course) {
        row.take(step);
        if (row.task) Object.freeze(row.task);
      }
    }),
  );
});
