import { Agenda } from './agenda.ts';
import { decide, type GiveUp } from '../decide.ts';
import type { Failure } from '../failure/failure.ts';
import { definePolicy } from '../policy/policy.ts';
import type { Policy } from '../policy/policy-fields.ts';
import { unitRandom } from '../policy/random.ts';
import {
  type LoadBucket,
  loadOverTime,
  type AttemptOutcome,
  peakPerSecond,
  type Percentiles,
  percentiles,
} from './simulate-measures.ts';
import { type DefinedWorld, defineWorld, type World } from './simulate-world.ts';

/** What a policy did to a service, as plain data. */
export interface Simulation {
  /** The world it was, defaults filled in: given to `simulate` again, it gives the same result. */
  world: DefinedWorld;
  /** Every client ends once: it succeeded, it gave up, or it was unfinished when the simulation ended. */
  succeeded: number;
  gaveUp: Partial<Record<GiveUp['reason'], number>>;
  unfinished: number;
  /** Attempts in all, how each of them ended, and those that brought nothing: all but the served ones. */
  attempts: number;
  outcomes: Record<AttemptOutcome, number>;
  wasted: number;
  /** The most attempts within any one second, and the same from the end of the outage on. */
  peakPerSecond: number;
  peakAfterOutage: number;
  /**
   * From the end of the outage until the last client that had failed before got its answer. Null when some
   * failed and none of those ever got through: they did not recover.
   */
  recoveryMs: number | null;
  /** From the end of the outage until the service refused something as overloaded for the last time. */
  overloadedMs: number;
  /** From a client's first call to its answer, over the clients that succeeded; null if none did. */
  completionMs: Percentiles | null;
  /** When the last client was done, and whether that ended the simulation. */
  endedMs: number;
  endedBy: 'done' | 'horizon' | 'limit';
  bucketMs: number;
  load: LoadBucket[];
}

/** What production would make of an answer that did not come, by `classify`. */
const failures: Record<Exclude<AttemptOutcome, 'served'>, Failure> = {
  down: { class: 'transient', code: 'ECONNREFUSED', names: ['Error'], notExecuted: true },
  overloaded: { class: 'transient', code: 'HTTP_503', status: 503 },
  timedOut: {
    class: 'transient',
    code: 'TIMEOUT',
    names: ['TimeoutError', 'DOMException', 'Error'],
  },
};

/**
 * What a policy does to a service that goes down and comes back. Pure: the same policy and world, the same
 * result. The rules of the game:
 *
 * 1. Each client has one call to make. First calls are spread at random over `spread`.
 * 2. While the service is down, it refuses every attempt as `ECONNREFUSED`.
 * 3. While it is up, it serves one request after the other, `capacity` in a second. What would have to queue for
 *    longer than `queue` is refused at once as `HTTP_503`, with `retryAfter` if the world has one.
 *    When it goes down, what is in the queue is refused too.
 * 4. Any answer, good or bad, takes `latency`. A client that stops waiting for it (`attemptTimeout`, `deadline`)
 *    has the service do the work in vain.
 * 5. What follows a failure is the word of `decide`, with the client's number as key and the world's seed: delays,
 *    jitter, cap, deadline and giving up are those of production.
 *
 * Time moves in whole ms. Budgets and breakers are not part of it: they belong to a process, not to a policy.
 *
 * @example simulate({ maxAttempts: 8, jitter: 'none' }, { clients: 1000, outage: '5s', capacity: 200 }).peakAfterOutage
 */
