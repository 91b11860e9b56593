import { type Engine, type EngineEvent, isEngineError } from '@redrive/engine';
import type { Clock } from 'redrive';
import type { MemberState } from '../cyoda/member.ts';
import type { Check, Health, Readiness } from '../service-context.ts';
import { inServiceWords } from '../service-words.ts';
import { MAX_SKEW_MS, skewSentence } from './skew-watch.ts';
import { withoutCredentials } from './log/redact.ts';

/** What is known of the connection to a broker. */
export interface BrokerWithState {
  readonly state: {
    state: 'connected' | 'connecting' | 'blocked' | 'closed';
    why?: string;
  };
}

/** What is known of routing: what is wrong with its policies and its store of sessions, in sentences. */
export interface RoutingWithState {
  readonly troubles: readonly string[];
  /** Why the gateway cannot serve a single request; undefined: it can, or there is none. */
  readonly gatewayTrouble?: string | undefined;
}

/** What is known of notifications, in sentences. */
export interface NotificationsWithState {
  readonly troubles: readonly string[];
}

/** By the name of the system. */
export interface WatchedBrokers {
  readonly rabbitmq?: BrokerWithState;
  readonly nats?: BrokerWithState;
  readonly kafka?: BrokerWithState;
}

/** What is known of the member of a Cyoda server. */
export interface MemberWithState {
  readonly state: MemberState;
}

type WatchedEngine = Pick<Engine, 'get' | 'stats'>;
type Step = 'starting' | 'started' | 'stopping';

const PING_MS = 2000;
const PING_FOR_MS = 1000;
/** The inbox is measured once a minute: what was said is true for a while. */
const INBOX_FOR_MS = 180_000;
const writes = new Set(['insert', 'change', 'claim', 'settle', 'renew', 'append', 'writeState']);
const unwritable = new Set(['STORE_READ_ONLY', 'STORE_FULL']);
/** Never a task: only whether the store answers. */
const NOBODY = '00000000-0000-0000-0000-000000000000';
const NOWHERE = { kind: 'queue', address: 'redrive.health' };

/**
 * Whether this instance can do its work, and what is wrong. `started`, `store`, `broker`, `nats`, `kafka` and `gateway` make it not ready. `sources`,
 * `outbox`, `audit`, `clock`, `inbox`, `routing`, `notifications` and `cyoda` only warn: another instance would be no better, and requests are served all
 * the same, so traffic must not be taken away for it.
 */
export class HealthChecks implements Health {
  readonly #clock: Clock;
  #step: Step = 'starting';
  #engine: WatchedEngine | undefined;
  #brokers: WatchedBrokers = {};
  #member: MemberWithState | undefined;
  #routing: RoutingWithState | undefined;
  #notifications: NotificationsWithState | undefined;
  #inbox: { atMs: number; isFull: boolean; open: number; maxItems: number } | undefined;
  /** Why the last write was not taken. */
  #unwritable: string | undefined;
  #ping: Promise<string | undefined> | undefined;
  #pinged: { atMs: number; why: string | undefined } | undefined;

  constructor({ clock }: { clock: Clock }) {
    this.#clock = clock;
  }

  watch(
    engine: WatchedEngine,
    brokers: WatchedBrokers = {},
    member?: MemberWithState,
    routing?: RoutingWithState,
    notifications?: NotificationsWithState,
  ): void {
    this.#notifications = notifications;
    this.#engine = engine;
    this.#routing = routing;
    this.#brokers = brokers;
    this.#member = member;
  }

