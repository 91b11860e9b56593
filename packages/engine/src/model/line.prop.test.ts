import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { type VirtualClock, virtualClock } from 'redrive/testing';
import { expect, it } from 'vitest';
import { memory } from '../adapters/memory/index.ts';
import { accept, cancel, expedite } from './moves.ts';
import type { Store } from '../ports/store.ts';
import type { Task } from './task.ts';
import {
  arrivalOf,
  claimDue,
  claimExpired,
  claimLost,
  inLane,
  inLine,
  settlements,
} from '../testing/fixtures.ts';

const LANES = ['a', 'b'];
const LEASE_MS = 1000;
const ALL = 1000;

/** What happens to a line. `at` counts among the rows, the leases or the items that are there. */
type Step =
  | { do: 'insert'; lane: string; key: string | undefined; count: number; release: boolean }
  | { do: 'expiring'; lane: string; key: string }
  | { do: 'claim'; from: 'due' | 'lost' | 'expired'; limit: number }
  | { do: 'settle'; at: number; how: keyof typeof settlements }
  | { do: 'cancel' | 'expedite' | 'arrive' | 'abandon' | 'erase'; at: number }
  | { do: 'act'; at: number; type: 'replay' | 'resolve' | 'discard' | 'restore' }
  | { do: 'redirect'; at: number; lane: string }
  | { do: 'prune' }
  | { do: 'wait'; ms: number };

const lane = fc.constantFrom(...LANES);
const key = fc.constantFrom('k', 'l');
const at = fc.nat(20);
const steps = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('insert'),
        lane,
        key: fc.option(key, { nil: undefined, freq: 6 }),
        count: fc.integer({ min: 1, max: 3 }),
        release: fc.boolean(),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('expiring'), lane, key }) },
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant('claim'),
        from: fc.constantFrom('due', 'due', 'lost', 'expired'),
        limit: fc.integer({ min: 1, max: 4 }),
      }),
    },
    {
      weight: 7,
      arbitrary: fc.record({
        do: fc.constant('settle'),
        at,
        how: fc.constantFrom(
          'done',
          'retried',
          'cancelled',
          'pending',
          'released',
          'failed',
          'failed',
        ),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constantFrom('cancel', 'expedite', 'arrive', 'arrive', 'abandon', 'erase'),
        at,
      }),
    },
    {
      weight: 5,
      arbitrary: fc.record({
        do: fc.constant('act'),
        at,
        type: fc.constantFrom('replay', 'replay', 'resolve', 'discard', 'restore'),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('redirect'), at, lane }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('prune') }) },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('wait'),
        ms: fc.constantFrom(1, LEASE_MS, 3_600_000),
      }),
    },
  ),
  { maxLength: 80, size: 'max' },
) as fc.Arbitrary<Step[]>;

class World {
  readonly clock: VirtualClock = virtualClock();
  readonly store: Store = memory({ clock: this.clock });
  leases: Task[] = [];

  async take(step: Step): Promise<void> {
    const { store } = this;
    switch (step.do) {
      case 'insert': {
        const { lane: where, key: line, count, release } = step;
        const changes = release ? { onDead: 'release' as const } : {};
        const make = () =>
          line === undefined ? inLane(where) : inLine(line, { lane: where, ...changes });
        await store.insert(Array.from({ length: count }, make));
        return;
      }
      case 'expiring': {
        const expiresAtMs = this.clock.now() + 1;
        await store.insert([inLine(step.key, { lane: step.lane, expiresAtMs })]);
        return;
      }
      case 'claim':
        return this.#claim(step.from, step.limit);
      case 'settle': {
        const [held] = this.leases.splice(step.at % Math.max(1, this.leases.length), 1);
        if (held) await store.settle([settlements[step.how](held)]);
        return;
      }
      case 'abandon': {
        const held = this.leases[step.at % Math.max(1, this.leases.length)];
        if (held) await store.abandon(held.lease!);
        return;
      }
      case 'prune': {
        const olderThanMs = { done: 0, retried: 0, cancelled: 0 };
        await store.prune({ olderThanMs, limit: 3 });
        return;
      }
      case 'wait':
        return this.clock.advance(step.ms);
      case 'act':
      case 'redirect': {
        const { items } = await store.items({ limit: ALL });
        const item = items[step.at % Math.max(1, items.length)];
        if (!item) return;
        const destination = { kind: 'queue', address: step.do === 'redirect' ? step.lane : '' };
        await store.act(
          [item.id],
          step.do === 'act' ? { type: step.type } : { type: 'replay', edit: { destination } },
        );
        return;
      }
      case 'cancel':
      case 'expedite':
      case 'arrive':
      case 'erase':
        return this.#toTask(step.do, step.at);
    }
  }

