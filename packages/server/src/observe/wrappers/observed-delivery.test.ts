import type { Delivery, Outcome, Run, Task } from '@redrive/engine';
import { virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { observedDelivery } from './observed-delivery.ts';
import { Tracing } from '../trace/tracing.ts';

const failure = { class: 'transient' } as const;
const task = {
  messageId: 'm-1',
  lane: 'https://api.example.com',
  payload: new Uint8Array(),
  destination: { kind: 'http', address: 'https://api.example.com/a' },
} as Task;
const run = { attempt: 1, maxAttempts: 4 } as Run;

function observe(delivery: Delivery) {
  const told: unknown[][] = [];
  const clock = virtualClock();
  const metrics = {
    delivered: (...facts: unknown[]) => void told.push(facts),
    executed: (...facts: unknown[]) => void told.push(facts),
  };
  const tracing = new Tracing();
  return { told, clock, observed: observedDelivery(delivery, { metrics, tracing, clock }) };
}

describe('a delivery', () => {
  it.each<[Outcome, boolean | undefined]>([
    [{ type: 'done' }, true],
    [{ type: 'taken' }, true],
    [{ type: 'failed', failure }, false],
    [{ type: 'refused', failure }, false],
    [{ type: 'unroutable', failure }, false],
    [{ type: 'retryIn', delayMs: 1, failure }, false],
    [{ type: 'giveUp', failure }, false],
    [{ type: 'snooze', delayMs: 1 }, undefined],
    [{ type: 'away', failure }, undefined],
  ])('that ends as %j is counted so', async (outcome, worked) => {
    const { told, observed } = observe({ kind: 'http', deliver: async () => outcome });
    expect(await observed.deliver(task, run)).toBe(outcome);
    expect(told).toEqual([
      ['http', outcome.type, 0],
      ...(worked === undefined ? [] : [['https://api.example.com', worked]]),
    ]);
  });

  it('is measured', async () => {
    const { told, clock, observed } = observe({
      kind: 'http',
      deliver: () =>
        new Promise((resolve) => {
          clock.setTimer(() => resolve({ type: 'done' }), 750);
        }),
    });
    const outcome = observed.deliver(task, run);
    await clock.advance('1s');
    await outcome;
    expect(told[0]).toEqual(['http', 'done', 0.75]);
  });

  it('that throws has failed, and throws all the same', async () => {
    const { told, observed } = observe({
      kind: 'http',
      deliver: () => Promise.reject(new Error('x')),
    });
    await expect(observed.deliver(task, run)).rejects.toThrow('x');
    expect(told).toEqual([
      ['http', 'failed', 0],
      ['https://api.example.com', false],
    ]);
  });

  it('gets the task as it is where nobody traces', async () => {
    const tasks: Task[] = [];
    const { observed } = observe({
      kind: 'http',
      deliver: async (one) => {
        tasks.push(one);
        return { type: 'done' };
      },
    });
    await observed.deliver(task, run);
    expect(tasks[0]).toBe(task);
  });

  it('keeps all that it has, and lacks what it lacks', async () => {
    class Full implements Delivery {
      readonly kind = 'http';
      readonly handsOver = true;
      readonly #fault = { path: 'to', code: 'NO_DESTINATION', message: 'no' } as const;
      isClosed = false;
      async deliver(): Promise<Outcome> {
        return { type: 'done' };
      }
      check() {
        return [this.#fault];
      }
      async close() {
        this.isClosed = true;
      }
    }
    const full = new Full();
    const { observed } = observe(full);
    expect(observed).toMatchObject({ kind: 'http', handsOver: true });
    expect(observed.check?.(task.destination, undefined)).toMatchObject([{ message: 'no' }]);
    await observed.close?.();
    expect(full.isClosed).toBe(true);
    const { observed: bare } = observe({ kind: 'x', deliver: async () => ({ type: 'done' }) });
    expect([bare.check, bare.close, bare.handsOver]).toEqual([undefined, undefined, undefined]);
  });
});
