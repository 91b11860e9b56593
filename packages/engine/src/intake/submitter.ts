import { inspect } from 'node:util';
import type { DefinedPolicy, Fault } from 'redrive';
import type { Rejected } from '../engine.ts';
import { EngineError, isEngineError, isStoreError, type TaskFault } from '../errors.ts';
import type { RegisteredHandler } from '../dispatch/handlers.ts';
import type { Host } from '../host.ts';
import type { Accepted, Arrival } from '../model/moves.ts';
import type { Policies } from '../dispatch/policies.ts';
import type { Delivery } from '../ports/delivery.ts';
import type { StandardResult } from '../dispatch/standard-schema.ts';
import { bytesOf } from './payload.ts';
import {
  checkedAttempts,
  conflictRule,
  destinationOf,
  type Submission,
  submissionNames,
  taskChecks,
  taskOf,
} from './submission.ts';
import { allFaults, type Check, checkNames, withAllFaults } from './submission-faults.ts';
import { type Destination, laneOf, type TaskContext } from '../model/task.ts';
import { uuidAt } from '../model/uuid.ts';

export interface Submitted {
  /** The message id. */
  id: string;
  /** `duplicate`: it was there already, and was left as it is. */
  status: 'accepted' | 'duplicate';
  /** This process cannot deliver there, and that may be a slip. The task is stored all the same. */
  warning?: string;
}

/** For a fault of a policy that fits the submit, and not those below it. */
const ORIGIN = 'the policy of this submit';
const BATCH = 1000;
const BATCH_BYTES = 8 * 1024 * 1024;

/** Checks submissions at the edge and makes arrivals of them. */
export class Submitter {
  readonly #parts: SubmitterParts;

  constructor(parts: SubmitterParts) {
    this.#parts = parts;
  }

