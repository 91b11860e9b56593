export { bodyMark } from './broker-delivery.ts';
export type { Reading, SourceOptions } from './consumer.ts';
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
  type Rejected,
  type SourceReport,
  type SubmissionTo,
} from './engine.ts';
export type { EngineOptions, InboxOptions, LaneOptions } from './engine-options.ts';
export { type Difference, differenceOf } from './difference.ts';
export type { By, EngineInbox, JobReport } from './engine-inbox.ts';
export type { InboxEntry } from './entry-hook.ts';
export { EngineError, type EngineErrorCode, isEngineError, type TaskFault } from './errors.ts';
export type { Erased } from './erase/erasure.ts';
export type { EngineEvent } from './events.ts';
export * as itemMoves from './item-moves.ts';
export type { ItemChange } from './item-moves.ts';
export type { Handler, HandlerContext } from './handlers.ts';
export type { Log } from './host.ts';
export { laneStates } from './lanes/lane-state.ts';
export * as lines from './line.ts';
export type { Line } from './line.ts';
export * as moves from './moves.ts';
export type { Accepted, Arrival, Change } from './moves.ts';
export { giveUp, retryIn, snooze, type Wish } from './outcomes.ts';
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
export type * from './ports/schedule.ts';
export type { Census, NotReached, Store } from './ports/store.ts';
export type { FailureReport, Reported } from './report.ts';
export type { Changes, ReplayOptions, Selection } from './selection.ts';
export type { StandardSchema } from './standard-schema.ts';
export type { Submission, SubmitOptions } from './submission.ts';
export type { Submitted } from './submitter.ts';
export type {
  AttemptRecord,
  Destination,
  Due,
  NewTask,
  Reason,
  Task,
  TaskContext,
  TaskStatus,
} from './task.ts';
export { laneOf, reasons } from './task.ts';
export { itemOf } from './item.ts';
export { uuidOf } from './uuid.ts';
