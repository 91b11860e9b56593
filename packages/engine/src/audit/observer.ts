import {
  auditEntry,
  type Decided,
  decisionEntry,
  type Failure,
  type Happening,
  type IdempotentOptions,
  type Policy,
} from 'redrive';
import { aboutTask, type OperatorFacts, operatorEntry, subjectOf } from './audit-facts.ts';
import type { EngineEvent } from '../events.ts';
import { guard, type Log } from '../host.ts';
import type { Job } from '../model/jobs.ts';
import type { Judgement } from '../model/judge.ts';
import type { Accepted, Change } from '../model/moves.ts';
import { durablePolicy } from '../dispatch/policies.ts';
import type { NewItem, RawItem } from '../ports/inbox.ts';
import type { Settled, Settlement } from '../ports/schedule.ts';
import type { NewTask, Reason, Task } from '../model/task.ts';
import type { Trail } from './trail.ts';

/** What the trail calls a task whose policy has no name. */
const CATEGORY = 'durable';

type Entered = (item: NewItem, about: { lane: string; id: string }) => void;

/** Tells what happens: to the listener as events, to the audit trail with all facts. Neither can disturb the work. */
export class Observer {
  readonly #listener: ((event: EngineEvent) => unknown) | undefined;
  readonly #trail: Trail;
  readonly #log: Log;
  readonly #entered: Entered | undefined;
  /** The names of policies, by fingerprint. */
  readonly #names = new Map<string, string>();

  /** `named`: the policies that a submit may name. `entered` hears of what goes into the inbox. */
  constructor(
    listener: ((event: EngineEvent) => unknown) | undefined,
    trail: Trail,
    log: Log,
    named: Readonly<Record<string, Policy>> = {},
    entered?: Entered,
  ) {
    this.#listener = listener;
    this.#trail = trail;
    this.#log = log;
    this.#entered = entered;
    for (const [name, policy] of Object.entries(named)) {
      this.#names.set(durablePolicy(policy).fingerprint, name);
    }
  }

