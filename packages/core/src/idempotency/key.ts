import { ConfigError } from '../errors.ts';
import { show } from '../options/faults.ts';
import { canonicalJson } from './canonical-json.ts';
import { sha256 } from './sha256.ts';
import { checkNames } from '../options/check-options.ts';

/** What makes two pieces of work the same one. */
export interface IdempotencyKeyParts {
  operation: string;
  tenantId?: string | null | undefined;
  correlationId?: string | null | undefined;
  /** What else tells one from the other: any JSON. */
  additionalParams?: unknown;
}

/**
 * A key of 64 hex digits: SHA-256 of the canonical JSON (RFC 8785) of the parts, so that any language can compute it.
 *
 * @example idempotencyKey({ operation: 'charge', tenantId: 't-1', additionalParams: { order: 42 } })
 */
export function idempotencyKey(parts: IdempotencyKeyParts): string {
  const { operation, tenantId, correlationId, additionalParams } = Object(
    parts,
  ) as IdempotencyKeyParts;
  // A misspelt part would give all tenants one key.
  if (Object(parts) === parts) checkNames('The parts of an idempotency key', parts, partNames);
  if (typeof operation !== 'string' || operation === '') {
    throw new ConfigError(
      'INVALID_KEY',
      `The operation of an idempotency key is ${show(operation)}. Give it a name: one key must not stand for all operations.`,
    );
  }
  const canonical = {
    additional_params: additionalParams ?? {},
    correlation_id: correlationId ?? '',
    operation,
    tenant_id: tenantId ?? '',
  };
  return sha256(canonicalJson(canonical, 'the idempotency key'));
}

const partNames = ['operation', 'tenantId', 'correlationId', 'additionalParams'];
const MAX_KEY_LENGTH = 255;

/** A key that every store can keep. */
export function assertKey(key: unknown): asserts key is string {
  if (typeof key !== 'string') {
    throw new ConfigError('INVALID_KEY', `The idempotency key is ${show(key)}, not a text.`);
  }
  if (key === '' || key.length > MAX_KEY_LENGTH) {
    throw new ConfigError(
      'INVALID_KEY',
      `The idempotency key has ${key.length} characters. Allowed are 1 to ${MAX_KEY_LENGTH}: hash longer ones with idempotencyKey.`,
    );
  }
  // The first is much faster, and does not tell halves of a pair from whole ones.
  if (/[\0\ud800-\udfff]/.test(key) && /\p{Surrogate}|\0/u.test(key)) {
    throw new ConfigError(
      'INVALID_KEY',
      'The idempotency key has a NUL or half a surrogate pair, which not every store can keep. Hash it with idempotencyKey.',
    );
  }
}

/** What the same key must come with again. Empty: nothing to compare. */
export function fingerprintOf(payload: unknown): string {
  return payload === undefined ? '' : sha256(canonicalJson(payload, 'the payload'));
}

/** Whether two fingerprints may be those of one payload. A claim without a payload fits any. */
export function isSamePayload(one: string, other: string): boolean {
  return one === '' || other === '' || one === other;
}
