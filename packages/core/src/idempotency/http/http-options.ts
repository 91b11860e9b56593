import { ConfigError, type Fault } from '../../errors.ts';
import { type Fields, readFields } from '../../options/fields.ts';
import { type IdempotentOptions, readIdempotentOptions } from '../options.ts';
import { type IdempotencyStore, isIdempotencyStore } from '../store.ts';

/** What every way of serving HTTP with idempotency keys takes. */
export interface IdempotentHttpOptions extends Pick<
  IdempotentOptions,
  | 'lease'
  | 'maxWait'
  | 'afterCrash'
  | 'whenStoreFails'
  | 'storeTimeout'
  | 'expiresIn'
  | 'audit'
  | 'clock'
> {
  store: IdempotencyStore;
  /** Whether a request without a key is refused with 400 (false). */
  required?: boolean | undefined;
  /** The methods that take a key (POST and PATCH). Others are passed on. */
  methods?: readonly ('POST' | 'PUT' | 'PATCH' | 'DELETE')[] | undefined;
  /** What a request gets while another one with its key is processed: 409, or the result once it is there (`conflict`). */
  whileRunning?: 'conflict' | 'wait' | undefined;
  /** Larger bodies of responses are not kept (256 KiB, at most 8 MiB). */
  maxResponseBytes?: number | undefined;
  /** A page about idempotency keys, to which problem documents link (the draft of the IETF). */
  describedBy?: string | undefined;
}

export interface HttpSettings {
  store: IdempotencyStore;
  isRequired: boolean;
  methods: ReadonlySet<string>;
  maxResponseBytes: number;
  maxRequestBytes: number;
  describedBy: string;
  /** For `idempotent`. */
  call: IdempotentOptions;
}

const MIB = 1024 * 1024;
const DRAFT = 'https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/';
const takingKeys = ['POST', 'PUT', 'PATCH', 'DELETE'];

const fields = {
  required: { kind: 'boolean', default: false },
  maxResponseBytes: { kind: 'integer', min: 0, max: 8 * MIB, default: MIB / 4 },
  maxRequestBytes: { kind: 'integer', min: 0, max: 64 * MIB, default: MIB },
} as const satisfies Fields;

/** Every option that all ways of serving have, for "did you mean". */
const names: readonly string[] = [
  'store',
  'required',
  'methods',
  'whileRunning',
  'maxResponseBytes',
  'describedBy',
  'lease',
  'maxWait',
  'afterCrash',
  'whenStoreFails',
  'storeTimeout',
  'expiresIn',
  'audit',
  'clock',
] satisfies (keyof IdempotentHttpOptions)[];

/** Checks the options once, all faults at once. `own`: those that only one way of serving has. */
export function readHttpOptions(
  options: IdempotentHttpOptions & { maxRequestBytes?: number | undefined },
  own: readonly 'maxRequestBytes'[] = [],
): HttpSettings {
  const { store, methods, describedBy = DRAFT, audit, clock, ...data } = options;
  const {
    lease,
    maxWait,
    afterCrash,
    whenStoreFails,
    storeTimeout,
    expiresIn = '24h',
    ...rest
  } = data;
  const { whileRunning = 'conflict', ...http } = rest;
  const call = {
    lease,
    maxWait,
    afterCrash,
    whenStoreFails,
    storeTimeout,
    expiresIn,
    whileRunning,
    // What is kept is limited before it gets there. As JSON it may be six times as long.
    maxResultBytes: 64 * MIB,
    audit,
    clock,
  };
  readIdempotentOptions(call);
  const faults: Fault[] = [];
  const values = readFields(http, fields, [...names, ...own], '', faults);
  if (!isIdempotencyStore(store)) {
    const message = 'This must be an idempotency store, such as memoryIdempotency().';
    faults.push({ path: 'store', code: 'INVALID_VALUE', message });
  }
  if (!isMethods(methods)) {
    const message = `This must be a list of ${takingKeys.join(', ')}.`;
    faults.push({ path: 'methods', code: 'INVALID_VALUE', message });
  }
  if (!/^https?:\/\/[^\s"<>\\\p{C}]+$/u.test(describedBy)) {
    const message = 'This must be a URL that begins with http:// or https://.';
    faults.push({ path: 'describedBy', code: 'INVALID_VALUE', message });
  }
  if (faults.length > 0) {
    throw new ConfigError('INVALID_CONFIG', 'The options of idempotency keys have faults:', faults);
  }
  return {
    store,
    isRequired: (values['required'] as boolean | undefined) ?? fields.required.default,
    methods: new Set(methods ?? ['POST', 'PATCH']),
    maxResponseBytes:
      (values['maxResponseBytes'] as number | undefined) ?? fields.maxResponseBytes.default,
    maxRequestBytes:
      (values['maxRequestBytes'] as number | undefined) ?? fields.maxRequestBytes.default,
    describedBy,
    call,
  };
}

function isMethods(methods: unknown): boolean {
  if (methods === undefined) return true;
  return Array.isArray(methods) && methods.every((method) => takingKeys.includes(method as string));
}