  started(): void {
    if (this.#step === 'starting') this.#step = 'started';
  }

  stopping(): void {
    this.#step = 'stopping';
  }

  engineEvent(event: EngineEvent): void {
    if (event.type !== 'inboxFilling' && event.type !== 'inboxFull') return;
    const { open, maxItems } = event;
    const isFull = event.type === 'inboxFull';
    this.#inbox = { atMs: this.#clock.monotonic(), isFull, open, maxItems };
  }

  /** A store may answer, and take nothing: after a failover to a standby, or on a full disk. */
  stored(operation: string, error: unknown): void {
    if (!writes.has(operation)) return;
    const isFault = isEngineError(error) && unwritable.has(error.code);
    this.#unwritable = isFault ? error.message : undefined;
  }

  async ready(): Promise<Readiness> {
    const { rabbitmq, nats, kafka } = this.#brokers;
    const checks = [
      this.#startedCheck(),
      await this.#storeCheck(),
      ...(rabbitmq ? [brokerCheck('broker', rabbitmq)] : []),
      ...(nats ? [brokerCheck('nats', nats)] : []),
      ...(kafka ? [brokerCheck('kafka', kafka)] : []),
      ...this.#statsChecks(),
      this.#inboxCheck(),
      ...(this.#member ? [memberCheck(this.#member)] : []),
      ...(this.#routing ? [troublesCheck('routing', this.#routing)] : []),
      // A rollout must stop here: what comes in by the gateway would all be refused.
      ...(this.#routing?.gatewayTrouble === undefined
        ? []
        : [check('gateway', this.#routing.gatewayTrouble)]),
      ...(this.#notifications ? [troublesCheck('notifications', this.#notifications)] : []),
    ];
    return { ready: checks.every(({ ok }) => ok), checks };
  }

  #startedCheck(): Check {
    const details = {
      starting: 'It has not started yet: the store was not reached so far.',
      started: undefined,
      stopping: 'It stops: what runs is brought to its end, nothing new is begun.',
    };
    return check('started', details[this.#step]);
  }

  async #storeCheck(): Promise<Check> {
    const known = this.#pinged;
    if (known && this.#clock.monotonic() - known.atMs < PING_FOR_MS) {
      return check('store', known.why ?? this.#unwritable);
    }
    this.#ping ??= this.#pingStore().finally(() => (this.#ping = undefined));
    const why = await this.#ping;
    return check('store', why ?? this.#unwritable);
  }

  /** Why the store is not well. */
  async #pingStore(): Promise<string | undefined> {
    if (!this.#engine) return 'There is no store yet.';
    let timer: unknown;
    const limit = new Promise<string>((resolve) => {
      const late = () => resolve(`It gave no answer within ${PING_MS} ms. Look at its load.`);
      timer = this.#clock.setTimer(late, PING_MS, true);
    });
    const answer = this.#engine.get(NOBODY, NOWHERE).then(() => undefined, reasonOf);
    const why = await Promise.race([answer, limit]);
    this.#clock.clearTimer(timer);
    this.#pinged = { atMs: this.#clock.monotonic(), why };
    return why;
  }

  #statsChecks(): Check[] {
    if (!this.#engine) return [];
    const { sources, outboxStuck, auditDropped, clockSkewMs = 0 } = this.#engine.stats();
    const stopped = sources.filter(({ state, why }) => state === 'stopped' || why !== undefined);
    const whys = stopped.map(({ source, why }) => `${source}: ${why ?? 'it stopped.'}`);
    return [
      warning('sources', whys.length > 0 && withoutCredentials(whys.join(' '))),
      warning(
        'outbox',
        outboxStuck > 0 &&
          `${outboxStuck} review messages could not be published so far, and are tried again. Look at the broker and its review queue.`,
      ),
      warning(
        'audit',
        auditDropped > 0 &&
          `${auditDropped} events of the audit trail were lost since the start: its sink did not take them.`,
      ),
      warning('clock', Math.abs(clockSkewMs) > MAX_SKEW_MS && skewSentence(clockSkewMs)),
    ];
  }

  #inboxCheck(): Check {
    const said = this.#inbox;
    if (!said || this.#clock.monotonic() - said.atMs > INBOX_FOR_MS) return check('inbox');
    const { isFull, open, maxItems } = said;
    const what = isFull ? 'It is full' : 'It is filling up';
    return warning(
      'inbox',
      `${what}: ${open} open items, ${maxItems} is the limit. Nothing open is deleted: replay, resolve or discard.`,
    );
  }
}

function brokerCheck(name: string, { state: { state, why } }: BrokerWithState): Check {
  // Connected, it says what of its queues and exchanges is not as it should be: no other instance would fare better.
  if (state === 'connected') return warning(name, why !== undefined && withoutCredentials(why));
  const because = why === undefined ? '' : `: ${inServiceWords(why)}`;
  const what = state === 'connecting' ? 'Not connected' : `The connection is ${state}`;
  return check(name, `${what}${because}`);
}

/** A Cyoda server that is away makes nothing else worse: it asks other members meanwhile. */
function memberCheck({ state: { status, trouble } }: MemberWithState): Check {
  if (status === 'joined') return warning('cyoda', false);
  const why = trouble === undefined ? '' : ` ${trouble.code}: ${trouble.message}`;
  return warning('cyoda', withoutCredentials(`The member is not joined (${status}).${why}`));
}

/** On every instance alike: a bad policy keeps the last good one, and what cannot be delivered waits. */
function troublesCheck(name: string, { troubles }: { troubles: readonly string[] }): Check {
  return warning(name, troubles.length > 0 && withoutCredentials(troubles.join(' ')));
}

/** Not well where there is something to say. */
function check(name: string, detail?: string): Check {
  return detail === undefined
    ? { name, ok: true }
    : { name, ok: false, detail: withoutCredentials(detail) };
}

function warning(name: string, detail: string | false): Check {
  return detail === false ? { name, ok: true } : { name, ok: true, detail };
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
