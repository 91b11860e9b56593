export {
  type AuditStats,
  auditStats,
  type AuditStatsFold,
  type AuditStatsOptions,
  createAuditStats,
} from './analysis/audit-stats.ts';
export type { AttemptStats, CategoryStats } from './analysis/category-stats.ts';
export {
  createRetryRates,
  type RetryRateAlert,
  type RetryRateOptions,
  type RetryRates,
} from './analysis/retry-rates.ts';
export { simulateSuggestion, suggestPolicy, type Suggestion } from './analysis/suggest.ts';
export {
  type AuditDifference,
  type AuditReplay,
  replayAudit,
  type ReplayOptions,
} from './audit/audit.ts';
export { eraseEvent } from './audit/audit-erase.ts';
export {
  type AuditDetails,
  type AuditEntry,
  auditEntry,
  type AuditEvent,
  type AuditSubject,
  type Decided,
  decisionEntry,
  type Happening,
  policyEntry,
} from './audit/audit-events.ts';
export type { AuditGap } from './audit/audit-sequence.ts';
export type { AuditWriter } from './audit/audit-trail.ts';
export { delayFor, type DelayFacts } from './policy/backoff.ts';
export {
  type Breaker,
  type BreakerOptions,
  type BreakerSnapshot,
  type BreakerState,
  createBreaker,
} from './circuit/breaker.ts';
export { type Budget, type BudgetOptions, createBudget, grpcBudget } from './limits/budget.ts';
export { type CategoryId, categoryPolicy } from './categories/category.ts';
export {
  createRetryManager,
  type ExecuteOptions,
  getRetryManager,
  type KeyIds,
  type RetryManager,
  type WorkIds,
} from './categories/manager.ts';
export type {
  AuditFunction,
  ManagedIdempotency,
  ManagerAudit,
  OwnCategories,
  RetryManagerOptions,
} from './categories/manager-options.ts';
export { type CategoryName, categoryMatrix } from './categories/matrix.ts';
export {
  type Bulkhead,
  type BulkheadOptions,
  type BulkheadPlace,
  createBulkhead,
} from './limits/bulkhead.ts';
export { classify, type ClassifyOptions } from './failure/classify.ts';
export { classifyText, type ClassifyRule, type TextMatch } from './failure/classify-text.ts';
export type { Clock, Random } from './clock.ts';
export {
  type CriterionChoice,
  type CriterionConfig,
  type CriterionProfile,
  type CriterionSettings,
  criterionConfig,
  criterionSettings,
} from './criteria/config.ts';
export { isRetryDelayElapsed } from './criteria/elapsed.ts';
export type { CriterionOptions, RetryDelayInput } from './criteria/entity.ts';
export {
  type CriterionName,
  criterionNames,
  evaluateCriterion,
  isCriterionName,
} from './criteria/evaluate.ts';
export {
  hasRetriesAvailable,
  isMaxRetriesExceeded,
  type MaxRetriesInput,
  type RetryLimitInput,
} from './criteria/limits.ts';
export { nextRetryTime, type NextRetryTime } from './criteria/next.ts';
export type {
  CriterionError,
  CriterionErrorCode,
  CriterionResult,
  CriterionWarning,
  CriterionWarningCode,
  RetryDelayReason,
  RetryDelayResult,
  RetryLimitReason,
  RetryLimitResult,
} from './criteria/result.ts';
export { type Decision, decide, type Facts, type GiveUp, type Retry } from './decide.ts';
export type { Duration } from './policy/duration.ts';
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
export type { Failure, FailureClass } from './failure/failure.ts';
export { canonicalJson } from './idempotency/canonical-json.ts';
export {
  type IdempotencyDetail,
  idempotencyDetailEntry,
  idempotencyEntry,
} from './idempotency/events.ts';
export {
  idempotencyClaim,
  idempotentHandler,
  type IdempotentHandlerOptions,
} from './idempotency/http/handler.ts';
export type { IdempotentHttpOptions } from './idempotency/http/http-options.ts';
export type { IdempotencyRefusal } from './idempotency/http/refusal.ts';
export {
  IdempotencyError,
  type IdempotencyErrorCode,
  isIdempotencyError,
  type StoredFailure,
} from './idempotency/idempotency-error.ts';
export { type Claim, idempotent } from './idempotency/idempotent.ts';
export { idempotencyKey, type IdempotencyKeyParts } from './idempotency/key.ts';
export { memoryIdempotency, type MemoryIdempotencyOptions } from './idempotency/memory.ts';
export type { IdempotentOptions } from './idempotency/options.ts';
export {
  checkIdempotency,
  clearIdempotency,
  type IdempotencyStatus,
  type RecordOptions,
  recordResult,
  type ResultOptions,
} from './idempotency/results.ts';
export type {
  ClaimAnswer,
  ClaimRequest,
  IdempotencyEntry,
  IdempotencyStore,
  NewRecord,
  Outcome,
  StoredRecord,
} from './idempotency/store.ts';
export { ResponseError } from './fetch/response-error.ts';
export { retryFetch, type RetryFetchOptions } from './fetch/retry-fetch.ts';
export { type DefinedPolicy, definePolicy, parsePolicy } from './policy/policy.ts';
export type { Backoff, FailureName, Policy, PolicyOverride } from './policy/policy-fields.ts';
export { presets } from './policy/presets.ts';
export { parseRetryAfter } from './failure/retry-after.ts';
export { retrier, type Retrier, retry, retryable } from './retry.ts';
export type {
  Attempt,
  BeforeRetry,
  Listener,
  Listeners,
  Opinion,
  RetryEvent,
  RetryIf,
  RetryIfError,
  Runtime,
} from './run/runtime.ts';
export { simulate, type Simulation } from './simulate/simulate.ts';
export type { AttemptOutcome, LoadBucket, Percentiles } from './simulate/simulate-measures.ts';
export type { DefinedWorld, World } from './simulate/simulate-world.ts';
export {
  decideRoute,
  type RetryInfo,
  type RouteDecision,
  type RouteOptions,
} from './routing/decide-route.ts';
export {
  type DetailLevel,
  type ExplanationContext,
  type ExplanationDetails,
  explainRoute,
  type RouteExplanation,
} from './routing/explain-route.ts';
export type { PolicyNote } from './routing/lint-policy.ts';
export {
  type RouteDecided,
  routeEntry,
  type RouteRecord,
  routingPolicyEntry,
} from './routing/route-audit.ts';
export type { ContextWarning, RouteContext, StickySession } from './routing/route-context.ts';
export type { ConditionValue, RoutingPolicyDocument } from './routing/routing-fields.ts';
export {
  defineRoutingPolicy,
  parseRoutingPolicy,
  type RoutingPolicy,
  type RoutingPolicyOptions,
} from './routing/routing-policy.ts';
export type { RouteAttempt } from './routing/router/leg.ts';
export type { RouteReport } from './routing/router/external-calls.ts';
export type { ProviderHealth } from './routing/router/provider-health.ts';
export {
  isRouteError,
  type RouteAttemptRecord,
  RouteError,
  type RouteErrorCode,
} from './routing/router/route-error.ts';
export {
  createRouter,
  type RouteCallOptions,
  type RouteDecideOptions,
  type RouteEvent,
  type Router,
  type RouteResult,
} from './routing/router/router.ts';
export type {
  FailedAttempt,
  RouteProvider,
  RouteProviders,
  RouterOptions,
} from './routing/router/router-options.ts';
export {
  memorySticky,
  type MemoryStickyOptions,
  type StickyStore,
} from './routing/router/sticky-store.ts';
export type { StreamOptions } from './routing/router/stream-guard.ts';
