import { describe, expect, it } from 'vitest';
import { type BrokerState, StateBoard } from './state-board.ts';

function board() {
  const states: BrokerState[] = [];
  const errors: string[] = [];
  let nowMs = 100;
  const quiet = () => undefined;
  const own = new StateBoard({
    onState: (state) => {
      states.push(state);
      if (state.why === 'fail') throw new Error('listener');
    },
    log: { debug: quiet, info: quiet, warn: quiet, error: (_, message) => errors.push(message) },
    nowMs: () => nowMs++,
  });
  return { board: own, states, errors };
}

describe('the state of a broker', () => {
  it('is told once for each change, with the time since when it lasts', () => {
    const { board: own, states } = board();
    expect(own.current).toEqual({ state: 'closed', sinceMs: 100 });
    own.set({ state: 'connecting', why: undefined, isReady: false });
    own.set({ state: 'connecting', why: 'refused', isReady: false });
    own.set({ state: 'connecting', why: 'refused', isReady: false });
    own.set({ state: 'connected', why: undefined, isReady: true });
    expect(states).toEqual([
      { state: 'connecting', sinceMs: 101 },
      { state: 'connecting', sinceMs: 101, why: 'refused' },
      { state: 'connected', sinceMs: 102 },
    ]);
  });

  it('tells watchers when it gets ready or not, and each as often as it watches', () => {
    const { board: own } = board();
    let told = 0;
    const watcher = () => (told += 1);
    const [first, second] = [own.watch(watcher), own.watch(watcher)];
    own.set({ state: 'connecting', why: undefined, isReady: true });
    own.set({ state: 'connected', why: undefined, isReady: true });
    expect([told, own.isReady]).toEqual([2, true]);
    first();
    own.set({ state: 'blocked', why: 'memory', isReady: false });
    expect([told, own.isReady]).toEqual([3, false]);
    second();
    own.set({ state: 'connected', why: undefined, isReady: true });
    expect(told).toBe(3);
  });

  it('survives a listener that fails, and says so', () => {
    const { board: own, errors } = board();
    let told = 0;
    own.watch(() => {
      throw new Error('watcher');
    });
    own.watch(() => (told += 1));
    own.set({ state: 'connected', why: 'fail', isReady: true });
    expect([told, errors.length, own.current.state]).toEqual([1, 2, 'connected']);
  });
});
