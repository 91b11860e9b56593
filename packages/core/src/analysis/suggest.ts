import { delayFor } from '../policy/backoff.ts';
import { MAX_DURATION_MS } from '../policy/duration.ts';
import { type DefinedPolicy, definePolicy, parsePolicy } from '../policy/policy.ts';
import type { Policy } from '../policy/policy-fields.ts';
import { simulate, type Simulation } from '../simulate/simulate.ts';
import type { AttemptStats, CategoryStats } from './category-stats.ts';

/** What the trail of a category says about its policy. */
export interface Suggestion {
  category: string;
  /** `change`: a policy is proposed. `keep`: the present one fits. `unknown`: the trail does not say enough. */
  verdict: 'change' | 'keep' | 'unknown';
  /** The policy of the trail. Where the trail does not have it: its waits and attempts as they were measured. */
  present: DefinedPolicy;
  isMeasured: boolean;
  /** With `change`, the policy that is proposed. */
  suggested?: DefinedPolicy;
  /** What changes, and why, in a sentence. */
  changes: { field: 'maxAttempts' | 'base' | 'cap' | 'schedule'; from: unknown; to: unknown }[];
  reasons: string[];
}

/** Fewer pieces of work, or executions of one attempt, show nothing. */
const MIN_SEEN = 30;
/** An attempt helps where it succeeds at least this often. */
const HELPS = 0.01;
/** So much of the work may be left over when all attempts are used up. */
const LEFT_OVER = 0.01;
/** More attempts than this are not added: what would need them needs something else. */
const MAX_ADDED = 10;
const MAX_SCHEDULE = 1000;
const MAX_WAIT_MS = MAX_DURATION_MS / 4;

/** Proposes a policy for a category from what was measured: which attempt still helps, and how long outages last. */
export function suggestPolicy(stats: CategoryStats): Suggestion {
  const { category } = stats;
  const isMeasured = stats.policy === null;
  const present = stats.policy ?? measuredPolicy(stats);
  const begin = { category, present, isMeasured, changes: [] };
  const rows = stats.byAttempt.filter(({ attempt }) => attempt <= present.maxAttempts);
  const retried = rows.find(({ attempt }) => attempt === 2);
  if (!retried || (retried.executed ?? 0) < MIN_SEEN) {
    const reason = `Only ${retried?.executed ?? 0} first retries are in the trail: at least ${MIN_SEEN} are needed.`;
    return { ...begin, verdict: 'unknown', reasons: [reason] };
  }
  const reasons: string[] = [];
  const wanted = shapeOf(rows, present, stats, reasons);
  if (!wanted) return { ...begin, verdict: 'unknown', reasons };
  const policy = parsePolicy({ ...plain(present), ...wanted });
  const changes = (['maxAttempts', 'base', 'cap', 'schedule'] as const)
    .filter((field) => JSON.stringify(policy[field]) !== JSON.stringify(present[field]))
    .map((field) => ({ field, from: present[field], to: policy[field] }));
  if (changes.length === 0) return { ...begin, verdict: 'keep', reasons };
  return { ...begin, verdict: 'change', suggested: policy, changes, reasons };
}

/**
 * Both policies in the simulator: in an outage as long as nine of ten that the category recovered from, and with room for
 * everybody afterwards. What a crowd does to a service with less room is the business of `simulate` itself.
 */
export function simulateSuggestion(
  { present, suggested }: Pick<Suggestion, 'present' | 'suggested'>,
  stats: Pick<CategoryStats, 'recoveredWithinMs'>,
): { present: Simulation; suggested?: Simulation } {
  const outage = Math.max(1, stats.recoveredWithinMs?.p90 ?? totalWait(present));
  const longest = Math.max(totalWait(present), suggested ? totalWait(suggested) : 0);
  const horizon = Math.min(MAX_HORIZON_MS, Math.max(3_600_000, 2 * (outage + longest)));
  const world = { outage: Math.min(outage, horizon / 2), horizon, capacity: ROOM };
  return {
    present: simulate(present, world),
    ...(suggested ? { suggested: simulate(suggested, world) } : {}),
  };
}

const MAX_HORIZON_MS = 30 * 86_400_000;
const ROOM = 10_000;

