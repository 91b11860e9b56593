export { type AuditSetup, auditSuite, type OpenedAudit } from './audit-suite.ts';
export type { OpenedBroker } from './broker-fixtures.ts';
export { type BrokerSetup, brokerSuite } from './broker-suite.ts';
export {
  type IdempotencySetup,
  idempotencySuite,
  type OpenedIdempotency,
} from './idempotency-suite.ts';
export { inboxSuite } from './inbox-suite.ts';
export { modelSuite, type ModelSetup } from './model.ts';
export { scheduleSuite } from './schedule-suite.ts';
export type { CallerTransaction, OpenedStore, Outside, StoreSetup } from './stage.ts';
export { type OpenedSticky, stickySuite, type StickySetup } from './sticky-suite.ts';
export type { ConformanceCase } from './suite.ts';
export type { SubmittedTask, Wanted } from './submissions.ts';
export { createTestBroker, type TestBroker } from './test-broker.ts';
export {
  createTestEngine,
  type TestEngine,
  type TestEngineOptions,
  type TestInbox,
  type TestInboxItem,
} from './test-engine.ts';