  /** At once, unless there is a schema to ask or a policy to keep. */
  prepare(submission: Submission): Arrival | Promise<Arrival> {
    try {
      const { to, policy } = Object(submission) as Submission;
      const destination = destinationOf(to);
      const { kind, address } = destination;
      const handler = kind === 'handler' ? this.#parts.handlers.get(address) : undefined;
      if (handler?.schema || policy !== undefined) {
        return this.#prepareSlowly(submission, destination, handler);
      }
      return this.#prepareNow(submission, destination);
    } catch (error) {
      throw withAllFaults(error, this.#checks(submission));
    }
  }

  async #prepareSlowly(
    submission: Submission,
    destination: Destination,
    handler: RegisteredHandler | undefined,
  ): Promise<Arrival> {
    let arrival: Arrival;
    try {
      await check(submission.payload, handler);
      arrival = this.#prepareNow(submission, destination);
    } catch (error) {
      throw withAllFaults(error, this.#checks(submission));
    }
    if (submission.policy === undefined) return arrival;
    arrival.task.policy = await this.#parts.policies.keep(arrival.policy);
    return arrival;
  }

  /** All that a submission would be refused for, but for what only the schema of a handler knows. */
  faultsOf(submission: Submission): readonly (TaskFault | Fault)[] {
    return allFaults(this.#checks(submission));
  }

  /** Whether a message may go there; a payload that is undefined stays as it is. */
  async check(
    destination: Destination,
    payload: unknown,
    context: TaskContext | undefined,
  ): Promise<void> {
    this.checkAddress(destination, context);
    const { kind, address } = destination;
    if (kind !== 'handler' || payload === undefined || payload instanceof Uint8Array) return;
    await check(payload, this.#parts.handlers.get(address));
  }

  checkAddress(destination: Destination, context: TaskContext | undefined): void {
    const faults = this.#parts.deliveryOf(destination.kind)?.check?.(destination, context) ?? [];
    if (faults[0]) throw new EngineError(faults[0].code, faults[0].message, { faults });
  }

  #prepareNow(submission: Submission, destination: Destination): Arrival {
    const { host, policies, policyOf, maxPayloadBytes, nowMs, canOrder } = this.#parts;
    const { payload, policy: wanted } = submission;
    checkNames(submission, submissionNames, 'The options of a submit');
    this.checkAddress(destination, submission.context);
    if (submission.orderingKey !== undefined && !canOrder) throw unordered();
    const lane = laneOf(destination);
    const policy = wanted === undefined ? policyOf(lane) : policies.resolve(wanted, lane, ORIGIN);
    const bytes = bytesOf(payload, maxPayloadBytes);
    const now = nowMs();
    const task = taskOf(destination, bytes, withContentType(submission, destination), {
      id: uuidAt(now, host.random),
      maxAttempts: checkedAttempts(submission.maxAttempts) ?? policy.maxAttempts,
      nowMs: now,
      token: Math.floor(host.random() * 2 ** 52) + 1,
    });
    return { type: 'submit', task, policy, ...conflictRule(submission) };
  }

  /** What `#prepareNow` checks, one by one. */
  #checks(given: Submission): Check[] {
    const { policies, maxPayloadBytes, nowMs, canOrder } = this.#parts;
    const submission = Object(given) as Submission;
    const { to, payload, policy, maxAttempts, orderingKey, context } = submission;
    let destination: Destination | undefined;
    const lane = () => (destination ? laneOf(destination) : '');
    return [
      () => checkNames(given, submissionNames, 'The options of a submit'),
      () => (destination = destinationOf(to)),
      () => destination && this.checkAddress(destination, context),
      () => {
        if (orderingKey !== undefined && !canOrder) throw unordered();
      },
      () => policy !== undefined && policies.resolve(policy, lane(), ORIGIN),
      () => bytesOf(payload, maxPayloadBytes),
      () => checkedAttempts(maxAttempts),
      ...taskChecks(submission, nowMs()),
    ];
  }

  answerOf({ task }: Arrival, status: Accepted): Submitted {
    const id = task.messageId;
    if (status === 'duplicate') return { id, status };
    const warning = this.#parts.warningFor(task.lane);
    return { id, status: 'accepted', ...(warning === undefined ? {} : { warning }) };
  }

  /** Stores them in batches. One that has faults is rejected by itself. */
  async many(
    submissions: readonly Submission[],
    store: (arrivals: readonly Arrival[]) => Promise<readonly (Accepted | { error: unknown })[]>,
  ): Promise<(Submitted | Rejected)[]> {
    const results: (Submitted | Rejected)[] = [];
    let batch: { index: number; arrival: Arrival }[] = [];
    let bytes = 0;
    const flush = async () => {
      const some = batch;
      batch = [];
      bytes = 0;
      const statuses = await store(some.map(({ arrival }) => arrival));
      for (const [i, { index, arrival }] of some.entries()) {
        const status = statuses[i]!;
        if (typeof status !== 'string') results[index] = rejected(status.error);
        else results[index] = this.answerOf(arrival, status);
      }
    };
    for (const [index, submission] of submissions.entries()) {
      try {
        let arrival = this.prepare(submission);
        if (arrival instanceof Promise) arrival = await arrival;
        batch.push({ index, arrival });
        bytes += arrival.task.payload.length;
      } catch (error) {
        results[index] = rejected(error);
      }
      if (batch.length >= BATCH || bytes >= BATCH_BYTES) await flush();
    }
    if (batch.length > 0) await flush();
    return results;
  }
}

/** Of what was accepted, by lane: the time until the first is due. */
export function firstDue(
  arrivals: readonly Arrival[],
  results: readonly (Accepted | object)[],
  nowMs: number,
): Map<string, number> {
  const first = new Map<string, number>();
  for (const [i, { task }] of arrivals.entries()) {
    if (results[i] !== 'accepted') continue;
    const { lane, due } = task;
    const inMs = 'inMs' in due ? due.inMs : Math.max(0, due.atMs - nowMs);
    first.set(lane, Math.min(first.get(lane) ?? Infinity, inMs));
  }
  return first;
}

/** What was written as JSON here says so where it arrives. */
function withContentType(submission: Submission, { kind }: Destination): Submission {
  const { context, payload } = submission;
  if (kind !== 'http' || payload instanceof Uint8Array || context?.contentType) return submission;
  return { ...submission, context: { ...context, contentType: 'application/json' } };
}

interface SubmitterParts {
  host: Host;
  policies: Policies;
  handlers: ReadonlyMap<string, RegisteredHandler>;
  deliveryOf: (kind: string) => Delivery | undefined;
  policyOf: (lane: string) => DefinedPolicy;
  maxPayloadBytes: number;
  nowMs: () => number;
  /** The store honours ordering keys. */
  canOrder: boolean;
  /** What whoever submits to this lane should know. */
  warningFor: (lane: string) => string | undefined;
}

/** A fault of the task itself; anything else, a store that is away, concerns all of them. */
export function rejected(error: unknown): Rejected {
  if (isStoreError(error)) throw error;
  if (!isEngineError(error)) {
    // A getter or a toJSON of the caller's, or a value that no store takes.
    const message = `The task could not be read: ${inspect(error).slice(0, 200)}`;
    const fault = { path: '', code: 'INVALID_TASK', message } as const;
    return { status: 'rejected', ...fault, faults: [fault] };
  }
  const { code, message, faults } = error;
  const [first = { path: '', code, message }, ...more] = faults;
  return {
    status: 'rejected',
    code,
    message: more.length > 0 ? first.message : message,
    path: first.path,
    faults: [first, ...more],
  };
}

function unordered(): EngineError {
  const message =
    'This store does not honour ordering keys. Leave orderingKey out, or use another store.';
  const fault = { path: 'orderingKey', code: 'INVALID_TASK', message } as const;
  return new EngineError('INVALID_TASK', message, { faults: [fault] });
}

async function check(payload: unknown, handler: RegisteredHandler | undefined): Promise<void> {
  if (!handler?.schema) return;
  let result: StandardResult<unknown>;
  try {
    result = await handler.schema['~standard'].validate(payload);
  } catch (error) {
    const message = `The schema could not check the payload: ${String(error)}`;
    const fault = { path: 'payload', code: 'INVALID_PAYLOAD', message } as const;
    throw new EngineError('INVALID_PAYLOAD', message, { cause: error, faults: [fault] });
  }
  if (!result.issues) return;
  const faults = result.issues.map(({ message, path }) => ({
    path: ['payload', ...(path ?? []).map(keyOf)].join('.'),
    code: 'INVALID_PAYLOAD' as const,
    message,
  }));
  const list = faults.map((fault) => `\n  ${fault.path}: ${fault.message}`).join('');
  throw new EngineError('INVALID_PAYLOAD', `The payload is not what its handler takes:${list}`, {
    faults,
  });
}

/** A path's part is a key, or an object that has it. */
function keyOf(part: unknown): string {
  return String(typeof part === 'object' && part !== null && 'key' in part ? part.key : part);
}
