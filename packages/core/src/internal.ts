/** For Redrive's own packages. Not part of the public interface: it may change in any release. */
export { AuditTrail, REGISTER_AGAIN_MS } from './audit-trail.ts';
export { LAST_DATE_MS } from './criteria/time.ts';
export { durationMs } from './duration.ts';
export { didYouMean, nearest } from './faults.ts';
export { defaultOf, type Field, type Fields, joinPath, readFields, type Values } from './fields.ts';
export { defined } from './policy.ts';
export { hash64, unitRandom } from './random.ts';
export { answerOf, claimOf, isHeldBy, type KeyEntry, recordedOf } from './idempotency/entry.ts';
export { freshId, reportFault, systemClock } from './system.ts';
