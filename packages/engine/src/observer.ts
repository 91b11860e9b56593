import type { EngineEvent } from './events.ts';
import { guard, type Log } from './host.ts';
import type { Judgement } from './judge.ts';
import type { Accepted } from './moves.ts';
import type { Policies } from './policies.ts';
import type { NewTask, Reason, Task } from './task.ts';
import type { Trail } from './trail.ts';

/** Tells what happens: to the listener as events, to the audit trail with all facts. Neither can disturb the work. */
export class Observer {
  readonly #listener: ((event: EngineEvent) => unknown) | undefined;
  readonly #trail: Trail;
  readonly #policies: Policies;
  readonly #log: Log;

  constructor(
    listener: ((event: EngineEvent) => unknown) | undefined,
    trail: Trail,
    policies: Policies,
    log: Log,
  ) {
    this.#listener = listener;
    this.#trail = trail;
    this.#policies = policies;
    this.#log = log;
  }

  accepted({ messageId: id, lane }: NewTask, status: Accepted): void {
    if (!this.#listener) return;
    this.#emit({ type: status === 'duplicate' ? 'duplicate' : 'accepted', id, lane });
  }

  started(task: Task, nowMs: number): void {
    if (!this.#listener) return;
    const { messageId: id, lane, claims, dueAtMs, lease = 0 } = task;
    const lateMs = Math.max(0, Math.round(nowMs - dueAtMs));
    const attempt = task.attempt + 1;
    this.#emit({ type: 'started', id, lane, attempt, lateMs, again: claims > 1, lease });
  }

  settled(task: Task, judgement: Judgement, result: 'settled' | 'rearmed' | 'lost'): void {
    const { messageId: id, lane } = task;
    const attempt = task.attempt + 1;
    if (result === 'lost') return this.#emit({ type: 'leaseLost', id, lane, attempt });
    if (this.#trail.isOn) this.#audit(task, judgement, result);
    const { settlement, decided } = judgement;
    if (result === 'rearmed') return this.#emit({ type: 'rearmed', id, lane, attempt });
    switch (settlement.to) {
      case 'done':
        return this.#emit({ type: 'done', id, lane, attempt });
      case 'retried':
        return this.#emit({ type: 'taken', id, lane, attempt });
      case 'cancelled':
        return this.#emit({ type: 'cancelled', id, lane });
      case 'failed':
        return this.#emit({ type: 'failed', id, lane, attempt, reason: settlement.item.reason });
      case 'pending': {
        const { delayMs } = settlement;
        const decision = decided ? { decision: decided.decision } : {};
        return this.#emit({ type: 'retry', id, lane, attempt, delayMs, ...decision });
      }
    }
  }

  refused({ messageId: id, lane, attempt }: Task, reason: Reason | 'CANCELLED'): void {
    if (reason === 'CANCELLED') return this.#emit({ type: 'cancelled', id, lane });
    this.#trail.write('retry_abandoned', { message_id: id, lane, attempt_number: attempt, reason });
    this.#emit({ type: 'failed', id, lane, attempt, reason });
  }

  #audit(
    task: Task,
    { settlement, decided, reason }: Judgement,
    result: 'settled' | 'rearmed',
  ): void {
    const about = {
      message_id: task.messageId,
      lane: task.lane,
      generation: task.generation,
      attempt_number: task.attempt + 1,
    };
    if (result === 'rearmed') return this.#trail.write('retry_rearmed', about);
    if (settlement.to === 'done' || settlement.to === 'retried') {
      return this.#trail.write('retry_succeeded', about);
    }
    const { fingerprint } = this.#policies.of(task);
    const facts = decided ? { policy: fingerprint, ...decided } : {};
    if (settlement.to === 'failed')
      this.#trail.write('retry_abandoned', { ...about, reason, ...facts });
    else this.#trail.write('retry_attempt', { ...about, delay_ms: delayOf(settlement), ...facts });
  }

  #emit(event: EngineEvent): void {
    try {
      guard(this.#listener?.(event));
    } catch (error) {
      this.#log.error({ err: error }, 'a listener failed');
    }
  }
}

function delayOf(settlement: Judgement['settlement']): number {
  return settlement.to === 'pending' ? settlement.delayMs : 0;
}
