import type { AuditEntry, AuditSubject } from '../audit/audit-events.ts';
import type { Clock } from '../clock.ts';
import type { Duration } from '../policy/duration.ts';
import { ConfigError, type Fault } from '../errors.ts';
import { saidBy, show } from '../options/faults.ts';
import { defaultOf, type Fields, isObject, readFields, type Values } from '../options/fields.ts';
import { systemClock } from '../system.ts';

export interface IdempotentOptions {
  /** What the same key must come with again: any JSON. Another payload is an error. */
  payload?: unknown;
  /** How long the key stays taken after its owner was last heard of (30 s). It is renewed while the work runs. */
  lease?: Duration | undefined;
  /** What a caller does while another one runs the work: waits for its result, or gets a conflict (`wait`). */
  whileRunning?: 'wait' | 'conflict' | undefined;
  /** How long it waits (30 s). */
  maxWait?: Duration | undefined;
  /**
   * What becomes of a key whose owner was not heard of for a lease: `run` runs the work again, `conflict` refuses it until
   * somebody clears the key (`run`).
   */
  afterCrash?: 'run' | 'conflict' | undefined;
  /** What to do where the store cannot be asked: `refuse` does not run the work, `run` runs it unprotected (`refuse`). */
  whenStoreFails?: 'refuse' | 'run' | undefined;
  /** How long a call of the store may take (5 s). */
  storeTimeout?: Duration | undefined;
  /** How long a result is kept. For good unless given. */
  expiresIn?: Duration | undefined;
  /** Larger results are not stored (256 KiB of JSON). */
  maxResultBytes?: number | undefined;
  /** Whether a failure is stored too, so that the work is not run again (never). */
  storeFailures?: boolean | ((error: unknown) => boolean | PromiseLike<boolean>) | undefined;
  /** Kept with the result: any JSON of up to 16 KiB. */
  metadata?: unknown;
  /** Ends the waiting, and is passed on to the work. */
  signal?: AbortSignal | undefined;
  /** Gets an audit event for each hit, each record, and whatever else happened to the key. It never breaks the work. */
  audit?: ((entry: AuditEntry) => unknown) | undefined;
  /** Whose work the events are about. */
  subject?: AuditSubject | undefined;
  clock?: Clock | undefined;
}

export interface IdempotentSettings {
  leaseMs: number;
  waits: boolean;
  maxWaitMs: number;
  takeOver: boolean;
  failOpen: boolean;
  storeTimeoutMs: number;
  expiresInMs: number | undefined;
  maxResultBytes: number;
  storesFailure: (error: unknown) => boolean | PromiseLike<boolean>;
  metadata: string | undefined;
  signal: AbortSignal | undefined;
  audit: ((entry: AuditEntry) => unknown) | undefined;
  subject: AuditSubject;
  clock: Clock;
}

const MAX_METADATA_BYTES = 16 * 1024;

const fields = {
  lease: { kind: 'duration', min: 50, default: 30_000 },
  whileRunning: { kind: 'choice', of: ['wait', 'conflict'], default: 'wait' },
  maxWait: { kind: 'duration', min: 0, default: 30_000 },
  afterCrash: { kind: 'choice', of: ['run', 'conflict'], default: 'run' },
  whenStoreFails: { kind: 'choice', of: ['refuse', 'run'], default: 'refuse' },
  storeTimeout: { kind: 'duration', min: 1, default: 5000 },
  expiresIn: { kind: 'duration', min: 1 },
  maxResultBytes: { kind: 'integer', min: 0, max: 64 * 1024 * 1024, default: 256 * 1024 },
} as const satisfies Fields;

/** Those that are no data stand here for "did you mean". */
const names = [
  ...Object.keys(fields),
  'payload',
  'storeFailures',
  'metadata',
  'signal',
  'audit',
  'subject',
  'clock',
];

/** Checks the options of a call, all faults at once. */
export function readIdempotentOptions(options: IdempotentOptions = {}): IdempotentSettings {
  if (options === noOptions) return usual;
  if (!isObject(options)) {
    throw new ConfigError(
      'INVALID_CONFIG',
      `The idempotency options are ${show(options)}, not an object such as { payload, expiresIn: '1d' }.`,
    );
  }
  const {
    payload: _,
    storeFailures,
    metadata,
    signal,
    audit,
    subject,
    clock,
    ...data
  } = options as IdempotentOptions & { payload?: unknown };
  const faults: Fault[] = [];
  const fault = (path: string, message: string) =>
    faults.push({ path, code: 'INVALID_VALUE', message });
  const values: Values = readFields(data, fields, names, '', faults);
  for (const [name, field] of Object.entries(fields)) values[name] ??= defaultOf(field);
  if (audit !== undefined && typeof audit !== 'function') {
    fault('audit', 'This must be a function.');
  }
  if (!['undefined', 'boolean', 'function'].includes(typeof storeFailures)) {
    fault('storeFailures', 'This must be true, false, or a function of the error.');
  }
  if (signal !== undefined && typeof signal?.throwIfAborted !== 'function') {
    fault('signal', 'This must be a signal, as from an AbortController.');
  }
  if (faults.length > 0) {
    throw new ConfigError('INVALID_CONFIG', 'The idempotency options have faults:', faults);
  }
  return {
    leaseMs: values['lease'] as number,
    waits: values['whileRunning'] === 'wait',
    maxWaitMs: values['maxWait'] as number,
    takeOver: values['afterCrash'] === 'run',
    failOpen: values['whenStoreFails'] === 'run',
    storeTimeoutMs: values['storeTimeout'] as number,
    expiresInMs: values['expiresIn'] as number | undefined,
    maxResultBytes: values['maxResultBytes'] as number,
    storesFailure: typeof storeFailures === 'function' ? storeFailures : () => !!storeFailures,
    metadata: metadataText(metadata),
    signal,
    audit,
    subject: subject ?? anonymous,
    clock: clock ?? systemClock,
  };
}

const anonymous: AuditSubject = { category: 'IDEMPOTENT', operation: '' };
export const noOptions: IdempotentOptions = Object.freeze({});
const usual = /* @__PURE__ */ readIdempotentOptions({});

/** Metadata is checked before the work runs: afterwards it would be too late to refuse it. */
function metadataText(metadata: unknown): string | undefined {
  if (metadata === undefined) return undefined;
  let text: string | undefined;
  try {
    text = JSON.stringify(metadata);
  } catch (error) {
    throw notJson(saidBy(error));
  }
  if (text === undefined) throw notJson(`a ${typeof metadata}`);
  if (text.length > MAX_METADATA_BYTES) {
    throw new ConfigError(
      'INVALID_VALUE',
      `The metadata has ${text.length} characters of JSON. At most ${MAX_METADATA_BYTES} are kept: store what is larger elsewhere.`,
    );
  }
  return text;
}

function notJson(found: string): ConfigError {
  return new ConfigError('NOT_JSON', `JSON cannot carry the metadata (${found}). Give plain data.`);
}
