export { delayFor, type DelayFacts } from './backoff.ts';
export {
  type Breaker,
  type BreakerOptions,
  type BreakerSnapshot,
  type BreakerState,
  createBreaker,
} from './breaker.ts';
export { type Budget, type BudgetOptions, createBudget, grpcBudget } from './budget.ts';
export { classify } from './classify.ts';
export type { Clock, Random } from './clock.ts';
export { type Decision, decide, type Facts, type GiveUp, type Retry } from './decide.ts';
export type { Duration } from './duration.ts';
export {
  type AttemptRecord,
  ConfigError,
  type ErrorCode,
  type Fault,
  isConfigError,
  isRetryError,
  RetryError,
} from './errors.ts';
export { explain } from './explain.ts';
export type { Failure, FailureClass } from './failure.ts';
export { type DefinedPolicy, definePolicy, parsePolicy } from './policy.ts';
export type { FailureName, Policy, PolicyOverride } from './policy-fields.ts';
export { presets } from './presets.ts';
export { retrier, type Retrier, retry, retryable } from './retry.ts';
export type { Attempt, Listener, Listeners, Outcome, RetryEvent, Runtime } from './runtime.ts';
