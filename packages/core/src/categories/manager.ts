import { auditEntry, type AuditSubject, decisionEntry } from '../audit/audit-events.ts';
import type { Clock, Random } from '../clock.ts';
import { isRetryError, nameWork } from '../errors.ts';
import { didYouMean, nearest, saidBy, show } from '../options/faults.ts';
import { type Claim, idempotent } from '../idempotency/idempotent.ts';
import { memoryIdempotency } from '../idempotency/memory.ts';
import {
  checkIdempotency,
  clearIdempotency,
  type IdempotencyStatus,
  type RecordOptions,
  recordResult,
} from '../idempotency/results.ts';
import type { IdempotencyStore } from '../idempotency/store.ts';
import type { DefinedPolicy } from '../policy/policy.ts';
import type { Policy } from '../policy/policy-fields.ts';
import { retry } from '../retry.ts';
import type { Attempt, RetryEvent } from '../run/runtime.ts';
import { reportFault, systemClock } from '../system.ts';
import { type Category, type CategoryId, categoryPolicy, codeOf } from './category.ts';
import {
  type ManagerSettings,
  type OwnCategories,
  readManagerOptions,
  type RetryManagerOptions,
} from './manager-options.ts';
import type { CategoryName } from './matrix.ts';
import { ManagerTrail } from './manager-trail.ts';
import { checkNames } from '../options/check-options.ts';
import { notAFunction } from '../options/not-a-function.ts';

/** Whose work it is, for the events. */
export interface WorkIds {
  tenantId?: string | null | undefined;
  correlationId?: string | null | undefined;
  traceId?: string | null | undefined;
  /** Whatever else the events should say: any JSON of up to 8 KiB, in their object `redrive`. */
  context?: Readonly<Record<string, unknown>> | undefined;
}

export interface ExecuteOptions extends WorkIds {
  /** Another policy for this call. What is left out is that of the default category. */
  policy?: Policy | undefined;
  /** Runs the work once for this key: see `idempotent`. */
  idempotencyKey?: string | undefined;
  /** What the same key must come with again: any JSON. */
  payload?: unknown;
  /** Kept with the result: any JSON of up to 16 KiB. */
  metadata?: unknown;
  /** How long one attempt may take (30 s). */
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** Whose key it is, for the events. */
export interface KeyIds<Id extends string> extends WorkIds {
  category?: Id | undefined;
  operation?: string | undefined;
}

export interface RetryManager<Own extends OwnCategories = NoCategories> {
  /**
   * Runs the work under the policy of its category, calling it anew for each attempt. With an idempotency key it runs once
   * in all: the second argument of the work is then its claim.
   */
  execute<T>(
    category: CategoryId<keyof Own & string>,
    operation: string,
    fn: (attempt: Attempt, claim: Claim | undefined) => T,
    options?: ExecuteOptions,
  ): Promise<Awaited<T>>;
  /** The policy of a category, by its name or its code. An unknown one gets the default policy, and a warning. */
  getPolicy(category: CategoryId<keyof Own & string>): DefinedPolicy;
  readonly idempotency: {
    check(key: string, ids?: KeyIds<CategoryId<keyof Own & string>>): Promise<IdempotencyStatus>;
    record(
      key: string,
      result: unknown,
      options?: KeyIds<CategoryId<keyof Own & string>> &
        Pick<RecordOptions, 'payload' | 'metadata' | 'expiresIn'>,
    ): Promise<boolean>;
    clear(key: string, ids?: KeyIds<CategoryId<keyof Own & string>>): Promise<boolean>;
  };
  /** Events that the audit sink did not take. */
  readonly auditFailures: number;
  /** Until the events so far are written, or given up. */
  flush(): Promise<void>;
}

/**
 * Retries by category: finite, jittered, audited, and once per idempotency key.
 *
 * @example
 * const manager = createRetryManager({ categories: { LEDGER: { maxAttempts: 5 } }, audit: (event) => log(event) });
 * await manager.execute('LEDGER', 'book', () => book(entry), { idempotencyKey });
 */
export function createRetryManager<const Own extends OwnCategories = NoCategories>(
  options: RetryManagerOptions<Own> = {},
): RetryManager<Own> {
  return new Manager(readManagerOptions(options));
}

/** Only the built-in ones. */
type NoCategories = Readonly<Record<CategoryName, Policy>>;

let shared: RetryManager | undefined;

/** The manager that all of a process may share: the built-in categories, keys in memory, no audit. */
export function getRetryManager(): RetryManager {
  return (shared ??= createRetryManager());
}

const MAX_WARNED = 100;

const noOptions: ExecuteOptions = Object.freeze({});
const workNames = ['tenantId', 'correlationId', 'traceId', 'context'];
const keyNames = [...workNames, 'category', 'operation'];
const recordNames = ['payload', 'metadata', 'expiresIn'];
const callNames = ['policy', 'idempotencyKey', 'payload', 'metadata', 'timeoutMs', 'signal'];
const executeNames = [...workNames, ...callNames];

class Manager implements RetryManager<OwnCategories> {
  readonly #settings: ManagerSettings;
  readonly #clock: Clock;
  readonly #random: Random | undefined;
  readonly #store: IdempotencyStore;
  readonly #trail: ManagerTrail;
  readonly #warned = new Set<string>();
  readonly #default = categoryPolicy();
  readonly idempotency: RetryManager['idempotency'];

