import type { StreamConfig, StreamInfo } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { ConfigError, type Fault } from 'redrive';
import { textOf } from '../../../broker/answers.ts';
import { EngineError } from '../../../errors.ts';
import { JetStreamApiError, PermissionViolationError } from '../library.ts';

export const WRONG_SEQUENCE = [10071, 10164];
export const STREAM_NOT_FOUND = 10059;
const NOT_FOR_ACCOUNT = 10039;
/** No resources, no storage, no room in the stream: in bytes, in messages. */
const FULL = [10023, 10047, 10077, 10002, 10028];
/** A claim, and a record without its result, always fit into this. */
const MIN_VALUE_BYTES = 65_536;

export function hasCode(error: unknown, codes: readonly number[]): boolean {
  return error instanceof JetStreamApiError && codes.includes(error.code);
}

/** What the store says of an error of the client. */
export function faultOf(error: unknown, connection: NatsConnection | undefined): Error {
  if (error instanceof EngineError || error instanceof ConfigError) return error;
  const cause = { cause: error };
  const isOff = isUnanswered(error) && connection?.info?.jetstream !== true;
  if (isOff || hasCode(error, [NOT_FOR_ACCOUNT])) {
    return new ConfigError('INVALID_CONFIG', 'The NATS server cannot keep idempotency keys:', [
      fault('jetstream', 'is not enabled. Add jetstream {} to the configuration of the server.'),
    ]);
  }
  const said = textOf(error);
  if (isForbidden(error)) {
    return new EngineError(
      'STORE_READ_ONLY',
      `NATS does not permit it (${said}). Let the user publish to $KV.<bucket>.> and $JS.API.>, and subscribe to _INBOX.>.`,
      cause,
    );
  }
  if (hasCode(error, FULL)) {
    return new EngineError(
      'STORE_FULL',
      `JetStream has no room left (${said}). Raise its limits or those of the bucket, or give results an expiry and call prune.`,
      cause,
    );
  }
  return new EngineError(
    'STORE_UNAVAILABLE',
    `JetStream did not answer, or the cluster chooses a leader (${said}). Trying again is safe.`,
    cause,
  );
}

/** Nobody takes requests to JetStream. The client does not export the class. */
function isUnanswered(error: unknown): boolean {
  return error instanceof Error && error.name === 'JetStreamNotEnabled';
}

function isForbidden(error: unknown): boolean {
  const { cause } = Object(error) as { cause?: unknown };
  return error instanceof PermissionViolationError || cause instanceof PermissionViolationError;
}

/** Throws where the bucket would lose keys, or does not take them, with the command that mends each fault. */
export function checkBucket(
  bucket: string,
  { config }: StreamInfo,
  replicas: number,
  maxPayload: number,
): void {
  const faults = [...faultsOf(bucket, config, replicas)];
  if (maxPayload < MIN_VALUE_BYTES) {
    const message = `of the server is ${maxPayload}, and at least ${MIN_VALUE_BYTES} bytes are needed. Raise it in the configuration of the server.`;
    faults.push(fault('max_payload', message));
  }
  if (faults.length === 0) return;
  throw new ConfigError(
    'INVALID_CONFIG',
    `The bucket ${bucket} cannot keep idempotency keys:`,
    faults,
  );
}

function* faultsOf(bucket: string, config: StreamConfig, replicas: number): Iterable<Fault> {
  const edit = (flag: string) => `Run: nats stream edit KV_${bucket} --force ${flag}`;
  const anew = `It cannot be changed. Name another bucket, or, when no key in it matters: nats kv del ${bucket} --force`;
  const { max_msgs_per_subject: history, max_age: age, max_msg_size: size, storage } = config;
  if (!config.subjects?.includes(`$KV.${bucket}.>`) || config.mirror || config.sealed) {
    yield fault('subjects', `It is no bucket to write to (a mirror, or sealed). ${anew}`);
  }
  if (history !== 1) {
    yield fault('history', `is ${history}, not 1. ${edit('--max-msgs-per-subject=1')}`);
  }
  if (age > 0) {
    const message = `is ${age / 1e9} s: it would delete claims and results. ${edit('--max-age=0s')}`;
    yield fault('ttl', message);
  }
  if (storage !== 'file') {
    yield fault('storage', `is ${storage}: a restart would lose all keys. ${anew}`);
  }
  if (config.discard !== 'new') {
    const message = `is ${config.discard}: a full bucket would delete keys. ${edit('--discard=new')}`;
    yield fault('discard', message);
  }
  if (size > 0 && size < MIN_VALUE_BYTES) {
    const message = `is ${size}, and at least ${MIN_VALUE_BYTES} bytes are needed. ${edit('--max-msg-size=-1')}`;
    yield fault('max_msg_size', message);
  }
  if (config.deny_purge) {
    yield fault('deny_purge', `is set: nothing could be pruned. ${anew}`);
  }
  if (config.num_replicas < replicas) {
    const message = `are ${config.num_replicas}, not ${replicas}. ${edit(`--replicas=${replicas}`)}`;
    yield fault('replicas', message);
  }
}

function fault(path: string, message: string): Fault {
  return { path, code: 'INVALID_VALUE', message };
}