export function simulate(policy: Policy, world: World = {}): Simulation {
  const p = definePolicy(policy);
  const w = defineWorld(world);
  const service = new Service(w);
  const agenda = new Agenda(w.clients);
  const startedAt = new Float64Array(w.clients);
  const attempt = new Int32Array(w.clients).fill(1);
  const previousMs = new Float64Array(w.clients);
  const attemptTimes: number[] = [];
  const outcomeTimes: Record<AttemptOutcome, number[]> = {
    served: [],
    down: [],
    overloaded: [],
    timedOut: [],
  };
  const completions: number[] = [];
  const gaveUp: Simulation['gaveUp'] = {};
  const outageEnd = w.outageStart + w.outage;
  let recoveredAt: number | undefined;
  let failed = false;
  let endedMs = 0;

  for (let client = 0; client < w.clients; client++) {
    // Attempt 0 is nobody's: the first calls are the same whatever the policy.
    startedAt[client] = Math.floor(unitRandom(w.seed, String(client), 0) * w.spread);
    agenda.add(client, startedAt[client]!);
  }
  while (agenda.nextAt <= w.horizon && attemptTimes.length < w.limit) {
    const at = agenda.nextAt;
    const client = agenda.take();
    const began = startedAt[client]!;
    attemptTimes.push(at);
    let outcome: AttemptOutcome = service.receive(at);
    let doneAt = service.answeredAt;
    const deadlineAt = began + (p.deadline ?? Infinity);
    const endsAt = Math.ceil(Math.min(at + (p.attemptTimeout ?? Infinity), deadlineAt));
    if (doneAt > endsAt) [outcome, doneAt] = ['timedOut', endsAt];
    outcomeTimes[outcome].push(outcome === 'served' ? service.servedAt : at);
    endedMs = Math.max(endedMs, doneAt);

    const n = attempt[client]!;
    if (outcome === 'served') {
      completions.push(doneAt - began);
      if (n > 1) recoveredAt = Math.max(recoveredAt ?? outageEnd, doneAt);
      continue;
    }
    failed = true;
    const decision = decide(p, {
      attempt: n,
      failure: outcome === 'overloaded' ? service.overload : failures[outcome],
      seed: w.seed,
      key: String(client),
      elapsedMs: doneAt - began,
      // 0 before the first wait, which the decorrelated jitter takes for none.
      previousMs: previousMs[client]!,
    });
    if (decision.action === 'giveUp') {
      gaveUp[decision.reason] = (gaveUp[decision.reason] ?? 0) + 1;
    } else {
      attempt[client] = decision.nextAttempt;
      // As in production: a server's wish is no step of the decorrelated walk.
      if (decision.reason === 'BACKOFF') previousMs[client] = decision.delayMs;
      agenda.add(client, doneAt + decision.delayMs);
    }
  }

  const { served, down, overloaded, timedOut } = outcomeTimes;
  return {
    world: w,
    succeeded: served.length,
    gaveUp,
    unfinished: agenda.size,
    attempts: attemptTimes.length,
    outcomes: {
      served: served.length,
      down: down.length,
      overloaded: overloaded.length,
      timedOut: timedOut.length,
    },
    wasted: attemptTimes.length - served.length,
    peakPerSecond: peakPerSecond(attemptTimes),
    peakAfterOutage: peakPerSecond(attemptTimes, outageEnd),
    recoveryMs: failed ? (recoveredAt === undefined ? null : recoveredAt - outageEnd) : 0,
    overloadedMs: Math.max(0, (overloaded.at(-1) ?? 0) - outageEnd),
    completionMs: percentiles(completions),
    endedMs,
    endedBy: agenda.size === 0 ? 'done' : agenda.nextAt > w.horizon ? 'horizon' : 'limit',
    ...loadOverTime(attemptTimes, outcomeTimes, endedMs, w.bucket),
  };
}

/** The service: up or down by its world, and a queue of which only the end has to be known. */
class Service {
  /** When the last answer reaches its client, and when the service worked on it, if it did. */
  answeredAt = 0;
  servedAt = 0;
  readonly overload: Failure;
  readonly #world: DefinedWorld;
  readonly #stepUs: number;
  /** In whole µs, so that no rounding lets more through than the capacity. */
  #freeAtUs = 0;

  constructor(world: DefinedWorld) {
    this.#world = world;
    this.#stepUs = Math.ceil(1e6 / world.capacity);
    const { retryAfter: retryAfterMs } = world;
    this.overload = { ...failures.overloaded, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  }

  receive(at: number): Exclude<AttemptOutcome, 'timedOut'> {
    const { outageStart, outage, queue, latency } = this.#world;
    this.answeredAt = at + latency;
    if (at >= outageStart && at < outageStart + outage) return 'down';
    const startUs = Math.max(at * 1000, this.#freeAtUs);
    const startMs = Math.floor(startUs / 1000);
    if (startMs > at + queue) return 'overloaded';
    if (outage > 0 && at < outageStart && startMs >= outageStart) {
      this.answeredAt = outageStart + latency;
      return 'down';
    }
    this.#freeAtUs = startUs + this.#stepUs;
    this.servedAt = startMs;
    this.answeredAt = Math.ceil(startUs / 1000) + latency;
    return 'served';
  }
}
