import { createEngine, type Store } from '@redrive/engine';
import { memory } from '@redrive/engine/memory';
import { virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { timedStore } from './timed-store.ts';

function timed(store: Store, clock = virtualClock()) {
  const calls: [string, number, boolean, unknown?][] = [];
  const times = {
    stored: (...call: [string, number, boolean, unknown?]) => {
      calls.push(call);
    },
  };
  return { store: timedStore(store, times, clock), calls, clock };
}

describe('a timed store', () => {
  it('says of every call how long it took', async () => {
    const clock = virtualClock();
    const slow = memory({ clock });
    slow.readState = () =>
      new Promise((resolve) => {
        clock.setTimer(() => resolve({ nowMs: 0, documents: [] }), 250);
      });
    const { store, calls } = timed(slow, clock);
    const read = store.readState('x');
    await clock.advance(250);
    await read;
    await store.list({ limit: 1 });
    expect(calls).toEqual([
      ['readState', 0.25, false, undefined],
      ['list', 0, false, undefined],
    ]);
  });

  it('says so of a call that failed, and whoever called has the error', async () => {
    const broken = memory();
    broken.lanes = () => Promise.reject(new Error('away'));
    const { store, calls } = timed(broken);
    await expect(store.lanes({ limit: 1 })).rejects.toThrow('away');
    expect(calls).toEqual([['lanes', 0, true, new Error('away')]]);
  });

  it('is the same store otherwise: getters, private fields, what is missing, what was replaced', async () => {
    class Own {
      readonly #secret = 7;
      get capabilities() {
        return { secret: this.#secret };
      }
      async claim(by: number) {
        return this.#secret + by;
      }
      watch() {
        return () => this.#secret;
      }
      throws() {
        throw new TypeError('at once');
      }
    }
    const own = new Own() as unknown as Store & {
      claim: (by: number) => Promise<number>;
      throws(): void;
    };
    const { store, calls } = timed(own) as unknown as { store: typeof own; calls: unknown[] };
    expect(store.capabilities).toEqual({ secret: 7 });
    expect(store.audit).toBeUndefined();
    expect('renew' in store).toBe(false);
    expect(store).toBeInstanceOf(Own);
    expect(store.claim).toBe(store.claim);
    const { claim } = store;
    expect(await claim(1)).toBe(8);
    // What takes no time is not measured, nor what throws at once.
    expect(store.watch(() => undefined)()).toBe(7);
    expect(() => store.throws()).toThrow('at once');
    expect(calls).toHaveLength(1);
    Object.assign(own, { claim: async () => 99 });
    expect(await store.claim(1)).toBe(99);
  });

  it('carries an engine', async () => {
    const clock = virtualClock();
    const { store, calls } = timed(memory({ clock }), clock);
    const done = Promise.withResolvers<unknown>();
    const engine = createEngine({ store, clock }).handle('a', done.resolve);
    await engine.start();
    await engine.submit('a', 1);
    expect(await done.promise).toBe(1);
    await engine.stop();
    const names = new Set(calls.map(([name]) => name));
    for (const name of ['open', 'insert', 'claim', 'settle', 'close'])
      expect(names).toContain(name);
  });
});
