import { seededRandom, virtualClock } from 'redrive/testing';
import { EngineError } from '../errors.ts';
import { describe, expect, it } from 'vitest';
import { memory } from '../adapters/memory/index.ts';
import { hostOf } from '../host.ts';
import type { Settled, Settlement } from '../ports/schedule.ts';
import { Settler } from './settler.ts';

function stage(settle: (batch: readonly Settlement[], call: number) => Promise<Settled[]>) {
  const clock = virtualClock();
  const store = memory({ clock });
  const sizes: number[] = [];
  store.settle = (batch) => {
    sizes.push(batch.length);
    return settle(batch, sizes.length);
  };
  const nothing = () => undefined;
  const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
  const host = hostOf({ clock, random: seededRandom(1), defer: queueMicrotask, log });
  const ending = new AbortController();
  return { clock, sizes, ending, settler: new Settler(store, host, ending.signal) };
}

const done = (id: number): Settlement => ({ id, lease: 7, to: 'done' });

describe('settlements', () => {
  it('go together, a thousand at most, and each has its own answer', async () => {
    const { settler, sizes } = stage(async (batch) =>
      batch.map(({ id }) => (id % 2 === 0 ? 'settled' : 'lost')),
    );
    const answers = Promise.all(Array.from({ length: 2500 }, (_, id) => settler.settle(done(id))));
    expect(settler.unsettled).toBe(2500);
    expect((await answers).slice(0, 4)).toEqual(['settled', 'lost', 'settled', 'lost']);
    expect(Math.max(...sizes)).toBe(1000);
    expect(settler.unsettled).toBe(0);
  });

  it('are tried until they are written; a lost answer is then no lost lease', async () => {
    const { settler, clock, sizes } = stage(async (batch, call) => {
      if (call < 4) throw away();
      return batch.map(() => 'lost');
    });
    const answer = settler.settle(done(1));
    await clock.advance(1);
    expect(settler.isTroubled).toBe(false);
    await clock.advance(100);
    expect(settler.isTroubled).toBe(true);
    await clock.advance('10s');
    expect(await answer).toBe('settled');
    expect(settler.isTroubled).toBe(false);
    expect(sizes).toEqual([1, 1, 1, 1]);
  });

  it('of a locked row are asked for again after a moment, until the end', async () => {
    const { settler, clock, sizes, ending } = stage(async (batch) => batch.map(() => 'busy'));
    const told = settler.settle(done(1)).catch((error: unknown) => error);
    await clock.advance('1s');
    expect(sizes.length).toBe(21);
    ending.abort();
    await clock.advance('1s');
    expect(await told).toMatchObject({ code: 'ENGINE_STOPPED' });
    expect(sizes.length).toBeLessThan(25);
  });

  it('are given up with the engine', async () => {
    const { settler, clock, ending } = stage(() => Promise.reject(away()));
    const told = settler.settle(done(1)).catch((error: unknown) => error);
    await clock.advance('1m');
    ending.abort();
    expect(await told).toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });
});

function away(): EngineError {
  return new EngineError('STORE_UNAVAILABLE', 'away');
}
