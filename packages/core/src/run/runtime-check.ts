import { ConfigError, type Fault } from '../errors.ts';
import { didYouMean, liveExample, nearest, show } from '../options/faults.ts';
import { isObject, joinPath } from '../options/fields.ts';
import { policyFields } from '../policy/policy-fields.ts';
import type { Listeners, RetryIf, Runtime } from './runtime.ts';

/** What one part of a runtime takes: whether a value fits, and the end of the sentence "... is not", or the whole sentence. */
interface Part {
  fits(value: unknown): boolean;
  wanted: string | ((value: unknown) => string);
  /** The functions of an object that may stand instead. */
  members?: ReadonlySet<string>;
}

/**
 * Refuses a runtime with a misspelt name or a value that cannot work, as policies are refused: every fault at once. It runs on
 * every call that has a runtime, so a good one costs a walk over its names and no allocation.
 */
export function checkRuntime(runtime: unknown): void {
  if (isObject(runtime) && isFine(runtime)) return;
  const faults: Fault[] = [];
  explainRuntime(runtime, faults);
  throw new ConfigError('INVALID_CONFIG', 'The runtime has faults:', faults);
}

/** Adds what is wrong with a runtime. `more` are options that its caller takes besides. */
export function explainRuntime(
  runtime: unknown,
  faults: Fault[],
  more: readonly string[] = [],
): void {
  if (isObject(runtime)) explainParts(runtime, faults, [...parts.keys(), ...more]);
  else {
    const message = `${show(runtime)} is not an object of options, such as { signal, budget, on }.`;
    faults.push({ path: '', code: 'INVALID_VALUE', message });
  }
}

function isFine(runtime: Record<string, unknown>): boolean {
  for (const name in runtime) {
    const part = parts.get(name);
    if (part === undefined) return false;
    const value = runtime[name];
    if (value != null && !part.fits(value)) return false;
  }
  return true;
}

function explainParts(
  runtime: Record<string, unknown>,
  faults: Fault[],
  names: readonly string[],
): void {
  for (const name in runtime) {
    const part = parts.get(name);
    const value = runtime[name];
    if (part === undefined) faults.push(unknownName(name, '', names));
    else if (value != null && !part.fits(value)) {
      if (part.members && isObject(value)) explainMembers(value, name, [...part.members], faults);
      else {
        const { wanted } = part;
        const message =
          typeof wanted === 'string' ? `${show(value)} is not ${wanted}.` : wanted(value);
        faults.push({ path: name, code: 'INVALID_VALUE', message });
      }
    }
  }
}

function explainMembers(
  given: Record<string, unknown>,
  path: string,
  names: readonly string[],
  faults: Fault[],
): void {
  for (const name in given) {
    if (!names.includes(name)) faults.push(unknownName(name, path, names));
    else if (given[name] != null && !isFunction(given[name])) {
      const message = `${show(given[name])} is not a function.`;
      faults.push({ path: joinPath(path, name), code: 'INVALID_VALUE', message });
    }
  }
}

function unknownName(name: string, path: string, names: readonly string[]): Fault {
  return { path: joinPath(path, name), code: 'UNKNOWN_FIELD', message: whereTo(name, path, names) };
}

/** A name of the runtime, or one of the policy in the wrong argument. */
function whereTo(name: string, path: string, names: readonly string[]): string {
  if (path === '' && Object.hasOwn(policyFields, name))
    return 'is a field of the policy. Give it there: the policy is the argument before this one.';
  const near = nearest(name, names);
  if (path !== '' || near !== undefined) {
    const example = path === '' ? liveExample(name) : undefined;
    return `there is no such field.${didYouMean(near)}${example === undefined ? '' : ` Write { ${example} }.`}`;
  }
  const field = nearest(name, Object.keys(policyFields));
  if (field === undefined) return 'there is no such field.';
  return `there is no such field.${didYouMean(field)} Give it in the policy, the argument before this one.`;
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function';
}

const fn = (wanted: string): Part => ({ fits: isFunction, wanted });

function withMethod(method: string, advice: string): Part {
  return {
    fits: (value) => isFunction((value as Record<string, unknown>)[method]),
    wanted(value) {
      if (typeof value !== 'object') return `${show(value)} is not an object. ${advice}`;
      if (method === 'addEventListener' && value instanceof AbortController)
        return 'this is an AbortController. Pass its `.signal`.';
      return `this object has no method \`${method}\`. ${advice}`;
    },
  };
}

function functionOr(names: readonly string[]): Part {
  const members: ReadonlySet<string> = new Set(names);
  return {
    members,
    wanted: `a function, or an object of functions by name (${names.join(', ')})`,
    fits(value) {
      if (isFunction(value)) return true;
      if (!isObject(value)) return false;
      for (const name in value) {
        if (!members.has(name) || (value[name] != null && !isFunction(value[name]))) return false;
      }
      return true;
    },
  };
}

const listeners = ['attempt', 'wait', 'success', 'giveUp'] satisfies (keyof Listeners)[];
const verdicts = ['error', 'result'] satisfies (keyof RetryIf<unknown>)[];

const table: { [Name in keyof Required<Runtime>]: Part } = {
  signal: withMethod('addEventListener', 'Pass the `.signal` of an AbortController.'),
  key: { fits: (value) => typeof value === 'string', wanted: 'a text' },
  classify: fn('a function that gets the error'),
  retryIf: functionOr(verdicts),
  beforeRetry: fn('a function that gets what failed'),
  budget: withMethod('spend', 'Make it with createBudget().'),
  breaker: withMethod('admit', 'Make it with createBreaker().'),
  bulkhead: withMethod('enter', 'Make it with createBulkhead().'),
  on: functionOr(listeners),
  clock: withMethod('setTimer', 'Make it with virtualClock().'),
  random: fn('a function that returns a number from 0 to 1'),
  unref: { fits: (value) => typeof value === 'boolean', wanted: 'true or false' },
  parent: {
    fits: (value) => typeof (value as { attempt?: unknown }).attempt === 'number',
    wanted: 'an attempt, as the function of another retry gets it',
  },
};
const parts: ReadonlyMap<string, Part> = new Map(Object.entries(table));