  /** Something came in, and what became of it is committed, or with `tx` at least written. */
  came(arrived: NewTask, { result, task, decided, item }: Change<Accepted>): void {
    const { messageId: id, lane } = arrived;
    if (item) this.#entered?.(item, { lane, id });
    if (this.#listener) {
      if (item) {
        const attempt = task?.attempt ?? arrived.attempt;
        this.emit({ type: 'failed', id, lane, attempt, reason: item.reason });
      } else this.emit({ type: result === 'duplicate' ? result : 'accepted', id, lane });
    }
    if (!this.#trail.isOn || !task) return;
    const reason = item?.reason ?? (result === 'accepted' ? task.verdict : undefined);
    if (decided) this.#decided(task, decided, decided.waitMs);
    else if (reason) this.#ended(task, reason, task.attempt, task.failure);
  }

  started(task: Task, nowMs: number): void {
    if (!this.#listener) return;
    const { messageId: id, lane, claims, dueAtMs, lease = 0 } = task;
    const lateMs = Math.max(0, Math.round(nowMs - dueAtMs));
    const attempt = task.attempt + 1;
    this.emit({ type: 'started', id, lane, attempt, lateMs, again: claims > 1, lease });
  }

  settled(task: Task, judgement: Judgement, result: Exclude<Settled, 'busy'>): void {
    const { messageId: id, lane } = task;
    const attempt = task.attempt + 1;
    if (result === 'lost') return this.emit({ type: 'leaseLost', id, lane, attempt });
    // Its own outcome was not written, so nothing was decided.
    if (result === 'cancelled') return this.emit({ type: 'cancelled', id, lane });
    if (this.#trail.isOn) this.#audit(task, judgement, result);
    const { settlement, decided } = judgement;
    if (result === 'settled' && settlement.to === 'failed') {
      this.#entered?.(settlement.item, { lane, id });
    }
    if (result === 'rearmed') return this.emit({ type: 'rearmed', id, lane, attempt });
    switch (settlement.to) {
      case 'done':
        return this.emit({ type: 'done', id, lane, attempt });
      case 'retried':
        return this.emit({ type: 'taken', id, lane, attempt });
      case 'cancelled':
        return this.emit({ type: 'cancelled', id, lane });
      case 'failed':
        return this.emit({ type: 'failed', id, lane, attempt, reason: settlement.item.reason });
      case 'pending': {
        const { delayMs } = settlement;
        const decision = decided ? { decision: decided.decision } : {};
        return this.emit({ type: 'retry', id, lane, attempt, delayMs, ...decision });
      }
    }
  }

  refused(task: Task, reason: Reason | 'CANCELLED', by: Settlement): void {
    const { messageId: id, lane, attempt } = task;
    if (by.to === 'failed') this.#entered?.(by.item, { lane, id });
    if (reason === 'CANCELLED') return this.emit({ type: 'cancelled', id, lane });
    // What was decided when it arrived was written then.
    if (this.#trail.isOn && task.verdict !== reason) {
      this.#ended(task, reason, attempt, task.failure);
    }
    this.emit({ type: 'failed', id, lane, attempt, reason });
  }

  /** What came in could not be read, and is in the inbox as it came. */
  unreadable(item: RawItem): void {
    const { messageId, source, reason, failure, context } = item;
    this.#entered?.(item, { lane: `source:${source}`, id: messageId });
    if (!this.#trail.isOn) return;
    const task = {
      messageId,
      lane: `source:${source}`,
      generation: 0,
      ...(context && { context }),
    };
    const happening = {
      type: 'retry_abandoned',
      attempt: 0,
      maxAttempts: 0,
      reason,
      failure,
    } as const;
    this.#trail.write(auditEntry(subjectOf(task, CATEGORY), happening, aboutTask(task)));
  }

  /** Somebody did something by hand, and that is committed: `pause`, `replay`, `discard`. */
  acted(action: string, facts: OperatorFacts = {}): void {
    if (this.#trail.isOn) this.#trail.write(operatorEntry(action, facts));
  }

  /** Who hears of the idempotency key of a task. That it was recorded is a success. */
  keyAudit(task: Task): Pick<IdempotentOptions, 'audit' | 'subject'> {
    if (!this.#trail.isOn) return {};
    return {
      subject: subjectOf(task, this.#category(task)),
      audit: (entry) => {
        if (entry['action'] === 'record' && !this.#trail.hasSuccesses) return;
        this.#trail.writeSoon({ ...entry, redrive: { ...aboutTask(task), ...entry.redrive } });
      },
    };
  }

  /** A bulk job is over, or stopped by itself; whoever had a hand in it has said so before. */
  jobEnded({ id: job, state, why, total, done, skipped, failed }: Job): void {
    const counts = { total, done, skipped, failed };
    const entry = { event_type: 'job_ended', job, state, why: why ?? null, ...counts };
    if (this.#trail.isOn) this.#trail.write(entry);
    this.emit({ type: 'jobEnded', job, state, ...(why === undefined ? {} : { why }) });
  }

  #audit(task: Task, { settlement, decided }: Judgement, result: 'settled' | 'rearmed'): void {
    const attempt = task.attempt + 1;
    const { maxAttempts } = task;
    if (result === 'rearmed') {
      return this.#record(task, { type: 'retry_rearmed', attempt, maxAttempts });
    }
    if (decided) return this.#decided(task, decided);
    switch (settlement.to) {
      case 'done':
      case 'retried':
        if (!this.#trail.hasSuccesses) return undefined;
        return this.#record(task, { type: 'retry_succeeded', attempt, maxAttempts });
      case 'cancelled':
        return undefined;
      case 'failed':
        return this.#ended(task, settlement.item.reason, attempt, settlement.item.failure);
      case 'pending': {
        // An attempt is gone, and its handler chose the delay; or none: snoozed, refused, a probe of a lane that is down.
        const type = settlement.attempt > task.attempt ? 'retry_attempt' : 'retry_postponed';
        const { delayMs, record } = settlement;
        return this.#record(task, {
          type,
          attempt,
          maxAttempts,
          delayMs,
          failure: record?.failure,
        });
      }
    }
  }

  #decided(task: Task | NewTask, decided: Decided, waitMs?: number): void {
    this.#trail.register(decided.policy);
    const subject = subjectOf(task, this.#category(task));
    this.#trail.write(decisionEntry(subject, decided, aboutTask(task), waitMs));
  }

  /** It goes to the inbox, and no policy was asked. */
  #ended(task: Task | NewTask, reason: Reason, attempt: number, failure?: Failure): void {
    const { maxAttempts } = task;
    this.#record(
      task,
      reason === 'EXHAUSTED'
        ? { type: 'retry_exhausted', attempt, failure }
        : { type: 'retry_abandoned', attempt, maxAttempts, reason, failure },
    );
  }

  #record(task: Task | NewTask, happening: Happening): void {
    const subject = subjectOf(task, this.#category(task));
    this.#trail.write(auditEntry(subject, happening, aboutTask(task)));
  }

  #category({ policy }: Task | NewTask): string {
    return (policy === undefined ? undefined : this.#names.get(policy)) ?? CATEGORY;
  }

  /** To the listener alone. */
  emit(event: EngineEvent): void {
    try {
      guard(this.#listener?.(event));
    } catch (error) {
      this.#log.error({ err: error }, 'a listener failed');
    }
  }
}
