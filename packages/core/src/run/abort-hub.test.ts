import { describe, expect, it, vi } from 'vitest';
import { listen, unlisten } from './abort-hub.ts';
import { retry } from '../retry.ts';
import { virtualClock } from '../testing.ts';

function watched() {
  const controller = new AbortController();
  const { signal } = controller;
  const added = vi.spyOn(signal, 'addEventListener');
  const removed = vi.spyOn(signal, 'removeEventListener');
  return { controller, signal, added, removed };
}

describe('a signal that many calls share', () => {
  it('has one listener for all of them, and none after the last', () => {
    const { signal, added, removed } = watched();
    const calls = Array.from({ length: 20 }, () => ({ onAbort: vi.fn() }));
    for (const call of calls) listen(signal, call);
    expect(added).toHaveBeenCalledTimes(1);
    for (const call of calls.slice(1)) unlisten(signal, call);
    expect(removed).not.toHaveBeenCalled();
    unlisten(signal, calls[0] as { onAbort: () => void });
    expect(removed).toHaveBeenCalledTimes(1);
  });

  it('can be used again after that', () => {
    const { controller, signal } = watched();
    const call = { onAbort: vi.fn() };
    listen(signal, call);
    unlisten(signal, call);
    unlisten(signal, call);
    listen(signal, call);
    controller.abort();
    expect(call.onAbort).toHaveBeenCalledTimes(1);
  });

  it('tells every call, also where one of them fails or leaves meanwhile', () => {
    const report = vi.spyOn(console, 'error').mockImplementation(() => {});
    const { controller, signal } = watched();
    const told: number[] = [];
    const calls = [0, 1, 2].map((n) => ({
      onAbort() {
        told.push(n);
        if (n === 0) throw new Error('a clock that fails');
        unlisten(signal, calls[2] as { onAbort: () => void });
      },
    }));
    for (const call of calls) listen(signal, call);
    controller.abort();
    expect(told).toEqual([0, 1, 2]);
    expect(report).toHaveBeenCalledTimes(1);
    report.mockRestore();
  });

  it('ends all of their waits at once', async () => {
    const { controller, signal, added, removed } = watched();
    const clock = virtualClock();
    const down = () => Promise.reject(new Error('down'));
    const calls = Array.from({ length: 50 }, () => retry(down, { base: '1h' }, { signal, clock }));
    const ends = Promise.allSettled(calls);
    await clock.advance(0);
    controller.abort();
    const codes = (await ends).map(
      (end) => end.status === 'rejected' && (end.reason as { code: string }).code,
    );
    expect(new Set(codes)).toEqual(new Set(['ABORTED']));
    expect([added.mock.calls.length, removed.mock.calls.length]).toEqual([1, 1]);
    expect(clock.pending).toBe(0);
  });
});
