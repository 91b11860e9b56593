/** What is counted of one category: a few hundred numbers, whatever the length of the trail. */
import type { Wire } from '../audit/audit-wire.ts';
import { isObject } from '../audit/audit-wire.ts';
import { MAX_DURATION_MS } from '../policy/duration.ts';
import { AttemptCounts, NameCounts } from './tallies.ts';
import type { TimeRow } from './time-grid.ts';

const MAX_ERRORS = 64;
const MAX_REASONS = 32;
const MAX_POLICIES = 16;
/** As much as a policy may have. */
const MAX_ATTEMPTS = 1_000_000_000;

/** The work ended after this attempt had failed before: the event tells of no failure of its own. */
const endsWithoutAttempt = new Set(['expired', 'worker_lost']);
/** This attempt was not executed. */
const notExecuted = new Set(['circuit_open', 'too_many_uncounted']);

export class CategoryFold {
  readonly load: TimeRow;
  events = 0;
  postponed = 0;
  exhausted = 0;
  /** Pieces of work that ended with a failure which the policy does not retry. */
  nonRetryable = 0;
  maxAttempts = 0;
  hasSuccesses = false;
  /** By the number of the attempt that failed: followed by another attempt, or the last of its work. */
  readonly retried = new AttemptCounts();
  readonly ended = new AttemptCounts();
  /** Retries after this attempt that never ran. */
  readonly lapsed = new AttemptCounts();
  readonly succeeded = new AttemptCounts();
  /** Taken over by a broker, and failed there afterwards. */
  readonly taken = new AttemptCounts();
  readonly takenFailed = new AttemptCounts();
  readonly delayMs = new AttemptCounts();
  readonly errors = new NameCounts(MAX_ERRORS);
  readonly reasons = new NameCounts(MAX_REASONS);
  readonly policies = new NameCounts(MAX_POLICIES);

  constructor(load: TimeRow) {
    this.load = load;
  }

  /** Takes an event of an execution. False: it cannot be read. */
  add(event: Wire): boolean {
    const type = event['event_type'];
    const attempt = event[type === 'retry_exhausted' ? 'total_attempts' : 'attempt_number'];
    if (!Number.isSafeInteger(attempt) || (attempt as number) < 0) return false;
    const n = attempt as number;
    const isTaken = isTakenOver(event);
    switch (type) {
      case 'retry_attempt':
        if (n === 0) return false;
        this.retried.add(n);
        this.delayMs.add(n, delayOf(event) ?? 0);
        if (isTaken) this.takenFailed.add(n);
        this.errors.add(nameOf(event['exception_type']));
        break;
      case 'retry_exhausted':
        this.exhausted += 1;
        this.reasons.add('exhausted');
        this.#end(n, isTaken);
        this.errors.add(nameOf(event['final_exception_type']));
        break;
      case 'retry_abandoned':
        this.#abandon(event, n, isTaken);
        break;
      case 'retry_succeeded':
        this.hasSuccesses = true;
        (isTaken ? this.taken : this.succeeded).add(Math.max(1, n));
        break;
      case 'retry_rearmed':
        this.taken.add(Math.max(1, n));
        break;
      case 'retry_postponed':
        this.postponed += 1;
    }
    this.events += 1;
    const max = event['max_attempts'];
    if (Number.isSafeInteger(max)) {
      this.maxAttempts = Math.min(MAX_ATTEMPTS, Math.max(this.maxAttempts, max as number));
    }
    const { redrive } = event;
    if (isObject(redrive) && typeof redrive['policy'] === 'string') {
      this.policies.add(redrive['policy']);
    }
    return true;
  }

  #abandon(event: Wire, n: number, isTaken: boolean): void {
    const reason = nameOf(event['reason']);
    this.reasons.add(reason);
    if (reason === 'non_retryable') this.nonRetryable += 1;
    if (endsWithoutAttempt.has(reason)) this.lapsed.add(n);
    else if (notExecuted.has(reason)) this.lapsed.add(Math.max(0, n - 1));
    else this.#end(n, isTaken);
    this.errors.add(nameOf(event['exception_type']));
  }

  #end(n: number, isTaken: boolean): void {
    if (n === 0) return;
    this.ended.add(n);
    if (isTaken) this.takenFailed.add(n);
  }
}

/** The wait that an event tells of. */
export function delayOf(event: Wire): number | undefined {
  const seconds = event['delay_seconds'];
  const isWait = typeof seconds === 'number' && seconds >= 0 && seconds * 1000 <= MAX_DURATION_MS;
  return isWait ? seconds * 1000 : undefined;
}

/** A broker only takes a message over: its failure comes later, as an event of its own. */
function isTakenOver({ redrive, operation }: Wire): boolean {
  const lane = isObject(redrive) && redrive['lane'] !== undefined ? redrive['lane'] : operation;
  return typeof lane === 'string' && (lane.startsWith('queue:') || lane.startsWith('nats:'));
}

const MAX_NAME = 200;

function nameOf(value: unknown): string {
  return typeof value === 'string' && value !== '' ? value.slice(0, MAX_NAME) : '(none)';
}
