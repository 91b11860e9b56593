import { type Fault, isConfigError } from 'redrive';
import { didYouMean, nearest } from 'redrive/internal';
import { EngineError, isEngineError, type TaskFault } from '../errors.ts';

/** A part of a task that is checked by itself: throws what is wrong with it. */
export type Check = () => unknown;

/**
 * One error for all that is wrong with a task. What accepts tasks stops at the first fault, since most have none; only
 * then each part is checked by itself. An error that is no fault of the task, such as that of a store, stays as it is.
 */
export function withAllFaults(first: unknown, checks: readonly Check[]): unknown {
  const known = faultsIn(first);
  if (known.length === 0) return first;
  const all = allFaults(checks, known);
  if (all.length === known.length && isEngineError(first)) return first;
  const { code } = isEngineError(first) ? first : { code: 'INVALID_POLICY' as const };
  const list = all.map(({ path, message }) => `\n  ${path || '(all)'}: ${message}`).join('');
  const what = all.length === 1 ? 'a fault' : `${all.length} faults`;
  return new EngineError(code, `The task has ${what}:${list}`, { cause: first, faults: all });
}

/** Every fault that the checks find, after those that are known. */
export function allFaults(
  checks: readonly Check[],
  known: readonly (TaskFault | Fault)[] = [],
): (TaskFault | Fault)[] {
  const all = [...known];
  for (const check of checks) {
    for (const fault of faultsOf(check)) {
      if (!all.some(({ path, message }) => path === fault.path && message === fault.message)) {
        all.push(fault);
      }
    }
  }
  return all;
}

/** What somebody else calls one of our options. */
const aliases: Readonly<Record<string, string>> = {
  jobid: 'dedupeKey',
  jobkey: 'dedupeKey',
  singletonkey: 'dedupeKey',
  idempotencykey: 'dedupeKey',
  uniquekey: 'dedupeKey',
  runat: 'dueAt',
  startafter: 'dueAt',
  scheduledat: 'dueAt',
  at: 'dueAt',
  when: 'dueAt',
  due: 'dueAt',
  runafter: 'delay',
  in: 'delay',
  after: 'delay',
  delayms: 'delay',
  delayseconds: 'delay',
  schedulein: 'delay',
  ttl: 'expiresAt',
  messagegroupid: 'orderingKey',
  headers: 'context',
  method: 'context',
};

/** A slip in a name must not be ignored in silence. */
export function checkNames(given: unknown, names: ReadonlySet<string>, what: string): void {
  checkObject(given, what);
  let faults: TaskFault[] | undefined;
  for (const name in given) {
    if (names.has(name)) continue;
    const near = aliases[name.toLowerCase().replace(/[_-]/g, '')] ?? nearest(name, [...names]);
    const hint = didYouMean(near !== undefined && names.has(near) ? near : undefined);
    const message = `There is no option '${name.slice(0, 60)}'.${hint}`;
    (faults ??= []).push({ path: name, code: 'INVALID_TASK', message });
  }
  if (faults) throw faulty(faults);
}

export function checkObject(given: unknown, what: string): asserts given is object {
  if (typeof given === 'object' && given !== null) return;
  throw faulty([{ path: '', code: 'INVALID_TASK', message: `${what} are an object.` }]);
}

export function checkList(given: unknown, what: string): void {
  if (Array.isArray(given)) return;
  throw faulty([{ path: '', code: 'INVALID_TASK', message: `${what} are a list.` }]);
}

function faulty(faults: readonly TaskFault[]): EngineError {
  const message = faults.map((fault) => fault.message).join(' ');
  return new EngineError('INVALID_TASK', message, { faults });
}

function faultsOf(check: Check): EngineError['faults'] {
  try {
    check();
    return [];
  } catch (error) {
    return faultsIn(error);
  }
}

function faultsIn(error: unknown): EngineError['faults'] {
  if (isConfigError(error)) return error.faults.map(ofPolicy);
  return isEngineError(error) ? error.faults : [];
}

/** Policies are the one part of a task that core checks. */
function ofPolicy({ path, code, message }: Fault): Fault {
  return { path: path === '' ? 'policy' : `policy.${path}`, code, message };
}
