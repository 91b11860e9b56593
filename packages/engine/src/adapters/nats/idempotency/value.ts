/** What a bucket holds under a key: JSON, and the expiry in a header, which is read without the value. */
import { createHash } from 'node:crypto';
import type { StoredMsg } from '@nats-io/jetstream';
import type { Outcome } from 'redrive';
import type { KeyEntry } from 'redrive/internal';
import { EngineError } from '../../../errors.ts';

/** Without a lease end: each reader counts leases by its own clock. */
export interface KeyValue {
  /** For people who look into the bucket. */
  key: string;
  owner: string;
  fingerprint: string;
  claims: number;
  leaseMs: number;
  outcome?: Outcome;
  metadata?: string;
  recordedAtMs?: number;
}

export const EXPIRES = 'Redrive-Expires';
export const OPERATION = 'KV-Operation';

/** Bucket keys allow few characters. UTF-16 keeps any two keys apart: UTF-8 has one byte sequence for all broken surrogates. */
export function nameOf(key: string): string {
  return createHash('sha256').update(Buffer.from(key, 'utf16le')).digest('base64url');
}

export function valueOf(key: string, entry: KeyEntry, leaseMs: number): KeyValue {
  const { owner, fingerprint, claims, outcome, metadata, recordedAtMs } = entry;
  return {
    key,
    owner,
    fingerprint,
    claims,
    leaseMs,
    ...(outcome ? { outcome, recordedAtMs } : {}),
    ...(metadata === undefined ? {} : { metadata }),
  };
}

/** The bytes, and without the result where they are more than the server takes: else the effect would be repeated. */
export function bytesOf(value: KeyValue, maxBytes: number): Uint8Array {
  const bytes = Buffer.from(JSON.stringify(value));
  if (bytes.length <= maxBytes || value.outcome?.kind !== 'value') return bytes;
  const text = `it has ${bytes.length} bytes as a value of the bucket, and the server takes ${maxBytes} (max_payload of the server, max_msg_size of the bucket)`;
  return Buffer.from(JSON.stringify({ ...value, outcome: { kind: 'unstored', text } }));
}

export function parseValue(bucket: string, { data, subject }: StoredMsg): KeyValue {
  try {
    const value = JSON.parse(Buffer.from(data).toString()) as KeyValue;
    const { owner, fingerprint, claims, leaseMs, outcome } = value;
    const isText = typeof owner === 'string' && typeof fingerprint === 'string';
    const isCounted = Number.isSafeInteger(claims) && Number.isFinite(leaseMs);
    const isOutcome = outcome === undefined || typeof outcome?.text === 'string';
    if (isText && isCounted && isOutcome) return value;
  } catch {
    // Not JSON, or null: said below.
  }
  throw new EngineError(
    'STORE_CORRUPT',
    `The value of ${subject} in the bucket ${bucket} was not written by Redrive. Give the idempotency keys a bucket of their own (the option bucket).`,
  );
}
