import { ConfigError, type Fault } from '../errors.ts';
import type { Failure } from '../failure/failure.ts';
import { type Fields, readFields } from '../options/fields.ts';

/**
 * A bucket of tokens shared by many calls, so that retries cannot multiply an outage: each retryable failure
 * takes tokens, each success gives some back, and without tokens nothing is retried.
 */
export interface Budget {
  readonly capacity: number;
  readonly tokens: number;
  /** True while a retry would be refused. */
  readonly exhausted: boolean;
  /** Takes the cost of a failure. False: do not retry it. */
  spend(failure?: Failure): boolean;
  /** Gives back what a success is worth. */
  success(): void;
}

export interface BudgetOptions {
  /** Tokens in a full bucket (500). */
  capacity?: number;
  /** What a failure costs (5), and what one that timed out costs (10). */
  cost?: number;
  timeoutCost?: number;
  /** What a success gives back (1). */
  refund?: number;
  /** No retry unless more than this would be left; 0 by default, and then the last token may go. */
  reserve?: number;
}

/** The numbers of gRPC's retry throttling: half of ten tokens, a tenth back per success. */
export const grpcBudget: BudgetOptions = {
  capacity: 10,
  cost: 1,
  timeoutCost: 1,
  refund: 0.1,
  reserve: 5,
};

/** The default numbers are those of the AWS SDKs. */
export function createBudget(options: BudgetOptions = {}): Budget {
  const faults: Fault[] = [];
  const values = readFields(options, budgetFields, Object.keys(budgetFields), '', faults);
  if (faults.length > 0) throw new ConfigError('INVALID_CONFIG', 'The budget has faults:', faults);
  const {
    capacity = 500,
    cost = 5,
    timeoutCost = Math.max(cost, 10),
    refund = 1,
    reserve = 0,
  } = values as BudgetOptions;
  let tokens = capacity;

  function allows(price: number): boolean {
    const left = tokens - price;
    return reserve > 0 ? left > reserve : left >= 0;
  }
  if (!allows(cost)) {
    const message = `${capacity} leaves no retry at a cost of ${cost} and a reserve of ${reserve}.`;
    const fault: Fault = { path: 'capacity', code: 'INVALID_VALUE', message };
    throw new ConfigError('INVALID_CONFIG', 'The budget has faults:', [fault]);
  }
  return {
    capacity,
    get tokens() {
      return tokens;
    },
    get exhausted() {
      return !allows(cost);
    },
    spend(failure) {
      const price = failure !== undefined && isTimeout(failure) ? timeoutCost : cost;
      const allowed = allows(price);
      // Refused failures cost too: a long outage is remembered until enough calls work again.
      tokens = Math.max(0, tokens - price);
      return allowed;
    },
    success() {
      tokens = Math.min(capacity, tokens + refund);
    },
  };
}

const tokenCount = { kind: 'number', min: 0, max: 1_000_000_000 } as const;
const budgetFields: Fields = {
  capacity: { ...tokenCount, min: 1 },
  cost: tokenCount,
  timeoutCost: tokenCount,
  refund: tokenCount,
  reserve: tokenCount,
};

function isTimeout({ code, status }: Failure): boolean {
  return (
    status === 408 ||
    status === 504 ||
    (code !== undefined && /TIMEOUT|ETIMEDOUT|DEADLINE/.test(code))
  );
}
