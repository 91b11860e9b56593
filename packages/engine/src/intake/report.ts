import type { DefinedPolicy, Failure, Policy } from 'redrive';
import { EngineError, type EngineErrorCode } from '../errors.ts';
import type { Rejected } from '../engine.ts';
import type { Accepted, Arrival } from '../model/moves.ts';
import type { Policies } from '../dispatch/policies.ts';
import { bytesOf } from './payload.ts';
import {
  checkedContext,
  checkedId,
  checkedKey,
  conflictRule,
  destinationOf,
  timeOf,
} from './submission.ts';
import {
  type Destination,
  laneOf,
  type NewTask,
  type Reason,
  type TaskContext,
} from '../model/task.ts';
import { type Check, checkNames, withAllFaults } from './submission-faults.ts';
import { rejected } from './submitter.ts';
import { cleanFailure } from '../model/text.ts';

/** An execution that failed elsewhere, as whoever knows of it says. */
export interface FailureReport {
  /** A UUID. With the destination it is the identity of the task. */
  messageId: string;
  /** Where it failed, and where it goes again. */
  to: Destination;
  /** As `submit` takes it: bytes as they are, anything else as JSON. */
  payload: unknown;
  context?: TaskContext;
  failure: Failure;
  /** Executions that have failed so far, this one included. */
  attempt: number;
  /** Executions in all; as its policy has it unless given. */
  maxAttempts?: number;
  /** A name from the engine's `policies`, or the fields in which it differs from the policy of its lane. */
  policy?: string | Policy;
  /** When it is to be sent again, where that is in the future; otherwise its policy says. */
  dueAtMs?: number;
  expiresAtMs?: number;
  orderingKey?: string;
  onDead?: 'release';
  /**
   * The count came back from us, in this generation of the task: an old count is an old failure. `present`: whatever
   * generation that is by now.
   */
  generation?: number | 'present';
  /** The id that it has where a task of that id has another payload: ids of others may be used twice. */
  otherId?: string;
  /** Refused (`reject`) where a task of that id has another payload; unless given, such a report is one of that task. */
  onConflict?: 'duplicate' | 'reject';
  /** It must not be retried, whatever its policy says. */
  verdict?: Reason;
}

export interface Reported {
  /** The message id. */
  id: string;
  /** `duplicate`: known already. `failed`: it is not retried, and lies in the inbox. */
  status: 'accepted' | 'duplicate' | 'failed';
}

interface ReporterParts {
  policies: Policies;
  policyOf: (lane: string) => DefinedPolicy;
  random: () => number;
  nowMs: () => number;
  maxPayloadBytes: number;
  canOrder: boolean;
  /** Throws where such a message may not go there. */
  checkAddress: (destination: Destination, context: TaskContext | undefined) => void;
  review?: Arrival['review'];
}

const reportNames: ReadonlySet<string> = new Set([
  'messageId',
  'to',
  'payload',
  'context',
  'failure',
  'attempt',
  'maxAttempts',
  'policy',
  'dueAtMs',
  'expiresAtMs',
  'orderingKey',
  'onDead',
  'generation',
  'otherId',
  'onConflict',
  'verdict',
] satisfies (keyof FailureReport)[]);
const ORIGIN = 'the policy of this report';
const MAX_COUNT = 1_000_000_000;

/** Checks reports of failures, and makes arrivals of them. */
export class Reporter {
  readonly #parts: ReporterParts;

  constructor(parts: ReporterParts) {
    this.#parts = parts;
  }

  /** One that names no policy of its own. Throws where something is wrong with it. */
  arrivalOf(report: FailureReport): Arrival {
    const { policies, review } = this.#parts;
    const destination = destinationOf(report.to);
    const lane = laneOf(destination);
    const own = this.#policyOf(report, lane);
    const maxAttempts = countOf(report.maxAttempts ?? own.maxAttempts, 'maxAttempts');
    const { generation, verdict, otherId } = report;
    return {
      type: 'failure',
      policy: policies.limited(own, maxAttempts),
      task: this.#taskOf(report, destination, lane, maxAttempts),
      ...(generation === undefined ? {} : { generation }),
      ...(verdict ? { verdict } : {}),
      ...conflictRule(report),
      ...(otherId === undefined ? {} : { otherId: checkedId(otherId) }),
      ...(review ? { review } : {}),
    };
  }

