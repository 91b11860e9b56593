import { isErased, personalIn } from './audit-erase.ts';
import { type AuditEvent, fieldsOf, happeningOf } from './audit-events.ts';
import { type AuditGap, Sequences } from './audit-sequence.ts';
import {
  decisionFromWire,
  decisionToWire,
  factsFromWire,
  isObject,
  type Wire,
} from './audit-wire.ts';
import { type Decision, decide } from '../decide.ts';
import { isConfigError } from '../errors.ts';
import { type DefinedPolicy, parsePolicy } from '../policy/policy.ts';
import type { Policy } from '../policy/policy-fields.ts';
import { redecideRoute, registeredRouting, type RouteRecord } from '../routing/route-audit.ts';
import { RoutingPolicy } from '../routing/routing-policy.ts';
import { checkOptions } from '../options/check-options.ts';
import type { Fields } from '../options/fields.ts';

export interface ReplayOptions {
  /** Policies that are known besides those that the trail registers. */
  policies?: Iterable<Policy | RoutingPolicy>;
  /** How many differences, gaps and unknown policies are listed (100); all are counted. */
  maxListed?: number;
}

export interface AuditReplay {
  /** Events that were read. */
  events: number;
  /** Decisions that were made again: those that came out the same, and those that did not. */
  checked: number;
  same: number;
  different: number;
  /** The first of those that came out otherwise. */
  differing: AuditDifference[];
  /** Decisions whose policy the trail does not have, and the first such policies. */
  unknownPolicy: number;
  unknownPolicies: string[];
  /** Registered policies that do not parse, or are not what their fingerprint says. They are not used. */
  wrongPolicies: string[];
  /** What is no event, or has half of what a decision needs. */
  unreadable: number;
  /** Numbers that are missing in the trail, the first gaps, and events that are there twice. */
  missing: number;
  gaps: AuditGap[];
  twins: number;
  /** Events that the writers themselves said they had to drop. */
  dropped: number;
  /** Events whose texts were erased. Their decisions are made again like all others. */
  erased: number;
}

export interface AuditDifference {
  event: AuditEvent;
  /** What differs: a field of the decision (`decision.delay_ms`), or of the event that tells of it (`delay_seconds`). */
  fields: string[];
  written: Omit<Decision, 'failure'> | RouteRecord;
  decided: Decision | RouteRecord;
}

/**
 * Makes every decision of a trail again, from its facts and its policy, and says which come out otherwise. The trail of
 * many instances may be mixed, and a policy may come after its decisions: a bounded number of them waits for it.
 */
export async function replayAudit(
  events: Iterable<unknown> | AsyncIterable<unknown>,
  options: ReplayOptions = {},
): Promise<AuditReplay> {
  checkOptions('The options of replayAudit', options, optionFields, ['policies']);
  const replay = new Replay(options);
  for await (const event of events) replay.read(event);
  return replay.end();
}

const optionFields = {
  maxListed: { kind: 'integer', min: 0, max: Number.MAX_SAFE_INTEGER },
} as const satisfies Fields;

const MAX_LISTED = 100;
const MAX_HELD = 10_000;
const MAX_POLICIES = 10_000;

