/** For Redrive's own packages. Not part of the public interface: it may change in any release. */
export { AuditTrail, REGISTER_AGAIN_MS } from './audit/audit-trail.ts';
export { LAST_DATE_MS } from './criteria/time.ts';
export { durationMs } from './policy/duration.ts';
export { didYouMean, nearest } from './options/faults.ts';
export {
  defaultOf,
  type Field,
  type Fields,
  joinPath,
  readFields,
  type Values,
} from './options/fields.ts';
export { olderNode } from './options/node-version.ts';
export { bodyUnavailable } from './idempotency/http/body.ts';
export { type Exchange, type KeyedRequest, serveOnce } from './idempotency/http/exchange.ts';
export { type HttpSettings, readHttpOptions } from './idempotency/http/http-options.ts';
export { readKeyHeader } from './idempotency/http/key-header.ts';
export { problemOf, refusal } from './idempotency/http/refusal.ts';
export {
  type HeaderPair,
  type KeptResponse,
  releasesKey,
} from './idempotency/http/response-record.ts';
export { overlay, type PolicyLayer } from './policy/overlay.ts';
export { defined } from './policy/policy.ts';
export { hash64, unitRandom } from './policy/random.ts';
export { type JsonLoss, jsonLoss } from './idempotency/json-loss.ts';
export { isIdempotencyStore } from './idempotency/store.ts';
export { answerOf, claimOf, isHeldBy, type KeyEntry, recordedOf } from './idempotency/entry.ts';
export { freshId, reportFault, systemClock } from './system.ts';
export { checkNames, checkObject, checkOptions } from './options/check-options.ts';
