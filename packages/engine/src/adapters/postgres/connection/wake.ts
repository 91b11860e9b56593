import type { Hint } from '../../../ports/schedule.ts';
import type { NewTask, Task } from '../../../model/task.ts';

/** Gathers what one commit made due, for one hint. */
export class Wake {
  readonly #lanes = new Set<string>();
  #inMs = Infinity;

  see(task: Task | NewTask | undefined, nowMs: number): void {
    if (task?.status !== 'pending' || task.blocked) return;
    if ('lease' in task && task.lease !== undefined) return;
    this.add(task.lane, waitOf(task, nowMs));
  }

  /** Something in that lane is visible in so many ms. */
  add(lane: string, inMs: number): void {
    this.#lanes.add(lane);
    this.#inMs = Math.min(this.#inMs, Math.max(0, inMs));
  }

  get hint(): Hint | undefined {
    return this.#lanes.size === 0 ? undefined : { lanes: [...this.#lanes], inMs: this.#inMs };
  }
}

function waitOf(task: Task | NewTask, nowMs: number): number {
  if (!('due' in task)) return task.visibleAtMs - nowMs;
  return 'inMs' in task.due ? task.due.inMs : task.due.atMs - nowMs;
}
