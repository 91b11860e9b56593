import { type Fault, isConfigError, type Policy } from 'redrive';
import { didYouMean, isIdempotencyStore, joinPath, nearest } from 'redrive/internal';
import { trailSettings } from './audit/trail-options.ts';
import { durablePolicy, layered } from './dispatch/policies.ts';
import {
  type EngineOptions,
  engineSettings,
  type LaneOptions,
  laneSettings,
} from './engine-options.ts';
import { EngineError, isEngineError, type TaskFault } from './errors.ts';
import { laneNameFault } from './lanes/lane-name.ts';
import type { Store } from './ports/store.ts';

/** Every option that there is: a slip in a name must not be ignored in silence. */
export const optionNames: readonly string[] =
  'store deliveries brokers policy policies lanes lane maxPayloadBytes onUnavailable lease heartbeat poll maxLostLeases retention inbox idempotency dispatch grace audit review on log clock random instance defer'.split(
    ' ',
  );

const functions = ['review', 'on', 'random', 'defer'] as const;
const lists = ['deliveries', 'brokers'] as const;
const tables = ['policies', 'lanes'] as const;

/** Refuses options that are missing or misspelt, and parts of the wrong kind, all faults at once. */
export function checkEngine(options: EngineOptions): void {
  if (typeof options !== 'object' || options === null) {
    throw faulty([fault('', `The options of createEngine are missing. ${storeNeeded}`)]);
  }
  const faults = [...unknownNames(options), ...wrongKinds(options)];
  if (faults.length > 0) throw faulty(faults);
}

/**
 * One error for all that is wrong with the options of an engine. To make an engine stops at the first fault; only then
 * each part is checked by itself.
 */
export function withAllFaults(first: unknown, options: EngineOptions): unknown {
  const known = isConfigError(first) || isEngineError(first) ? first : undefined;
  if (!known || typeof options !== 'object' || options === null) return first;
  const all = parts(options).flatMap(([path, check]) => faultsOf(path, check));
  const firstly: readonly (TaskFault | Fault)[] =
    known.faults.length > 0 ? known.faults : [fault('', known.message)];
  if (all.length <= firstly.length) return first;
  // A fault that none of the parts has must not be lost.
  for (const one of firstly) {
    if (!all.some(({ message }) => message === one.message)) all.push(one);
  }
  return faulty(all, first);
}

type Part = [path: string, check: () => unknown];

function parts(options: EngineOptions): Part[] {
  const { policies, lanes, lane, policy } = options;
  const { retention, inbox, ...numbers } = options;
  return [
    ['', () => checkEngine(options)],
    ['', () => engineSettings(numbers)],
    ['retention', () => retention && engineSettings({ store: options.store, retention })],
    ['inbox', () => inbox && engineSettings({ store: options.store, inbox })],
    ['policy', () => policy && layered([layerOf(policy)])],
    ...entriesOf(policies).map(([name, one]): Part => [
      `policies.${name}`,
      () => durablePolicy(one),
    ]),
    ...lanePart('lane', lane ?? {}),
    ...entriesOf(lanes).flatMap(([name, one]) => lanePart(`lanes.${name}`, one)),
    ['', () => trailSettings(options.audit, (options.store as Store | undefined)?.audit)],
  ];
}

function lanePart(path: string, lane: LaneOptions): Part[] {
  return [
    [path, () => laneSettings(lane, LEASE_MS)],
    [`${path}.policy`, () => lane.policy && layered([layerOf(lane.policy)])],
  ];
}

/** Which one does not matter for faults. */
const LEASE_MS = 30_000;

function layerOf(policy: Policy) {
  return { policy, origin: 'this policy' };
}

/** What is no object is told of by itself. */
function entriesOf<T>(table: Readonly<Record<string, T>> | undefined): [string, T][] {
  return isTable(table) ? Object.entries(table ?? {}) : [];
}

function unknownNames(options: object): TaskFault[] {
  const names = Object.keys(options).filter((name) => !optionNames.includes(name));
  return names.map((name) => {
    const hint = didYouMean(nearest(name, optionNames));
    return fault(name, `There is no option '${name}'.${hint}`);
  });
}

const storeNeeded = "An engine needs a store: sqlite('tasks.db'), postgres({ url }), or memory().";

function wrongKinds(options: EngineOptions): TaskFault[] {
  const faults: TaskFault[] = [];
  const { idempotency, store, log, clock } = options;
  if (typeof (store as Store | undefined)?.claim !== 'function') {
    faults.push(fault('store', storeNeeded));
  }
  if (idempotency !== undefined && !isIdempotencyStore(idempotency)) {
    const message =
      'The option `idempotency` is no idempotency store: pass postgresIdempotency(url), redisIdempotency(url) or another one.';
    faults.push(fault('idempotency', message));
  }
  for (const name of functions) {
    const value: unknown = options[name];
    if (value === undefined || typeof value === 'function') continue;
    faults.push(fault(name, `The option '${name}' must be a function.`));
  }
  for (const name of lists) {
    const value: unknown = options[name];
    if (value === undefined || Array.isArray(value)) continue;
    faults.push(fault(name, `The option '${name}' must be a list, such as [${examples[name]}].`));
  }
  for (const name of tables) {
    const value: unknown = options[name];
    if (value === undefined || isTable(value)) continue;
    const message = `The option '${name}' must be an object of objects, such as ${examples[name]}.`;
    faults.push(fault(name, message));
  }
  for (const [name] of entriesOf(options.lanes)) {
    const message = laneNameFault(name);
    if (message !== undefined) faults.push(fault(`lanes.${name}`, message));
  }
  if (log !== undefined && typeof log?.warn !== 'function') {
    faults.push(
      fault('log', "The option 'log' must have debug, info, warn and error, as console."),
    );
  }
  if (clock !== undefined && typeof clock?.setTimer !== 'function') {
    faults.push(fault('clock', "The option 'clock' must be a clock, as from virtualClock()."));
  }
  return faults;
}

const examples = {
  deliveries: 'http()',
  brokers: 'rabbitmq({ url })',
  policies: '{ patient: { maxAttempts: 20 } }',
  lanes: "{ 'handler:mail': { concurrency: 5 } }",
};

function isTable(value: unknown): boolean {
  const isObject = (one: unknown) => typeof one === 'object' && one !== null && !Array.isArray(one);
  return isObject(value) && Object.values(value as object).every(isObject);
}

function faultsOf(path: string, check: () => unknown): (TaskFault | Fault)[] {
  try {
    check();
    return [];
  } catch (error) {
    if (!isConfigError(error) && !isEngineError(error)) throw error;
    if (error.faults.length === 0) return [fault(path, error.message)];
    return error.faults.map((one) => ({ ...one, path: joined(path, one.path) }));
  }
}

function joined(path: string, inner: string): string {
  return inner === '' ? path : joinPath(path, inner);
}

function fault(path: string, message: string): TaskFault {
  return { path, code: 'INVALID_ENGINE', message };
}

function faulty(faults: readonly (TaskFault | Fault)[], cause?: unknown): EngineError {
  const [first] = faults;
  const list = faults.map(({ path, message }) => `\n  ${path || '(all)'}: ${message}`).join('');
  const message =
    faults.length === 1 && first ? first.message : `The engine has ${faults.length} faults:${list}`;
  return new EngineError('INVALID_ENGINE', message, {
    faults,
    ...(cause === undefined ? {} : { cause }),
  });
}
