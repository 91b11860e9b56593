export { storeDelayQueue, type StoreDelayQueueOptions } from './delay-queue/store/store-queue.ts';
export { bodyMark } from './dispatch/broker-delivery.ts';
export type { Reading, SourceOptions } from './intake/consumer.ts';
export {
  createEngine,
  type Elsewhere,
  type Engine,
  type EngineStats,
  type HandlerOptions,
  type LaneCounts,
  type LaneLimits,
  type LaneQuery,
  type LaneReport,
  type PayloadTo,
  type Rejected,
  type SourceReport,
  type SubmissionTo,
  type Takes,
} from './engine.ts';
export type { EngineOptions, InboxOptions, LaneOptions } from './engine-options.ts';
export { type Difference, differenceOf } from './model/difference.ts';
export type { By, EngineInbox, JobReport } from './inbox/engine-inbox.ts';
export type { InboxEntry } from './inbox/entry-hook.ts';
export { EngineError, type EngineErrorCode, isEngineError, type TaskFault } from './errors.ts';
export type { Erased } from './erase/erasure.ts';
export type { EngineEvent } from './events.ts';
export * as itemMoves from './model/item-moves.ts';
export type { ItemChange } from './model/item-moves.ts';
export type { Handler, HandlerContext, IdempotentContext } from './dispatch/handlers.ts';
export type { Log } from './host.ts';
export { laneStates } from './lanes/lane-state.ts';
export * as lines from './model/line.ts';
export type { Line } from './model/line.ts';
export * as moves from './model/moves.ts';
export type { Accepted, Arrival, Change } from './model/moves.ts';
export { giveUp, retryIn, snooze, type Wish } from './model/outcomes.ts';
export type { AuditEvent, AuditOptions, AuditPage, AuditQuery, AuditSink } from './ports/audit.ts';
export type {
  Broker,
  BrokerCapabilities,
  Consumer,
  ConsumeLimits,
  Publication,
  Published,
  PublishOptions,
  Received,
} from './ports/broker.ts';
export type { Delivery, Outcome, Run } from './ports/delivery.ts';
export type * from './ports/inbox.ts';
export { actResults, jobKey } from './ports/inbox.ts';
export type * from './ports/delay-queue.ts';
export {
  MAX_DELAY_MS as MAX_ENTRY_DELAY_MS,
  MAX_ID_LENGTH as MAX_ENTRY_ID_LENGTH,
  MAX_PAYLOAD_BYTES as MAX_ENTRY_PAYLOAD_BYTES,
} from './ports/delay-queue.ts';
export type * from './ports/schedule.ts';
export type { SharedStickyOptions, SharedStickyStore } from './ports/sticky.ts';
export type {
  Transaction,
  TransactionalIdempotency,
  TransactionLimits,
  TransactionQuery,
  TransactionResult,
} from './ports/idempotency.ts';
export type { Census, NotReached, Store, TransactionalStore } from './ports/store.ts';
export type { FailureReport, Reported } from './intake/report.ts';
export type { Changes, ReplayOptions, Selection } from './inbox/selection.ts';
export type { StandardSchema } from './dispatch/standard-schema.ts';
export type { Submission, SubmitOptions } from './intake/submission.ts';
export type { Submitted } from './intake/submitter.ts';
export type {
  AttemptRecord,
  Destination,
  Due,
  NewTask,
  Reason,
  Task,
  TaskContext,
  TaskStatus,
} from './model/task.ts';
export { laneOf, reasons } from './model/task.ts';
export { itemOf } from './model/item.ts';
export { uuidOf } from './model/uuid.ts';
