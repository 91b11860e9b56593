export { type AuditSetup, auditSuite, type OpenedAudit } from './audit/audit-suite.ts';
export type { OpenedBroker } from './broker/broker-fixtures.ts';
export { type BrokerSetup, brokerSuite } from './broker/broker-suite.ts';
export { delayQueueSuite } from './delay-queue/delay-queue-suite.ts';
export type {
  DelayQueueHook,
  DelayQueueSetup,
  OpenedDelayQueue,
} from './delay-queue/delay-queue-stage.ts';
export {
  type IdempotencySetup,
  idempotencySuite,
  type OpenedIdempotency,
} from './idempotency/idempotency-suite.ts';
export { inboxSuite } from './inbox/inbox-suite.ts';
export { modelSuite, type ModelSetup } from './model/model.ts';
export { scheduleSuite } from './schedule/schedule-suite.ts';
export type { CallerTransaction, OpenedStore, Outside, StoreSetup } from './stage.ts';
export { type OpenedSticky, stickySuite, type StickySetup } from './sticky-suite.ts';
export { casesOf, type CaseTable, type ConformanceCase, needing } from './suite.ts';
export type { SubmittedTask, Wanted } from './submissions.ts';
export { createTestBroker, type TestBroker } from './test-broker.ts';
export {
  createTestEngine,
  type TestEngine,
  type TestEngineOptions,
  type TestInbox,
  type TestInboxItem,
} from './test-engine.ts';