  constructor(settings: ManagerSettings) {
    this.#settings = settings;
    this.#clock = settings.clock ?? systemClock;
    this.#random = settings.random;
    this.#store = settings.idempotency ?? memoryIdempotency({ clock: this.#clock });
    this.#trail = new ManagerTrail(settings.audit, this.#clock);
    const store = this.#store;
    this.idempotency = {
      // Async, so that a misspelt option rejects, as any other fault of these calls does.
      check: async (key, ids = {}) => checkIdempotency(store, key, this.#about(ids)),
      clear: async (key, ids = {}) => clearIdempotency(store, key, this.#about(ids)),
      record: async (key, result, given = {}) => {
        checkNames('The options of record', given, [...keyNames, ...recordNames]);
        const { payload, metadata, expiresIn, ...ids } = given;
        return recordResult(store, key, result, {
          ...this.#about(ids),
          payload,
          metadata,
          expiresIn: expiresIn ?? settings.idempotencyOptions.expiresIn,
        });
      },
    };
  }

  get auditFailures(): number {
    return this.#trail.failures;
  }

  flush(): Promise<void> {
    return this.#trail.flush();
  }

  getPolicy(category: string): DefinedPolicy {
    return this.#find(category).policy;
  }

  async execute<T>(
    category: string,
    operation: string,
    fn: (attempt: Attempt, claim: Claim | undefined) => T,
    options: ExecuteOptions = noOptions,
  ): Promise<Awaited<T>> {
    if (options !== noOptions) checkNames('The options of execute', options, executeNames);
    if (typeof fn !== 'function') throw notAFunction(fn);
    const { code, policy: usual } = this.#find(category);
    const { policy: given, timeoutMs, idempotencyKey, payload, metadata, signal } = options;
    const policy =
      given === undefined && timeoutMs === undefined
        ? usual
        : categoryPolicy(given ?? usual, timeoutMs);
    const work: Work<T> = { code, operation, fn, policy, options };
    if (idempotencyKey === undefined) return this.#attempt(work, undefined, signal);
    return idempotent(
      this.#store,
      idempotencyKey,
      (claim) => this.#attempt(work, claim, claim.signal),
      {
        ...this.#settings.idempotencyOptions,
        ...this.#audits(subjectOf(code, operation, options), options.context),
        payload,
        metadata,
        signal,
      },
    );
  }

  /** The attempts of one call. */
  async #attempt<T>(
    { code, operation, fn, policy, options }: Work<T>,
    claim: Claim | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Awaited<T>> {
    const subject = subjectOf(code, operation, options);
    let ended: Extract<RetryEvent, { type: 'giveUp' }> | undefined;
    try {
      return await retry((attempt) => fn(attempt, claim), policy, {
        key: options.idempotencyKey,
        signal,
        clock: this.#clock,
        random: this.#random,
        on: (event) => {
          if (event.type === 'giveUp') ended = event;
          this.#tell(event, subject, policy, options);
        },
      });
    } catch (error) {
      // An error of the work's own that only looks like one has another decision.
      if (!ended || !isRetryError(error) || error.decision !== ended.decision) throw error;
      if (error.code === 'PERMANENT') throw error.cause;
      nameWork(error, code, operation);
      throw error;
    }
  }

  #tell(event: RetryEvent, subject: AuditSubject, policy: DefinedPolicy, ids: WorkIds): void {
    const trail = this.#trail;
    if (!trail.isOn || event.type === 'attempt') return;
    const context = contextOf(ids.context);
    if (event.type === 'success') {
      if (!trail.hasSuccesses) return;
      const { attempt } = event;
      const { maxAttempts } = policy;
      trail.write(auditEntry(subject, { type: 'retry_succeeded', attempt, maxAttempts }, context));
      return;
    }
    trail.register(policy);
    const { facts, decision } = event;
    trail.write(decisionEntry(subject, { policy, facts, decision }, context));
  }

  #find(category: string): Category {
    const known = this.#settings.categories.get(category);
    if (known) return known;
    this.#warn(category);
    return { code: codeOf(String(category)), policy: this.#default };
  }

  /** Once for each, and not without an end. */
  #warn(category: string): void {
    if (this.#warned.has(category) || this.#warned.size >= MAX_WARNED) return;
    this.#warned.add(category);
    const near = nearest(category, [...this.#settings.categories.keys()]);
    const what = `The category ${show(category)} is not known, so the default policy is used.${didYouMean(near)} Add it to the categories of createRetryManager.`;
    reportFault(what, { code: 'UNKNOWN_CATEGORY', category });
  }

  /** The options that all calls about one key share. */
  #about(given: KeyIds<string>) {
    checkNames('The options', given, keyNames);
    const { category, operation = '', ...ids } = given;
    const code = category === undefined ? 'IDEMPOTENCY' : this.#find(category).code;
    const { storeTimeout } = this.#settings.idempotencyOptions;
    return { ...this.#audits(subjectOf(code, operation, ids), ids.context), storeTimeout };
  }

  #audits(subject: AuditSubject, context: WorkIds['context']) {
    const trail = this.#trail;
    if (!trail.isOn) return { clock: this.#clock };
    const audit = (entry: Parameters<typeof trail.write>[0]) =>
      trail.write({ ...entry, redrive: { ...contextOf(context), ...entry.redrive } });
    return { clock: this.#clock, subject, audit };
  }
}

interface Work<T> {
  code: string;
  operation: string;
  fn: (attempt: Attempt, claim: Claim | undefined) => T;
  policy: DefinedPolicy;
  options: ExecuteOptions;
}

function subjectOf(category: string, operation: string, ids: WorkIds): AuditSubject {
  const { tenantId = null, correlationId = null, traceId = null } = ids;
  return { category, operation: String(operation), tenantId, correlationId, traceId };
}

const MAX_CONTEXT = 8 * 1024;

/** As data that any sink takes and that is not endless: one odd value must not lose an event. */
function contextOf(context: WorkIds['context']): Record<string, unknown> {
  if (context === undefined) return {};
  try {
    const text = JSON.stringify(context);
    return {
      context: text.length > MAX_CONTEXT ? { cut: text.slice(0, MAX_CONTEXT) } : JSON.parse(text),
    };
  } catch (error) {
    return { context: { unreadable: saidBy(error) } };
  }
}
