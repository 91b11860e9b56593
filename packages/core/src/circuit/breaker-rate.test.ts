import { describe, expect, it } from 'vitest';
import {
  type Breaker,
  type BreakerOptions,
  type BreakerSnapshot,
  createBreaker,
} from './breaker.ts';
import type { Failure } from '../failure/failure.ts';
import { virtualClock } from '../testing.ts';

const down: Failure = { class: 'transient', code: 'ECONNREFUSED' };
const busy: Failure = { class: 'transient', code: 'HTTP_429', status: 429 };
const bug: Failure = { class: 'technical', names: ['TypeError', 'Error'] };

function make(options: BreakerOptions = {}, saved?: BreakerSnapshot) {
  const clock = virtualClock();
  return { clock, breaker: createBreaker({ clock, ...options }, saved) };
}

/** One call after the other; true worked, a failure did not. */
function calls(breaker: Breaker, ...outcomes: (true | Failure)[]): void {
  for (const outcome of outcomes) {
    const ticket = breaker.admit() as number;
    expect(ticket).toBeDefined();
    if (outcome === true) breaker.succeeded(ticket);
    else breaker.failed(ticket, outcome);
  }
}

function times<T>(n: number, outcome: T): T[] {
  return Array.from({ length: n }, () => outcome);
}

describe('the rate', () => {
  const rate = { rate: 0.5, minimumCalls: 10, window: '10s', failures: 1000 } as const;

  it('opens it when that share of the calls failed, and not before there were enough', () => {
    const { breaker } = make(rate);
    calls(breaker, ...times(4, down), ...times(5, true as const));
    expect(breaker.state).toBe('closed');
    calls(breaker, down);
    expect(breaker.state).toBe('open');
  });

  it('leaves it closed below that share', () => {
    const { breaker } = make(rate);
    for (let i = 0; i < 50; i++) calls(breaker, true, down, true);
    expect(breaker.state).toBe('closed');
  });

  it('forgets what is older than the window', async () => {
    const { clock, breaker } = make(rate);
    calls(breaker, ...times(9, down));
    await clock.advance('10s');
    calls(breaker, down);
    expect(breaker.state).toBe('closed');
    await clock.advance('5s');
    calls(breaker, ...times(9, down));
    expect(breaker.state).toBe('open');
  });

  it('rolls: what is in the window counts, slice by slice', async () => {
    const { clock, breaker } = make(rate);
    for (let i = 0; i < 9; i++) {
      calls(breaker, down);
      await clock.advance('1s');
    }
    calls(breaker, down);
    expect(breaker.state).toBe('open');
  });

  it('begins anew after it closed', async () => {
    const { clock, breaker } = make({ ...rate, openFor: '1s' });
    calls(breaker, ...times(10, down));
    await clock.advance('1s');
    calls(breaker, true, ...times(9, down));
    expect(breaker.state).toBe('closed');
    calls(breaker, down);
    expect(breaker.state).toBe('open');
  });

  it.each([
    ['429', busy],
    ['faults at home', bug],
  ])('does not count %s', (_, neutral) => {
    const { breaker } = make(rate);
    calls(breaker, ...times(9, down), ...times(20, neutral));
    expect(breaker.state).toBe('closed');
    calls(breaker, down);
    expect(breaker.state).toBe('open');
  });

  it('counts alone unless failures in a row were given too', () => {
    const { breaker } = make({ rate: 0.5 });
    calls(breaker, ...times(19, down));
    expect(breaker.state).toBe('closed');
    calls(breaker, down);
    expect(breaker.state).toBe('open');
  });

  it('counts beside failures in a row where both were given', () => {
    const { breaker } = make({ rate: 0.5, failures: 5 });
    calls(breaker, ...times(4, down));
    expect(breaker.state).toBe('closed');
    calls(breaker, down);
    expect(breaker.state).toBe('open');
  });

  it('leaves a saved count of failures in a row without effect', () => {
    const { breaker } = make({ rate: 0.5 }, { state: 'closed', failures: 1_000_000 });
    calls(breaker, down);
    expect(breaker.state).toBe('closed');
  });

  it('is off unless it was given', () => {
    const { breaker } = make({ failures: 1000 });
    calls(breaker, ...times(999, down));
    expect(breaker.state).toBe('closed');
  });
});
