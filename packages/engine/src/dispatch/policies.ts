import { type DefinedPolicy, definePolicy, parsePolicy, type Policy, presets } from 'redrive';
import { nearest, overlay, type PolicyLayer } from 'redrive/internal';
import { EngineError } from '../errors.ts';
import type { Log } from '../host.ts';
import type { Schedule } from '../ports/schedule.ts';
import type { Task } from '../model/task.ts';

/** Its fields alone, to define another one by. */
function fieldsOf(policy: DefinedPolicy): Policy {
  return Object.fromEntries(Object.entries(policy));
}

const PREFIX = 'policy:';
const MAX_CACHED = 10_000;
/** Of one policy. */
const MAX_VARIANTS = 100;
const MAX_ATTEMPTS = 1_000_000_000;

/** A policy with a name, which is the same wherever it is named: a server may ask for a day of patience, where a call in process has a minute. */
export function durablePolicy(policy: Policy): DefinedPolicy {
  // One that is defined already has said everything.
  return definePolicy('fingerprint' in policy ? policy : { maxRetryAfter: '24h', ...policy });
}

/** What a task retries by when nobody says otherwise: the scheduler's backoff, and an error nobody knows is worth a retry. */
const defaultPolicy: DefinedPolicy = definePolicy({
  ...fieldsOf(presets.scheduler),
  retryOn: ['transient', 'unknown'],
});

/**
 * The one place where policies are laid over each other: the default, then those that are given, from the engine's to
 * the nearest. What a submit asked for is merged once and stored whole: what is stored is never merged again.
 */
export function layered(layers: readonly PolicyLayer[]): DefinedPolicy {
  return overlay([{ policy: defaultPolicy, origin: 'the default policy' }, ...layers]);
}

/** What a task goes by where it has no policy of its own. */
interface LanePolicies {
  policyOf(lane: string): DefinedPolicy;
  /** The layers it is made of, from the engine's to the lane's own. */
  policyLayers(lane: string): readonly PolicyLayer[];
}

/**
 * Which policy a task has. One of its own is frozen when it is submitted: kept once in the store under its
 * fingerprint, so that every instance decides alike.
 */
export class Policies {
  readonly #schedule: Schedule;
  readonly #log: Log;
  readonly #named: ReadonlyMap<string, DefinedPolicy>;
  readonly #lanes: LanePolicies;
  readonly #known = new Map<string, DefinedPolicy>();
  readonly #stored = new Set<string>();
  /** With the task's own number of attempts. */
  readonly #variants = new WeakMap<DefinedPolicy, Map<number | 'once', DefinedPolicy>>();
  /** By the policy of the lane, and what was written over it. */
  readonly #mergedWith = new WeakMap<DefinedPolicy, Map<string, DefinedPolicy>>();
  readonly #most = new WeakMap<DefinedPolicy, number>();

