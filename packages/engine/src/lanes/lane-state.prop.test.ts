import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { it } from 'vitest';
import {
  type BreakerSettings,
  type LaneState,
  opened,
  openLane,
  paused,
  permit,
  ramped,
  resumed,
} from './lane-state.ts';

const settings: BreakerSettings = { openForMs: 1000, maxOpenForMs: 8000, turnMs: 500 };
const CONCURRENCY = 5;

type Step =
  | { do: 'wait'; ms: number }
  | { do: 'read' | 'write'; who: 0 | 1 }
  | { do: 'try' | 'work' | 'fail'; who: 0 | 1; late: boolean }
  | { do: 'pause' | 'resume' };

const who = fc.constantFrom<0 | 1>(0, 1);
const steps = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constant('wait'), ms: fc.constantFrom(1, 250, 1000) }),
    },
    { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('read', 'write'), who }) },
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constantFrom('try', 'work', 'fail'),
        who,
        // It thinks about it for a while before it writes.
        late: fc.boolean(),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('pause', 'resume', 'resume') }) },
  ),
  { maxLength: 80, size: 'max' },
);

/** What one instance knows, read some time ago, and what it wants to write. */
interface Instance {
  name: string;
  state: LaneState;
  version: number;
  wish: LaneState | undefined;
}

/** The shared document, written by compare-and-set, and two who look at it when they please. */
class Shared {
  state = openLane;
  version = 0;
  nowMs = 0;
  readonly instances: [Instance, Instance] = [
    { name: 'a', state: openLane, version: 0, wish: undefined },
    { name: 'b', state: openLane, version: 0, wish: undefined },
  ];

  take(step: Step): void {
    switch (step.do) {
      case 'wait':
        this.nowMs += step.ms;
        return;
      case 'pause':
      case 'resume':
        this.#put(
          step.do === 'pause' ? paused(this.state, this.nowMs) : resumed(this.state, this.nowMs),
        );
        return;
      case 'read':
        return this.#read(this.instances[step.who]);
      case 'write':
        return this.#write(this.instances[step.who]);
      case 'try':
      case 'work':
      case 'fail':
        this.#wish(this.instances[step.who], step.do);
        if (!step.late) this.#write(this.instances[step.who]);
    }
  }

  #wish(one: Instance, what: 'try' | 'work' | 'fail'): void {
    const granted = permit(one.state, one.name, this.nowMs, CONCURRENCY, settings);
    if (what === 'try' && granted.may === 'take') one.wish = granted.state;
    if (granted.may !== 'serve') return;
    if (what === 'fail') one.wish = opened(one.state, this.nowMs, settings);
    if (what === 'work') one.wish = ramped(one.state, one.name, this.nowMs, CONCURRENCY, settings);
  }

  #read(one: Instance): void {
    one.state = this.state;
    one.version = this.version;
    one.wish = undefined;
  }

  #write(one: Instance): void {
    if (one.wish && one.version === this.version) this.#put(one.wish);
    this.#read(one);
  }

  #put(state: LaneState): void {
    this.state = state;
    this.version += 1;
  }

  probers(): string[] {
    return this.instances
      .filter((one) => {
        const granted = permit(one.state, one.name, this.nowMs, CONCURRENCY, settings);
        return granted.may === 'serve' && granted.probing;
      })
      .map(({ name }) => name);
  }
}

it('has at most one prober at any time, however two instances take turns at reading and writing', () => {
  fc.assert(
    fc.property(steps, (course) => {
      const shared = new Shared();
      for (const step of course) {
        shared.take(step);
        assert.ok(shared.probers().length <= 1, `${shared.probers().join(' and ')} both probe`);
      }
    }),
    { numRuns: 1000 },
  );
});

it('lets nobody serve more at once than its concurrency, nor a lane that is known to be down', () => {
  fc.assert(
    fc.property(steps, (course) => {
      const shared = new Shared();
      for (const step of course) {
        shared.take(step);
        for (const { name, state } of shared.instances) {
          const granted = permit(state, name, shared.nowMs, CONCURRENCY, settings);
          if (granted.may !== 'serve') continue;
          assert.ok(granted.limit >= 1 && granted.limit <= CONCURRENCY);
          assert.ok(state.breaker.state !== 'open' && state.paused === undefined);
        }
      }
    }),
  );
});
