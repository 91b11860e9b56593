import { describe, expect, it } from 'vitest';
import { type BudgetOptions, createBudget, grpcBudget } from './budget.ts';
import { ConfigError } from '../errors.ts';
import type { Failure } from '../failure/failure.ts';

const transient: Failure = { class: 'transient', code: 'ECONNRESET' };

describe('a budget', () => {
  it('allows a hundred retries by default, then refuses and shows it', () => {
    const budget = createBudget();
    expect(budget).toMatchObject({ capacity: 500, tokens: 500, exhausted: false });
    for (let i = 0; i < 100; i++) expect(budget.spend(transient)).toBe(true);
    expect(budget).toMatchObject({ tokens: 0, exhausted: true });
    expect(budget.spend(transient)).toBe(false);
    expect(budget.spend()).toBe(false);
  });

  it('gets back what successes are worth, and never more than it can hold', () => {
    const budget = createBudget({ capacity: 10 });
    budget.spend(transient);
    budget.spend(transient);
    for (let i = 0; i < 4; i++) budget.success();
    expect(budget).toMatchObject({ tokens: 4, exhausted: true });
    budget.success();
    expect(budget).toMatchObject({ tokens: 5, exhausted: false });
    for (let i = 0; i < 50; i++) budget.success();
    expect(budget.tokens).toBe(10);
  });

  it.each<Partial<Failure>>([
    { code: 'ETIMEDOUT' },
    { code: 'TIMEOUT' },
    { code: 'DEADLINE_EXCEEDED' },
    { code: 'UND_ERR_HEADERS_TIMEOUT' },
    { status: 408 },
    { status: 504 },
  ])('takes double for a timeout: %j', (timeout) => {
    const budget = createBudget();
    budget.spend({ class: 'transient', ...timeout });
    expect(budget.tokens).toBe(490);
  });

  it.each<Partial<Failure>>([{}, { code: 'ECONNRESET' }, { status: 503 }])(
    'takes the usual cost for the rest: %j',
    (failure) => {
      const budget = createBudget();
      budget.spend({ class: 'transient', ...failure });
      expect(budget.tokens).toBe(495);
    },
  );

  it('never lets a timeout cost less than another failure unless that is asked for', () => {
    const timeout: Failure = { class: 'transient', code: 'ETIMEDOUT' };
    const dear = createBudget({ capacity: 100, cost: 20 });
    dear.spend(timeout);
    expect(dear.tokens).toBe(80);
    const cheap = createBudget({ capacity: 100, cost: 20, timeoutCost: 1 });
    cheap.spend(timeout);
    expect(cheap.tokens).toBe(99);
  });

  it('charges for refused failures too, down to nothing', () => {
    const budget = createBudget({ capacity: 12, cost: 5 });
    expect([budget.spend(), budget.spend(), budget.spend(), budget.spend()]).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(budget.tokens).toBe(0);
  });

  it('behaves as gRPC does: no retry at or below half', () => {
    const budget = createBudget(grpcBudget);
    const answers = Array.from({ length: 6 }, () => budget.spend(transient));
    expect(answers).toEqual([true, true, true, true, false, false]);
    expect(budget.tokens).toBe(4);
    expect(budget.exhausted).toBe(true);
    for (let i = 0; i < 20; i++) budget.success();
    expect(budget.exhausted).toBe(true);
    budget.success();
    expect(budget.tokens).toBeCloseTo(6.1);
    expect(budget.exhausted).toBe(false);
  });

  it.each<[BudgetOptions, string]>([
    [{ capacity: 4 }, '4 leaves no retry at a cost of 5 and a reserve of 0.'],
    [{ cost: 501 }, '500 leaves no retry at a cost of 501 and a reserve of 0.'],
    [{ reserve: 496 }, '500 leaves no retry at a cost of 5 and a reserve of 496.'],
    [{ ...grpcBudget, capacity: 5 }, '5 leaves no retry at a cost of 1 and a reserve of 5.'],
  ])('refuses a bucket that is too small for a single retry: %j', (options, message) => {
    expect(() => createBudget(options)).toThrow(
      expect.objectContaining({
        name: 'ConfigError',
        code: 'INVALID_CONFIG',
        faults: [{ path: 'capacity', code: 'INVALID_VALUE', message }],
      }),
    );
  });

  it.each<BudgetOptions>([
    { capacity: 5 },
    { capacity: 1, cost: 1 },
    { capacity: 7, cost: 1, reserve: 5 },
    { capacity: 1, cost: 0 },
  ])('takes a bucket that is just large enough for one: %j', (options) => {
    const budget = createBudget(options);
    expect(budget.exhausted).toBe(false);
    expect(budget.spend()).toBe(true);
  });

  it('refuses options that make no sense, all at once', () => {
    const options = { capacity: 0, cost: -1, refund: NaN, reserv: 5 } as BudgetOptions;
    expect(() => createBudget(options)).toThrow(ConfigError);
    expect(() => createBudget(options)).toThrow(
      expect.objectContaining({
        code: 'INVALID_CONFIG',
        faults: [
          expect.objectContaining({ path: 'capacity' }),
          expect.objectContaining({ path: 'cost' }),
          expect.objectContaining({ path: 'refund' }),
          expect.objectContaining({
            path: 'reserv',
            message: expect.stringContaining("'reserve'"),
          }),
        ],
      }),
    );
  });
});