  /** Stores them together. One that has faults is rejected by itself. */
  async many(
    reports: readonly FailureReport[],
    store: (arrivals: readonly Arrival[]) => Promise<readonly (Accepted | { error: unknown })[]>,
  ): Promise<(Reported | Rejected)[]> {
    const results: (Reported | Rejected)[] = [];
    const prepared: { index: number; arrival: Arrival }[] = [];
    for (const [index, report] of reports.entries()) {
      try {
        prepared.push({ index, arrival: await this.#prepare(report) });
      } catch (error) {
        results[index] = rejected(error);
      }
    }
    if (prepared.length === 0) return results;
    const answers = await store(prepared.map(({ arrival }) => arrival));
    for (const [i, { index, arrival }] of prepared.entries()) {
      const answer = answers[i]!;
      const { messageId: id } = arrival.task;
      results[index] = typeof answer === 'string' ? { id, status: answer } : rejected(answer.error);
    }
    return results;
  }

  /** Also for one that names a policy: that is kept in the store first. */
  async #prepare(report: FailureReport): Promise<Arrival> {
    const { policies, maxPayloadBytes } = this.#parts;
    let arrival: Arrival;
    try {
      checkNames(report, reportNames, 'The fields of a report');
      this.#checkOrder(report);
      const context = report.context && checkedContext(report.context);
      arrival = this.arrivalOf(context ? { ...report, context } : report);
      checkSize(arrival.task.payload, maxPayloadBytes);
      this.#parts.checkAddress(arrival.task.destination, context);
    } catch (error) {
      throw withAllFaults(error, this.#checks(report));
    }
    if (report.policy !== undefined) {
      arrival.task.policy = await policies.keep(this.#policyOf(report, arrival.task.lane));
    }
    return arrival;
  }

  /** What `#prepare` checks, one by one. */
  #checks(given: FailureReport): Check[] {
    const { maxPayloadBytes, nowMs, checkAddress } = this.#parts;
    const report = Object(given) as FailureReport;
    const { to, messageId, otherId, payload, context, orderingKey, maxAttempts } = report;
    let destination: Destination | undefined;
    return [
      () => checkNames(given, reportNames, 'The fields of a report'),
      () => (destination = destinationOf(to)),
      () => checkedId(messageId),
      () => otherId !== undefined && checkedId(otherId),
      () => this.#checkOrder(report),
      () => this.#policyOf(report, destination ? laneOf(destination) : ''),
      () => maxAttempts !== undefined && countOf(maxAttempts, 'maxAttempts'),
      () => countOf(report.attempt, 'attempt'),
      () => conflictRule(report),
      () => timeOf(report.dueAtMs, 'dueAt', nowMs()),
      () => timeOf(report.expiresAtMs, 'expiresAt', nowMs()),
      () => orderingKey !== undefined && checkedKey(orderingKey, 'orderingKey'),
      () => context && checkedContext(context),
      () => checkSize(bytesOf(payload, Infinity), maxPayloadBytes),
      () => destination && checkAddress(destination, context),
    ];
  }

  #checkOrder({ orderingKey }: FailureReport): void {
    if (orderingKey === undefined || this.#parts.canOrder) return;
    throw refused('INVALID_TASK', 'orderingKey', 'This store does not honour ordering keys.');
  }

  #policyOf({ policy }: FailureReport, lane: string): DefinedPolicy {
    const { policies, policyOf } = this.#parts;
    return policy === undefined ? policyOf(lane) : policies.resolve(policy, lane, ORIGIN);
  }

  #taskOf(
    report: FailureReport,
    destination: Destination,
    lane: string,
    maxAttempts: number,
  ): NewTask {
    const { random, nowMs } = this.#parts;
    const { payload, context, orderingKey, onDead } = report;
    const expiresAtMs = timeOf(report.expiresAtMs, 'expiresAt', nowMs());
    const dueAtMs = timeOf(report.dueAtMs, 'dueAt', nowMs());
    return {
      messageId: checkedId(report.messageId),
      destination,
      lane,
      payload: bytesOf(payload, Infinity),
      ...(context ? { context } : {}),
      status: 'pending',
      attempt: countOf(report.attempt, 'attempt'),
      maxAttempts,
      uncounted: 0,
      delayMs: 0,
      generation: 0,
      ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
      claims: 0,
      arrived: false,
      cancelling: false,
      ...(orderingKey === undefined ? {} : { orderingKey: checkedKey(orderingKey, 'orderingKey') }),
      ...(onDead ? { onDead } : {}),
      // Its line says when it is its turn.
      blocked: orderingKey !== undefined,
      failure: cleanFailure(report.failure),
      // Asked twice because the answer was lost, it is still one arrival.
      arrival: Math.floor(random() * 2 ** 52) + 1,
      due: dueAtMs === undefined ? { inMs: 0 } : { atMs: dueAtMs },
    };
  }
}

function checkSize({ length }: Uint8Array, maxBytes: number): void {
  if (length <= maxBytes) return;
  const message = `The payload has ${length} bytes; the limit is ${maxBytes}.`;
  throw refused('PAYLOAD_TOO_LARGE', 'payload', message);
}

function countOf(count: number, path: string): number {
  if (Number.isInteger(count) && count >= 1 && count <= MAX_COUNT) return count;
  throw refused('INVALID_TASK', path, `A whole number from 1 to ${MAX_COUNT} is needed.`);
}

function refused(code: EngineErrorCode, path: string, message: string): EngineError {
  return new EngineError(code, message, { faults: [{ path, code, message }] });
}
