import type { AuditEvent } from '../audit/audit-events.ts';
import type { AuditWriter } from '../audit/audit-trail.ts';
import type { Clock, Random } from '../clock.ts';
import { ConfigError, type Fault, isConfigError } from '../errors.ts';
import { didYouMean, nearest } from '../options/faults.ts';
import { joinPath } from '../options/fields.ts';
import { type IdempotentOptions, readIdempotentOptions } from '../idempotency/options.ts';
import { type IdempotencyStore, isIdempotencyStore } from '../idempotency/store.ts';
import type { Policy } from '../policy/policy-fields.ts';
import { type Category, ownCategories } from './category.ts';
import { checkObject } from '../options/check-options.ts';

export interface RetryManagerOptions<Own extends OwnCategories> {
  /** Categories of your own, by name, or other numbers for a built-in one. What is left out is that of the default category. */
  categories?: Own | undefined;
  /** Where idempotency keys are kept. In memory unless given. */
  idempotency?: IdempotencyStore | undefined;
  /** How keys are used: leases, waiting, expiry. */
  idempotencyOptions?: ManagedIdempotency | undefined;
  /** Where events go: a sink, a function of the event, or one of them with options. */
  audit?: AuditWriter | AuditFunction | ManagerAudit | undefined;
  clock?: Clock | undefined;
  /** Randomness for the jitter instead of the number derived from the key. */
  random?: Random | undefined;
}

export type OwnCategories = Readonly<Record<string, Policy>>;

export type AuditFunction = (event: AuditEvent) => unknown;

/** The options of `idempotent` that are not those of one call. */
export type ManagedIdempotency = Omit<
  IdempotentOptions,
  'payload' | 'metadata' | 'signal' | 'audit' | 'subject' | 'clock'
>;

export interface ManagerAudit {
  to: AuditWriter | AuditFunction;
  /** Also an event for everything that worked (false). */
  successes?: boolean | undefined;
  /** Only the fields of the contract, without the object `redrive`: such a trail cannot be replayed (false). */
  strict?: boolean | undefined;
}

export interface ManagerSettings {
  categories: ReadonlyMap<string, Category>;
  idempotency: IdempotencyStore | undefined;
  idempotencyOptions: ManagedIdempotency;
  audit: ManagerAudit | undefined;
  clock: Clock | undefined;
  random: Random | undefined;
}

const names = ['categories', 'idempotency', 'idempotencyOptions', 'audit', 'clock', 'random'];

const auditNames = ['to', 'successes', 'strict'];

/** Checks the options of a manager, all faults at once. */
export function readManagerOptions(options: RetryManagerOptions<OwnCategories>): ManagerSettings {
  checkObject('The retry manager', options);
  const given = options;
  const { categories = {}, idempotency, idempotencyOptions = {}, audit, clock, random } = given;
  const faults: Fault[] = [];
  for (const name of Object.keys(given)) {
    if (names.includes(name)) continue;
    fault(name, 'UNKNOWN_FIELD', `There is no such option.${didYouMean(nearest(name, names))}`);
  }
  const known = ownCategories(Object(categories) as OwnCategories, (name, error) => {
    within(`categories.${name}`, error);
  });
  try {
    readIdempotentOptions(idempotencyOptions);
  } catch (error) {
    within('idempotencyOptions', error);
  }
  if (idempotency !== undefined && !isIdempotencyStore(idempotency)) {
    fault('idempotency', 'INVALID_VALUE', 'This must be a store, as from memoryIdempotency().');
  }
  const auditing = audit === undefined ? undefined : auditOf(audit);
  if (auditing && typeof auditing.to !== 'function' && !isWriter(auditing.to)) {
    fault('audit', 'INVALID_VALUE', 'This must be a function, or a sink with the method write.');
  }
  if (auditing && auditing.to !== audit) {
    for (const name of Object.keys(auditing)) {
      if (auditNames.includes(name)) continue;
      const hint = didYouMean(nearest(name, auditNames));
      fault(`audit.${name}`, 'UNKNOWN_FIELD', `There is no such option.${hint}`);
    }
  }
  if (random !== undefined && typeof random !== 'function') {
    fault('random', 'INVALID_VALUE', 'This must be a function.');
  }
  if (clock !== undefined && typeof clock?.setTimer !== 'function') {
    fault('clock', 'INVALID_VALUE', 'This must be a clock, as from virtualClock().');
  }
  if (faults.length > 0) {
    throw new ConfigError('INVALID_CONFIG', 'The retry manager has faults:', faults);
  }
  return { categories: known, idempotency, idempotencyOptions, audit: auditing, clock, random };

  /** The faults of a part, with their place in the whole. */
  function within(part: string, error: unknown): void {
    if (!isConfigError(error)) throw error;
    for (const { path, code, message } of error.faults) fault(joinPath(part, path), code, message);
  }

  function fault(path: string, code: Fault['code'], message: string): void {
    faults.push({ path, code, message });
  }
}

function auditOf(audit: AuditWriter | AuditFunction | ManagerAudit): ManagerAudit {
  return typeof audit === 'object' && audit !== null && 'to' in audit ? audit : { to: audit };
}

function isWriter(value: unknown): value is AuditWriter {
  return typeof (value as AuditWriter | null | undefined)?.write === 'function';
}