  constructor(
    schedule: Schedule,
    log: Log,
    named: Readonly<Record<string, Policy>>,
    lanes: LanePolicies,
  ) {
    this.#schedule = schedule;
    this.#log = log;
    this.#named = new Map(
      Object.entries(named).map(([name, policy]) => [name, durablePolicy(policy)]),
    );
    this.#lanes = lanes;
  }

  /** The policy that a submit names, or that of its lane with the fields that the submit writes. */
  resolve(policy: string | Policy, lane: string, origin: string): DefinedPolicy {
    if (typeof policy !== 'string') return this.#merged(policy, lane, origin);
    const known = this.#named.get(policy);
    if (known) return known;
    const near = nearest(policy, [...this.#named.keys()]);
    const hint = near ? `Did you mean '${near}'?` : 'Name it in the option policies.';
    const message = `There is no policy '${policy}' in this engine. ${hint}`;
    const fault = { path: 'policy', code: 'UNKNOWN_POLICY', message } as const;
    throw new EngineError('UNKNOWN_POLICY', message, { faults: [fault] });
  }

  /** Most submits write one of a few policies: those are merged once for each lane that differs. */
  #merged(policy: Policy, lane: string, origin: string): DefinedPolicy {
    const base = this.#lanes.policyOf(lane);
    const merged = this.#mergedWith.get(base) ?? new Map<string, DefinedPolicy>();
    const key = contentOf(policy);
    let known = key === undefined ? undefined : merged.get(key);
    if (known) return known;
    known = layered([...this.#lanes.policyLayers(lane), { policy, origin }]);
    if (key === undefined) return known;
    if (merged.size >= MAX_VARIANTS) merged.clear();
    this.#mergedWith.set(base, merged.set(key, known));
    return known;
  }

  /** Keeps it in the store before the first task that refers to it. */
  async keep(policy: DefinedPolicy): Promise<string> {
    const { fingerprint } = policy;
    if (this.#stored.has(fingerprint)) return fingerprint;
    // False: it is there already, and the same fingerprint is the same policy.
    await this.#schedule.writeState(PREFIX + fingerprint, policy, 0);
    if (this.#stored.size >= MAX_CACHED) this.#stored.clear();
    this.#stored.add(fingerprint);
    this.#remember(fingerprint, policy);
    return fingerprint;
  }

  /** Reads what these tasks refer to, where it is not known here yet. Rejects while the store cannot say. */
  async know(tasks: readonly Task[]): Promise<void> {
    for (const { policy } of tasks) {
      if (policy === undefined || this.#known.has(policy)) continue;
      const { documents } = await this.#schedule.readState(PREFIX + policy);
      try {
        this.#remember(policy, parsePolicy(documents[0]?.value));
      } catch (error) {
        this.#log.warn(
          { err: error, policy },
          'a policy could not be read: its tasks use that of their lane',
        );
      }
    }
  }

  /** The policy that decides about this task, with its own number of attempts. */
  of(task: Pick<Task, 'policy' | 'lane' | 'maxAttempts' | 'trial'>): DefinedPolicy {
    const own = task.policy === undefined ? undefined : this.#known.get(task.policy);
    const policy = own ?? this.#lanes.policyOf(task.lane);
    return task.trial ? this.#once(policy) : this.limited(policy, task.maxAttempts);
  }

  /** The most executions that any failure is given by it: an override may allow more than the policy itself. */
  mostAttempts(task: Parameters<Policies['of']>[0]): number {
    const policy = this.of(task);
    let most = this.#most.get(policy);
    if (most === undefined) {
      const overrides = Object.keys(policy.overrides ?? {}).map(
        (name) => policy.for(name)?.maxAttempts ?? 0,
      );
      this.#most.set(policy, (most = Math.max(policy.maxAttempts, ...overrides)));
    }
    return most;
  }

  limited(policy: DefinedPolicy, maxAttempts: number): DefinedPolicy {
    if (policy.maxAttempts === maxAttempts) return policy;
    // A row may say anything: by hand, or by the document's own INSERT.
    maxAttempts = Math.min(Math.max(1, maxAttempts), MAX_ATTEMPTS);
    const variants = this.#variantsOf(policy);
    let variant = variants.get(maxAttempts);
    if (!variant) {
      variant = definePolicy({ ...fieldsOf(policy), maxAttempts });
      if (variants.size >= MAX_VARIANTS) variants.clear();
      variants.set(maxAttempts, variant);
    }
    return variant;
  }

  /** One execution, whatever an override says. */
  #once(policy: DefinedPolicy): DefinedPolicy {
    const variants = this.#variantsOf(policy);
    let variant = variants.get('once');
    if (!variant) {
      const { overrides: _, ...fields } = fieldsOf(policy);
      variant = definePolicy({ ...fields, maxAttempts: 1 });
      variants.set('once', variant);
    }
    return variant;
  }

  #variantsOf(policy: DefinedPolicy): Map<number | 'once', DefinedPolicy> {
    const known = this.#variants.get(policy);
    if (known) return known;
    const variants = new Map<number | 'once', DefinedPolicy>();
    this.#variants.set(policy, variants);
    return variants;
  }

  #remember(fingerprint: string, policy: DefinedPolicy): void {
    this.#known.set(fingerprint, policy);
    if (this.#known.size <= MAX_CACHED) return;
    // The oldest: what was just read is about to be used.
    for (const oldest of this.#known.keys()) {
      this.#known.delete(oldest);
      return;
    }
  }
}

/** What was written, where two that are written alike are alike: JSON leaves out functions, which are faults. */
function contentOf(policy: Policy): string | undefined {
  const isPlain = (value: unknown) => typeof value !== 'object' || Array.isArray(value);
  const values: unknown[] = Object.values(Object(policy) as object);
  if (values.some((value) => typeof value === 'function' || !isPlain(value))) return undefined;
  try {
    return JSON.stringify(policy);
  } catch {
    // A bigint, say: whoever checks the policy says what is wrong with it.
    return undefined;
  }
}