class Replay {
  readonly #maxListed: number;
  readonly #sequences: Sequences;
  readonly #policies = new Map<string, DefinedPolicy | RoutingPolicy>();
  /** Decisions that wait for their policy. */
  readonly #held = new Map<string, AuditEvent[]>();
  readonly #unknown = new Set<string>();
  #heldCount = 0;
  readonly #report: Omit<AuditReplay, 'missing' | 'gaps' | 'twins' | 'unknownPolicies'> = {
    events: 0,
    checked: 0,
    same: 0,
    different: 0,
    differing: [],
    unknownPolicy: 0,
    wrongPolicies: [],
    unreadable: 0,
    dropped: 0,
    erased: 0,
  };

  constructor({ policies = [], maxListed = MAX_LISTED }: ReplayOptions) {
    this.#maxListed = maxListed;
    this.#sequences = new Sequences(maxListed);
    for (const policy of policies) {
      this.#know(policy instanceof RoutingPolicy ? policy : parsePolicy(policy));
    }
  }

  read(data: unknown): void {
    this.#report.events += 1;
    if (!isObject(data) || typeof data['event_type'] !== 'string') {
      this.#report.unreadable += 1;
      return;
    }
    const event = data as unknown as AuditEvent;
    this.#number(event.redrive);
    if (isErased(event)) this.#report.erased += 1;
    if (event.event_type === 'policy_registered') this.#register(event, parsed(event));
    else if (event.event_type === 'routing_policy_registered') {
      this.#register(event, registeredRouting(event));
    } else if (event.event_type === 'events_dropped')
      this.#report.dropped += countOf(event['count']);
    else this.#check(event);
  }

  end(): AuditReplay {
    for (const [policy, events] of this.#held) this.#miss(policy, events.length);
    const { twins } = this.#sequences;
    const unknownPolicies = [...this.#unknown];
    return { ...this.#report, unknownPolicies, ...this.#sequences.end(), twins };
  }

  #number(redrive: unknown): void {
    if (!isObject(redrive)) return;
    const { instance, run, sequence } = redrive;
    if (typeof instance !== 'string' || !Number.isSafeInteger(sequence)) return;
    this.#sequences.see(instance, typeof run === 'number' ? run : 0, sequence as number);
  }

  #register(
    { policy: fingerprint }: AuditEvent,
    policy: DefinedPolicy | RoutingPolicy | undefined,
  ) {
    if (policy) this.#know(policy);
    else if (this.#report.wrongPolicies.length < this.#maxListed) {
      this.#report.wrongPolicies.push(String(fingerprint));
    }
  }

  #know(policy: DefinedPolicy | RoutingPolicy): void {
    const { fingerprint } = policy;
    // Again, as the newest: the oldest goes first.
    this.#policies.delete(fingerprint);
    this.#policies.set(fingerprint, policy);
    if (this.#policies.size > MAX_POLICIES) dropOldest(this.#policies);
    const held = this.#held.get(fingerprint);
    if (!held) return;
    this.#held.delete(fingerprint);
    this.#heldCount -= held.length;
    for (const event of held) this.#decide(event, policy);
  }

  #check(event: AuditEvent): void {
    const { redrive } = event;
    if (!isObject(redrive) || (redrive.facts === undefined && redrive.decision === undefined)) {
      return;
    }
    const { policy: fingerprint, facts, decision } = redrive;
    if (typeof fingerprint !== 'string' || !isObject(facts) || !isObject(decision)) {
      this.#report.unreadable += 1;
      return;
    }
    const policy = this.#policies.get(fingerprint);
    if (policy) this.#decide(event, policy);
    else if (this.#heldCount < MAX_HELD) {
      this.#heldCount += 1;
      const held = this.#held.get(fingerprint);
      if (held) held.push(event);
      else this.#held.set(fingerprint, [event]);
    } else this.#miss(fingerprint, 1);
  }

  #miss(policy: string, count: number): void {
    this.#report.unknownPolicy += count;
    if (this.#unknown.size < this.#maxListed) this.#unknown.add(policy);
  }

  #decide(event: AuditEvent, policy: DefinedPolicy | RoutingPolicy): void {
    const isRoute = event.event_type === 'route_decided';
    const again =
      policy instanceof RoutingPolicy
        ? isRoute && redecideRoute(event, policy)
        : !isRoute && redecide(event, policy);
    if (!again) {
      this.#report.unreadable += 1;
      return;
    }
    // Whoever marks an event as erased has to empty it: the mark excuses nothing else.
    if (isErased(event)) again.fields.push(...personalIn(event));
    this.#report.checked += 1;
    if (again.fields.length === 0) {
      this.#report.same += 1;
      return;
    }
    this.#report.different += 1;
    if (this.#report.differing.length < this.#maxListed) {
      this.#report.differing.push({ event, ...again });
    }
  }
}

function redecide(event: AuditEvent, policy: DefinedPolicy): Omit<AuditDifference, 'event'> {
  const { facts, decision, seed, key, wait_ms: waitMs } = event.redrive as unknown as Wire;
  const decided = decide(policy, factsFromWire(facts as Wire, seed, key));
  const fields = differences(event, decision as Wire, decided, waitMs);
  return { fields, written: decisionFromWire(decision as Wire), decided };
}

/** Where the decision as it was written, and the event's own fields, are not what comes out. */
function differences(event: AuditEvent, written: Wire, decided: Decision, waitMs: unknown) {
  const wire = decisionToWire(decided);
  const names = new Set([...Object.keys(wire), ...Object.keys(written)]);
  const fields = [...names]
    .filter((name) => wire[name] !== written[name])
    .map((name) => `decision.${name}`);
  const happening = happeningOf(decided);
  const waits = 'delayMs' in happening && typeof waitMs === 'number' ? { delayMs: waitMs } : {};
  const told: Wire = { event_type: happening.type, ...fieldsOf({ ...happening, ...waits }) };
  for (const [name, value] of Object.entries(told)) {
    // The message is not among the facts.
    if (!name.endsWith('exception_message') && event[name] !== value) fields.push(name);
  }
  return fields;
}

/** The policy that an event registers, where it is what its fingerprint says. */
function parsed({ policy: fingerprint, definition }: AuditEvent): DefinedPolicy | undefined {
  try {
    const policy = parsePolicy(definition);
    return policy.fingerprint === fingerprint ? policy : undefined;
  } catch (error) {
    if (isConfigError(error)) return undefined;
    throw error;
  }
}

function countOf(count: unknown): number {
  return typeof count === 'number' && count > 0 ? count : 0;
}

function dropOldest(map: Map<string, unknown>): void {
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}
