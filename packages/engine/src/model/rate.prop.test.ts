import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  givenBack,
  leastBurst,
  type RateSettings,
  type RateState,
  rateSettings,
  reserve,
} from './rate.ts';

/** A rate, and a burst that goes with it. */
const limits = fc
  .tuple(fc.constantFrom(0.2, 1, 3.3, 5, 7, 50, 100, 1234), fc.nat(30))
  .map(([perSecond, more]) => ({ perSecond, burst: leastBurst(perSecond) + more }));

type Step =
  | { do: 'wait'; share: number }
  /** It asks, and perhaps it is not the one who is written. */
  | { do: 'ask'; who: 0 | 1 | 2; count: number; isFaster: boolean }
  /** It starts what it can, up to so many. */
  | { do: 'start'; who: 0 | 1 | 2; count: number }
  /** It crashes, or gives back what it has not used. */
  | { do: 'crash'; who: 0 | 1 | 2 }
  | { do: 'giveBack'; who: 0 | 1 | 2 };

const who = fc.constantFrom<0 | 1 | 2>(0, 1, 2);
const steps = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant('wait'), share: fc.nat(40) }) },
    {
      weight: 5,
      arbitrary: fc.record({
        do: fc.constant('ask'),
        who,
        count: fc.integer({ min: 1, max: 20 }),
        isFaster: fc.boolean(),
      }),
    },
    { weight: 6, arbitrary: fc.record({ do: fc.constant('start'), who, count: fc.nat(20) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('crash', 'giveBack'), who }) },
  ),
  { maxLength: 150, size: 'max' },
) as fc.Arbitrary<Step[]>;

/** Three instances, of which each knows the store's time as it was a while ago. */
class World {
  nowMs = 1_000_000;
  readonly starts: number[] = [];
  /** The slots of the starts. */
  readonly used: number[] = [];
  readonly #settings: RateSettings;
  readonly #behindMs: readonly number[];
  readonly #held: [number[], number[], number[]] = [[], [], []];
  #state: RateState | undefined;

  constructor(settings: RateSettings, behind: readonly number[]) {
    this.#settings = settings;
    // Further behind than 5 s it would take the others' slots for those of a clock that was set back.
    this.#behindMs = behind.map((share) => Math.min(5000, settings.lateMs) * share);
  }

  take(step: Step): void {
    if (step.do === 'wait') this.nowMs += (step.share * this.#settings.everyMs) / 8;
    else if (step.do === 'crash') this.#held[step.who].length = 0;
    else if (step.do === 'giveBack') this.#giveBack(this.#held[step.who].splice(0));
    else if (step.do === 'ask') this.#ask(step.who, step.count, step.isFaster);
    else this.#start(step.who, step.count);
  }

  #ask(one: 0 | 1 | 2, count: number, isFaster: boolean): void {
    const nowMs = this.nowMs - this.#behindMs[one]!;
    const found = reserve(this.#state, nowMs, count, this.#settings, 0);
    if (found.may === 'wait' || !isFaster) return;
    this.#state = found.state;
    this.#held[one].push(...found.slots);
  }

  #giveBack(slots: readonly number[]): void {
    if (this.#state) this.#state = givenBack(this.#state, slots, this.#settings);
  }

  #start(one: 0 | 1 | 2, count: number): void {
    const behindMs = this.#behindMs[one]!;
    const nowMs = this.nowMs - behindMs;
    for (let started = 0; started < count;) {
      const slot = this.#held[one][0];
      if (slot === undefined || slot > nowMs) return;
      this.#held[one].shift();
      if (nowMs + behindMs > slot + this.#settings.lateMs) continue;
      this.starts.push(this.nowMs);
      this.used.push(slot);
      started += 1;
    }
  }
}

it('lets no more start in any window than the burst and what the rate allows, whoever asks, waits or crashes', () => {
  fc.assert(
    fc.property(
      limits,
      fc.array(fc.nat(100), { minLength: 3, maxLength: 3 }),
      steps,
      (limit, lag, course) => {
        const world = new World(
          rateSettings(limit.perSecond, limit.burst),
          lag.map((percent) => percent / 100),
        );
        for (const step of course) world.take(step);
        const { starts } = world;
        for (let first = 0; first < starts.length; first++) {
          for (let last = first; last < starts.length; last++) {
            const windowMs = starts[last]! - starts[first]!;
            const most = limit.burst + (limit.perSecond * windowMs) / 1000;
            const count = last - first + 1;
            assert.ok(count <= most + 1e-6, `${count} starts in ${windowMs} ms, ${most} allowed`);
          }
        }
      },
    ),
    { numRuns: 1000 },
  );
});

it('lets nobody use a slot twice, nor two that are too close, whoever gives back what', () => {
  fc.assert(
    fc.property(limits, steps, ({ perSecond, burst }, course) => {
      const settings = rateSettings(perSecond, burst);
      const world = new World(settings, [0, 0, 0]);
      for (const step of course) world.take(step);
      const used = world.used.toSorted((a, b) => a - b);
      for (const [n, slot] of used.entries()) {
        const gapMs = slot - (used[n - 1] ?? -Infinity);
        assert.ok(gapMs >= settings.everyMs - 1e-6, `${gapMs} ms apart`);
      }
    }),
    { numRuns: 1000 },
  );
});

it('hands out all the rate promises to those who keep asking, within 2 per cent', () => {
  fc.assert(
    fc.property(limits, fc.integer({ min: 1, max: 8 }), ({ perSecond, burst }, askers) => {
      const settings = rateSettings(perSecond, burst);
      let state: RateState | undefined;
      let nowMs = 1_000_000;
      let count = 0;
      const endMs = nowMs + 1000 * settings.everyMs;
      while (nowMs < endMs) {
        const wanted = Math.min(settings.chunk, askers);
        const found = reserve(state, nowMs, wanted, settings, 0);
        if (found.may === 'wait') nowMs = found.untilMs;
        else {
          state = found.state;
          count += found.slots.length;
        }
      }
      const promised = (perSecond * 1000 * settings.everyMs) / 1000;
      assert.ok(count >= promised * 0.98 - 1, `${count} of ${promised}`);
    }),
  );
});

it('never waits for ever: what it says it waits for is there then', () => {
  fc.assert(
    fc.property(
      limits,
      fc.double({ min: -1e9, max: 1e9, noNaN: true }),
      fc.integer({ min: 1, max: 5 }),
      ({ perSecond, burst }, freeMs, most) => {
        const settings = rateSettings(perSecond, burst);
        const count = Math.min(most, settings.chunk);
        let state: RateState | undefined = { freeMs };
        let nowMs = 0;
        for (let tries = 0; tries < 3; tries++) {
          const found = reserve(state, nowMs, count, settings, 0);
          if (found.may === 'wait') nowMs = found.untilMs + 1e-6;
          else if (found.slots.length === count) break;
          else state = found.state;
          assert.ok(tries < 2, 'three tries were not enough');
        }
        // However far a clock has jumped, it is not closed for longer than that.
        expect(nowMs).toBeLessThanOrEqual(5001 + (count + 1) * settings.everyMs);
      },
    ),
  );
});