  async rows(): Promise<Task[]> {
    return (await this.store.list({ limit: ALL })).toReversed();
  }

  async #toTask(what: 'cancel' | 'expedite' | 'arrive' | 'erase', place: number): Promise<void> {
    const rows = await this.rows();
    const task = rows[place % Math.max(1, rows.length)];
    if (!task) return;
    if (what === 'erase') await this.store.erase(task.messageId);
    else if (what === 'arrive') {
      const arrival = arrivalOf(task);
      await this.store.change([task], (known, nowMs) => accept(arrival, known, nowMs, 0));
    } else await this.store.change([task], what === 'cancel' ? cancel : expedite);
  }

  async #claim(from: 'due' | 'lost' | 'expired', limit: number): Promise<void> {
    const before = await this.rows();
    const lanes = [...new Set(before.map((task) => task.lane))];
    const options = { leaseMs: LEASE_MS };
    const { tasks } =
      from === 'due'
        ? await claimDue(
            this.store,
            lanes.map((name) => ({ lane: name, limit })),
            options,
          )
        : from === 'lost'
          ? await claimLost(this.store, lanes, { limit, ...options })
          : await claimExpired(this.store, { limit, ...options });
    this.leases.push(...tasks);
    if (from === 'expired') return;
    for (const task of tasks.filter(({ orderingKey }) => orderingKey !== undefined)) {
      const was = before.find(({ id }) => id === task.id);
      const ahead = before.filter((one) => isSameLine(one, task) && one.id < task.id && holds(one));
      // Only one whose worker was lost goes on before an older one that came back meanwhile.
      assert.ok(
        ahead.length === 0 || was?.lease !== undefined,
        `${task.id} was given out too early`,
      );
    }
  }
}

/** The rules, told once more in other words. */
function checkLines(rows: readonly Task[]): void {
  for (const row of rows) {
    if (row.orderingKey === undefined && row.status === 'pending') assert.equal(row.blocked, false);
  }
  for (const row of rows.filter((one) => one.orderingKey !== undefined)) {
    const holders = rows.filter((one) => isSameLine(one, row) && holds(one));
    const free = holders.filter((one) => one.status === 'pending' && !one.blocked);
    const [first] = holders;
    assert.ok(free.length <= 1, `${free.length} of a line have the turn`);
    if (free.length === 0) assert.notEqual(first?.status, 'pending', `${first?.id} is stranded`);
    else if (free[0]!.id !== first!.id)
      assert.ok(free[0]!.lease, `${free[0]!.id} is ahead of its turn`);
  }
}

function holds({ status, onDead }: Task): boolean {
  return status === 'pending' || (status === 'failed' && onDead === undefined);
}

function isSameLine(a: Task, b: Task): boolean {
  return a.lane === b.lane && a.orderingKey === b.orderingKey;
}

it('gives the turn to one of a line at a time, and to nobody too early', async () => {
  let claimed = 0;
  await fc.assert(
    fc.asyncProperty(steps, async (history) => {
      const world = new World();
      for (const step of history) {
        await world.take(step);
        checkLines(await world.rows());
      }
      claimed += world.leases.length;
    }),
    { numRuns: 200 },
  );
  expect(claimed).toBeGreaterThan(100);
});

it('leaves nobody behind, whatever happened before', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (history) => {
      const world = new World();
      for (const step of history) await world.take(step);
      const { store, clock } = world;
      for (let round = 0; round < 500; round++) {
        const { items } = await store.items({ state: 'open', limit: ALL });
        await store.act(
          items.map(({ id }) => id),
          { type: 'resolve' },
        );
        const waiting = (await world.rows()).filter(({ status }) => status === 'pending');
        if (waiting.length === 0) return;
        await clock.advance(3_600_000);
        world.leases = [];
        for (const from of ['due', 'lost'] as const)
          await world.take({ do: 'claim', from, limit: 50 });
        for (const task of world.leases) await store.settle([settlements.done(task)]);
      }
      assert.fail('somebody waits for ever');
    }),
    { numRuns: 60 },
  );
});