/** The attempts and waits that the measurements ask for; undefined: they do not say. */
function shapeOf(
  rows: readonly AttemptStats[],
  present: DefinedPolicy,
  stats: CategoryStats,
  reasons: string[],
): Policy | undefined {
  const retries = rows.filter(({ attempt }) => attempt > 1);
  const useful = retries.filter((row) => !isUseless(row));
  const first = useful[0];
  const last = useful.at(-1);
  const reached = (retries.at(-1) as AttemptStats).attempt;
  // Work that waits may recover with an attempt that nobody has made yet.
  const isOpen = stats.waiting > 0 && reached < present.maxAttempts;
  if (isOpen && !last) {
    reasons.push(
      `No retry up to attempt ${reached} helped, and work still waits for the next one.`,
    );
    return undefined;
  }
  if (!first || !last) {
    const seen = retries.reduce((total, { executed }) => total + (executed ?? 0), 0);
    reasons.push(
      `None of ${seen} retries helped. Look at the errors: what is not transient belongs into neverOn.`,
    );
    return { maxAttempts: 1 };
  }
  // Attempts that nobody reached were not shown to be useless: they stay.
  let maxAttempts = last.attempt === reached || isOpen ? present.maxAttempts : last.attempt;
  if (maxAttempts < present.maxAttempts) {
    reasons.push(`After attempt ${last.attempt} no retry helped.`);
  } else if (last.attempt === present.maxAttempts) maxAttempts += added(last, stats, reasons);
  const shape = later(first, present, reasons);
  const skipped = shape ? first.attempt - 2 : 0;
  if (reasons.length === 0) reasons.push('Every attempt helps, and hardly anything is left over.');
  return { maxAttempts: maxAttempts - skipped, ...shape };
}

/** Enough executions to say that it does not help. */
function isUseless({ executed, helped }: AttemptStats): boolean {
  return executed !== null && executed >= MIN_SEEN && helped < HELPS * executed;
}

/** How many attempts more leave hardly anything over, if each helps as often as the last one. */
function added(
  { attempt, executed, helped }: AttemptStats,
  stats: CategoryStats,
  reasons: string[],
): number {
  const recovered = stats.byAttempt.reduce((total, row) => total + row.helped, 0);
  const leftOver = stats.exhausted / Math.max(1, stats.exhausted + recovered);
  if (leftOver <= LEFT_OVER || executed === null || executed < MIN_SEEN) return 0;
  const fails = 1 - helped / executed;
  const more = fails <= 0 ? 1 : Math.ceil(Math.log(LEFT_OVER / leftOver) / Math.log(fails) - 1e-9);
  const left = `${percent(leftOver)} of the work is left over when its attempts are used up`;
  const helps = `attempt ${attempt} still helps ${percent(helped / executed)} of it`;
  if (more <= MAX_ADDED) {
    reasons.push(`${capital(left)}, and ${helps}.`);
    return more;
  }
  reasons.push(`${capital(left)}, but ${helps} only: more attempts are not the answer.`);
  return 0;
}

/** A first retry that comes when it may help, where earlier ones never do. */
function later(first: AttemptStats, present: DefinedPolicy, reasons: string[]): Policy | undefined {
  if (first.attempt === 2) return undefined;
  const waitMs = roundUp(Math.min(first.waitedMs, MAX_WAIT_MS));
  reasons.push(
    `Attempts 2 to ${first.attempt - 1} do not help: what fails recovers after about ${waitMs} ms.`,
  );
  if (present.strategy === 'schedule') {
    const list = present.schedule!;
    const rest = list.slice(first.attempt - 1);
    return {
      schedule: [waitMs, ...(rest.length > 0 ? rest : [list.at(-1)!])],
      cap: capFor(waitMs),
    };
  }
  // By what its jitter makes of a delay in the mean.
  const probe = { ...plain(present), base: waitMs, cap: 3 * waitMs };
  const mean = Math.max(1, delayFor(probe, { attempt: 1 }));
  const base = roundUp((waitMs * waitMs) / mean);
  return { base, cap: capFor(base) };

  function capFor(ms: number): number {
    return Math.max(present.cap, ms);
  }
}

/** Waits and attempts as the trail shows them, for a trail without the policy itself. */
function measuredPolicy({ byAttempt, maxAttempts }: CategoryStats): DefinedPolicy {
  const waits = byAttempt.map(({ meanDelayMs }) => Math.round(meanDelayMs));
  while (waits.length > 1 && waits.at(-1) === 0) waits.pop();
  const last = byAttempt.at(-1)?.attempt ?? 1;
  const schedule = (waits.length === 0 ? [0] : waits).slice(0, MAX_SCHEDULE);
  return definePolicy({
    maxAttempts: Math.max(1, maxAttempts, last),
    schedule,
    cap: Math.max(...schedule),
    jitter: 'none',
  });
}

/** The sum of a policy's waits in the mean. Of very many attempts the first hundred are enough. */
function totalWait(policy: DefinedPolicy): number {
  let total = 0;
  let previousMs = 0;
  const attempts = Math.min(policy.maxAttempts, 100);
  for (let attempt = 1; attempt < attempts; attempt++) {
    previousMs = delayFor(policy, { attempt, previousMs });
    total += previousMs;
  }
  return total;
}

function plain(policy: DefinedPolicy): Policy {
  return JSON.parse(JSON.stringify(policy)) as Policy;
}

/** Up to two digits that count: 12 743 ms becomes 13 000 ms. */
function roundUp(ms: number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, ms))) - 1);
  return Math.max(1, Math.ceil(ms / unit - 1e-9) * unit);
}

function percent(part: number): string {
  return `${Math.round(part * 1000) / 10} %`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
