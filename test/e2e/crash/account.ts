/** The accounts at the end: what was accepted, what was executed, what became of it, and whether that adds up. */
import type { InboxItem, Task } from '@redrive/engine';
import type { ChildRecord } from './fleet.ts';
import type { Payload, Plan } from './job.ts';
import type { SettledTo } from './journal.ts';

export interface Evidence {
  children: readonly ChildRecord[];
  tasks: readonly Task[];
  items: readonly InboxItem[];
}

export interface Account {
  /** Everything that contradicts a promise. */
  faults: string[];
  /** How many tasks of each plan ended how: `done`, or the reason they are in the inbox for. */
  ends: Partial<Record<Plan, Record<string, number>>>;
  /** How many executions the tasks of each plan had. */
  executions: Partial<Record<Plan, number>>;
  accepted: number;
  /** Executions that were not the first of their task and attempt number. */
  duplicates: number;
  /** Executions under way, or not known to be settled, when their process was killed: the most duplicates that kills may cause. */
  cutOff: number;
  /** Executions that outlived their lease. */
  leasesLost: number;
}

export function account({ children, tasks, items }: Evidence): Account {
  const faults: string[] = [];
  const executions = children.flatMap(executionsOf);
  const accepted = new Set(
    children.flatMap(({ entries }) =>
      entries.flatMap((entry) => (entry.type === 'accepted' ? [entry.id] : [])),
    ),
  );
  const known = new Set(tasks.map(({ messageId }) => messageId));
  for (const id of accepted) {
    if (!known.has(id)) faults.push(`${id} was accepted and is lost`);
  }
  const byTask = groupBy(executions, ({ id }) => id);
  const itemsOf = groupBy(items, ({ messageId }) => messageId);
  const ends: Account['ends'] = {};
  const executed: Account['executions'] = {};
  for (const task of tasks) {
    const own = byTask.get(task.messageId) ?? [];
    const [item, ...more] = itemsOf.get(task.messageId) ?? [];
    const fault = (what: string) => faults.push(`${task.messageId} ${what}`);
    if (more.length > 0) fault('has several items');
    if ((task.status === 'failed') !== (item !== undefined)) {
      fault(`is ${task.status} ${item ? 'with' : 'without'} an item`);
    }
    const { plan } = JSON.parse(new TextDecoder().decode(task.payload)) as Payload;
    const end = item?.reason ?? task.status;
    const counted = (ends[plan] ??= {});
    counted[end] = (counted[end] ?? 0) + 1;
    executed[plan] = (executed[plan] ?? 0) + own.length;
    for (const what of faultsOfEnd(task, item, own)) fault(what);
    for (const what of faultsOfExecutions(task, own)) fault(what);
  }
  const attempts = groupBy(executions, ({ id, attempt }) => `${id} ${attempt}`);
  return {
    faults,
    ends,
    executions: executed,
    accepted: accepted.size,
    duplicates: executions.length - attempts.size,
    cutOff: executions.filter(isCutOff).length,
    leasesLost: executions.filter(({ settled }) => settled === 'leaseLost').length,
  };
}

interface Execution {
  child: ChildRecord;
  id: string;
  attempt: number;
  beganAtMs: number;
  ended?: { how: 'worked' | 'threw' | 'aborted'; atMs: number };
  settled?: SettledTo;
  delayMs?: number;
}

function executionsOf(child: ChildRecord): Execution[] {
  const all: Execution[] = [];
  for (const entry of child.entries) {
    if (entry.type === 'began') {
      const { id, attempt, atMs } = entry;
      all.push({ child, id, attempt, beganAtMs: atMs });
    } else if (entry.type === 'ended') {
      const one = all.find((other) => isOf(entry, other) && !other.ended);
      if (one) one.ended = { how: entry.how, atMs: entry.atMs };
    } else if (entry.type === 'settled') {
      const open = all.filter((other) => isOf(entry, other) && !other.settled);
      // Where it was begun again before it was settled, the newer lease is the one that counts.
      const one = entry.to === 'leaseLost' ? open[0] : open.at(-1);
      if (!one) continue;
      one.settled = entry.to;
      if (entry.delayMs !== undefined) one.delayMs = entry.delayMs;
    }
  }
  return all;
}

function isOf(entry: { id: string; attempt: number }, one: Execution): boolean {
  return entry.id === one.id && entry.attempt === one.attempt;
}

/** Whether the end that is written is one that the executions have earned. */
function faultsOfEnd(task: Task, item: InboxItem | undefined, own: readonly Execution[]): string[] {
  const most = Math.max(0, ...own.map(({ attempt }) => attempt));
  if (task.status === 'done') {
    const worked = own.some(({ attempt, ended }) => attempt === most && ended?.how === 'worked');
    return worked ? [] : ['is done, but no execution of it worked'];
  }
  if (task.status !== 'failed') return [`was left ${task.status}`];
  if (item?.reason !== 'EXHAUSTED') return [];
  return most === task.maxAttempts ? [] : [`is exhausted after attempt ${most}`];
}

/** Whether every execution had a right to begin. */
function faultsOfExecutions(task: Task, own: readonly Execution[]): string[] {
  const faults: string[] = [];
  const byAttempt = groupBy(own, ({ attempt }) => attempt);
  const numbers = [...byAttempt.keys()].toSorted((a, b) => a - b);
  if (numbers.some((number, i) => number !== i + 1)) faults.push(`has attempts ${numbers.join()}`);
  if (numbers.length > task.maxAttempts) faults.push(`has ${numbers.length} attempts`);
  for (const { attempt, beganAtMs, child } of own) {
    if (task.finishedAtMs !== undefined && beganAtMs > task.finishedAtMs) {
      faults.push(`was begun by ${child.name} after it was over`);
    }
    for (const before of byAttempt.get(attempt - 1) ?? []) {
      const earliestMs = (before.ended?.atMs ?? 0) + Math.floor(before.delayMs ?? 0);
      if (before.settled === 'retry' && beganAtMs < earliestMs) {
        faults.push(`was begun ${earliestMs - beganAtMs} ms early by ${child.name}`);
      }
    }
  }
  for (const [attempt, several] of byAttempt) {
    const inOrder = several.toSorted((a, b) => a.beganAtMs - b.beganAtMs);
    for (const [i, one] of inOrder.entries()) {
      const next = inOrder[i + 1];
      if (!next || isExcused(one)) continue;
      const { child, settled } = one;
      const before = `${child.name} had it (${settled ?? 'unsettled'})`;
      faults.push(`attempt ${attempt} was begun by ${next.child.name} after ${before}`);
    }
  }
  return faults;
}

/** It may be repeated under the same number: its process was killed, its lease was lost, or it was told to end. */
function isExcused(one: Execution): boolean {
  return isCutOff(one) || one.settled === 'leaseLost' || wasToldToEnd(one);
}

function wasToldToEnd({ child, ended }: Execution): boolean {
  if (ended) return ended.how === 'aborted';
  // It did not listen, and the process ended without it.
  return child.entries.some(({ type }) => type === 'stopped');
}

function isCutOff({ child, settled }: Execution): boolean {
  return child.wasKilled && settled === undefined;
}

function groupBy<T, K>(all: readonly T[], keyOf: (one: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const one of all) {
    const key = keyOf(one);
    const group = groups.get(key);
    if (group) group.push(one);
    else groups.set(key, [one]);
  }
  return groups;
}
