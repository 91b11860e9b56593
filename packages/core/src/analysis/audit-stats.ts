import { isObject, type Wire } from '../audit/audit-wire.ts';
import { type DefinedPolicy, parsePolicy } from '../policy/policy.ts';
import { CategoryFold, delayOf } from './category-fold.ts';
import { type CategoryStats, categoryStats } from './category-stats.ts';
import { OpenWaits } from './open-waits.ts';
import { OTHER } from './tallies.ts';
import { TimeGrid } from './time-grid.ts';
import { checkOptions } from '../options/check-options.ts';
import type { Fields } from '../options/fields.ts';

export interface AuditStatsOptions {
  /** What the events are grouped by: their `retry_category` (the default), or their `operation`, which is the lane in a trail of the engine. */
  by?: 'category' | 'operation';
  /** Only events from then on, and before then, by their own time. */
  fromMs?: number;
  toMs?: number;
  /** Policies that are known besides those that the trail registers. */
  policies?: Iterable<DefinedPolicy>;
}

export interface AuditStats {
  /** Events that were read, those that could not be, and those that the writers said they had to drop. */
  events: number;
  unreadable: number;
  dropped: number;
  /** The times of the first and the last event; null: there was none. */
  fromMs: number | null;
  toMs: number | null;
  /** When the first step of each `load` begins, and how long a step is. */
  loadFromMs: number;
  stepMs: number;
  /** Those with the most retries first. Categories past the first thousand are counted together as `(other)`. */
  categories: CategoryStats[];
}

/** Takes events one by one, in any order, and says what they add up to. */
export interface AuditStatsFold {
  add(event: unknown): void;
  report(): AuditStats;
}

/**
 * What retries cost and bring, per category, from an audit trail. Memory is bounded, whatever the length of the trail.
 *
 * @example const { categories } = await auditStats(readJsonl('audit.jsonl'));
 */
export async function auditStats(
  events: Iterable<unknown> | AsyncIterable<unknown>,
  options: AuditStatsOptions = {},
): Promise<AuditStats> {
  const fold = createAuditStats(options);
  for await (const event of events) fold.add(event);
  return fold.report();
}

/** `auditStats` for events that come from somewhere else than an iterable. */
export function createAuditStats(options: AuditStatsOptions = {}): AuditStatsFold {
  checkOptions('The options of createAuditStats', options, fields, ['policies']);
  return new Fold(options);
}

const fields = {
  by: { kind: 'choice', of: ['category', 'operation'], default: 'category' },
  fromMs: { kind: 'number', min: -Infinity, max: Infinity },
  toMs: { kind: 'number', min: -Infinity, max: Infinity },
} as const satisfies Fields;

const MAX_CATEGORIES = 1000;
const MAX_POLICIES = 10_000;
const MAX_NAME = 512;

class Fold implements AuditStatsFold {
  readonly #field: string;
  readonly #fromMs: number;
  readonly #toMs: number;
  readonly #grid = new TimeGrid();
  readonly #waits = new OpenWaits();
  readonly #categories = new Map<string, CategoryFold>();
  readonly #policies = new Map<string, DefinedPolicy>();
  #events = 0;
  #unreadable = 0;
  #dropped = 0;
  #firstMs = Infinity;
  #lastMs = -Infinity;

  constructor({ by = 'category', fromMs, toMs, policies = [] }: AuditStatsOptions) {
    this.#field = by === 'operation' ? 'operation' : 'retry_category';
    this.#fromMs = fromMs ?? -Infinity;
    this.#toMs = toMs ?? Infinity;
    for (const policy of policies) this.#policies.set(policy.fingerprint, policy);
  }

  add(event: unknown): void {
    if (!isObject(event) || typeof event['event_type'] !== 'string') {
      this.#events += 1;
      this.#unreadable += 1;
      return;
    }
    // Wherever it is in the trail: decisions of the time that is asked for may need it.
    if (event['event_type'] === 'policy_registered') this.#register(event);
    const atMs = typeof event['timestamp'] === 'string' ? Date.parse(event['timestamp']) : NaN;
    if (atMs < this.#fromMs || atMs >= this.#toMs) return;
    this.#events += 1;
    if (Number.isNaN(atMs)) {
      this.#unreadable += 1;
      return;
    }
    this.#firstMs = Math.min(this.#firstMs, atMs);
    this.#lastMs = Math.max(this.#lastMs, atMs);
    this.#grid.see(atMs);
    this.#waits.see(atMs);
    if (event['event_type'] === 'events_dropped') this.#dropped += countOf(event['count']);
    else if (executions.has(event['event_type'])) this.#count(event, atMs);
  }

  report(): AuditStats {
    const { fromMs: loadFromMs, stepMs } = this.#grid.span;
    const isEmpty = this.#firstMs > this.#lastMs;
    const spanMs = isEmpty ? 0 : this.#lastMs - this.#firstMs;
    const categories = [...this.#categories].map(([category, fold]) =>
      categoryStats(fold, {
        category,
        load: this.#grid.read(fold.load),
        stepMs,
        spanMs,
        waiting: this.#waits.waiting(fold.retried),
        policyOf: (fingerprint) => this.#policies.get(fingerprint),
      }),
    );
    return {
      events: this.#events,
      unreadable: this.#unreadable,
      dropped: this.#dropped,
      fromMs: isEmpty ? null : this.#firstMs,
      toMs: isEmpty ? null : this.#lastMs,
      loadFromMs,
      stepMs,
      categories: categories.toSorted(
        (a, b) => b.retries - a.retries || (a.category < b.category ? -1 : 1),
      ),
    };
  }

  #count(event: Wire, atMs: number): void {
    const fold = this.#categoryOf(event[this.#field]);
    if (!fold?.add(event)) {
      this.#unreadable += 1;
      return;
    }
    if (event['event_type'] !== 'retry_attempt') return;
    this.#grid.count(fold.load, atMs);
    const attempt = event['attempt_number'] as number;
    this.#waits.add({ dueMs: atMs + (delayOf(event) ?? 0), retried: fold.retried, attempt });
  }

  #categoryOf(name: unknown): CategoryFold | undefined {
    if (typeof name !== 'string') return undefined;
    const cut = name.slice(0, MAX_NAME);
    const known = this.#categories.get(cut);
    if (known) return known;
    const isFull = this.#categories.size >= MAX_CATEGORIES;
    if (isFull && cut !== OTHER) return this.#categories.get(OTHER) ?? this.#make(OTHER);
    return this.#make(cut);
  }

  #make(name: string): CategoryFold {
    const fold = new CategoryFold(this.#grid.row());
    this.#categories.set(name, fold);
    return fold;
  }

  #register({ policy: fingerprint, definition }: Wire): void {
    if (typeof fingerprint !== 'string' || this.#policies.has(fingerprint)) return;
    if (this.#policies.size >= MAX_POLICIES) return;
    try {
      const policy = parsePolicy(definition);
      if (policy.fingerprint === fingerprint) this.#policies.set(fingerprint, policy);
      else this.#unreadable += 1;
    } catch {
      // It has faults, or a getter that throws: a policy that nobody can read.
      this.#unreadable += 1;
    }
  }
}

const executions: ReadonlySet<string> = new Set([
  'retry_attempt',
  'retry_exhausted',
  'retry_abandoned',
  'retry_postponed',
  'retry_rearmed',
  'retry_succeeded',
]);

function countOf(count: unknown): number {
  return typeof count === 'number' && count > 0 ? count : 0;
}
