import type { DefinedPolicy, Policy } from 'redrive';
import type { PolicyLayer } from 'redrive/internal';
import { BrokerDelivery } from './broker-delivery.ts';
import {
  type EngineOptions,
  type EngineSettings,
  isOn,
  type LaneOptions,
  laneSettings,
} from '../engine-options.ts';
import { EngineError } from '../errors.ts';
import type { GivenHandler } from './handler-options.ts';
import { HandlerDelivery, type RegisteredHandler } from './handlers.ts';
import { OnceRunner, type OnceSettings } from './once.ts';
import type { Host } from '../host.ts';
import type { LaneSettings } from '../lanes/lanes.ts';
import { layered } from './policies.ts';
import type { Broker } from '../ports/broker.ts';
import type { Delivery } from '../ports/delivery.ts';
import { laneOf } from '../model/task.ts';

/** A broker takes thousands a second, where a receiver that works on what it gets has enough with a few. */
const BROKER_CONCURRENCY = 1000;

/** Where this instance can deliver to, and by which settings. */
export class Directory {
  readonly handlers = new Map<string, RegisteredHandler>();
  readonly #deliveries = new Map<string, Delivery>();
  readonly #brokers: readonly Broker[];
  readonly #ofAll: LaneOptions;
  readonly #ofLane: Map<string, LaneOptions>;
  /** Of the engine and of all lanes. */
  readonly #policyLayers: readonly PolicyLayer[];
  readonly #policy: DefinedPolicy;
  readonly #ofHandler = new Map<string, Policy>();
  /** Of lanes that have options of their own. */
  readonly #policies = new Map<string, DefinedPolicy>();
  readonly #settings: EngineSettings;
  readonly #shared: { broker?: LaneSettings; other?: LaneSettings } = {};
  readonly #once: OnceRunner | undefined;

  constructor(
    options: EngineOptions,
    settings: EngineSettings,
    host: Host,
    keyAudit?: OnceSettings['audit'],
  ) {
    this.#settings = settings;
    const keys = options.idempotency ?? options.store.idempotency;
    if (keys) {
      const { leaseMs, recordsKeptMs: keptMs } = settings;
      this.#once = new OnceRunner(keys, { leaseMs, keptMs, clock: host.clock, audit: keyAudit });
    }
    this.#brokers = options.brokers ?? [];
    this.#ofAll = options.lane ?? {};
    this.#ofLane = new Map(Object.entries(options.lanes ?? {}));
    this.#policyLayers = layersOf([
      [options.policy, 'the policy of the engine'],
      [this.#ofAll.policy, 'the policy of all lanes'],
    ]);
    this.#policy = layered(this.#policyLayers);
    // Faults are said where they were made, not when the first task meets them.
    laneSettings(this.#ofAll, settings.leaseMs, undefined, 'The option `lane`');
    for (const [lane, own] of this.#ofLane) {
      this.#policies.set(lane, layered(this.policyLayers(lane)));
      laneSettings(own, settings.leaseMs, undefined, `The lane '${lane}'`);
    }
    const own = new HandlerDelivery(this.handlers, host.log, () => host.clock.now());
    const brokered = this.#brokers.map((broker) => new BrokerDelivery(broker, host));
    for (const one of [...(options.deliveries ?? []), ...brokered, own]) {
      this.#deliveries.set(one.kind, one);
    }
  }

  /** What runs idempotent handlers. Undefined: there is none of them. */
  get once(): OnceRunner | undefined {
    return [...this.handlers.values()].find(({ once }) => once)?.once;
  }

  /** The lane of the handler that was added. */
  add(name: string, { handler, idempotent, lane }: GivenHandler): string {
    if (this.handlers.has(name)) {
      throw new EngineError('INVALID_ENGINE', `There is a handler '${name}' already.`);
    }
    const once = isOn('idempotent', idempotent) ? this.#onceFor(name) : undefined;
    const laneName = laneOf({ kind: 'handler', address: name });
    const { policy, ...limits } = lane;
    const whole = layered(this.policyLayers(laneName, policy));
    laneSettings(limits, this.#settings.leaseMs, undefined, `The handler '${name}'`);
    // What the engine's own options say of this lane goes before what the handler says.
    this.#ofLane.set(laneName, { ...limits, ...this.#ofLane.get(laneName) });
    if (policy !== undefined) this.#ofHandler.set(laneName, policy);
    this.#policies.set(laneName, whole);
    this.handlers.set(name, { ...handler, once });
    return laneName;
  }

  deliveryOf(kind: string): Delivery | undefined {
    return this.#deliveries.get(kind);
  }

  brokerOf(kind: string): Broker | undefined {
    return this.#brokers.find((broker) => broker.kind === kind);
  }

  serves(lane: string): boolean {
    if (lane.startsWith('http://') || lane.startsWith('https://')) {
      return this.#deliveries.has('http');
    }
    const at = lane.indexOf(':');
    const kind = lane.slice(0, at);
    return kind === 'handler' ? this.handlers.has(lane.slice(at + 1)) : this.#deliveries.has(kind);
  }

  /** Whether what is claimed for this lane can be sent now. */
  reachOf(lane: string): () => boolean {
    const broker = this.brokerOf(kindOf(lane));
    return broker ? () => broker.isReady : always;
  }

  /** Calls back when a broker has become ready, or is not any more. Returns the end of it. */
  watch(listener: () => void): () => void {
    const ends = this.#brokers.map((broker) => broker.watch(listener));
    return () => ends.forEach((end) => end());
  }

  settingsOf(lane: string): LaneSettings {
    const own = this.#ofLane.get(lane);
    const isBroker = this.brokerOf(kindOf(lane)) !== undefined;
    if (own) return this.#settingsBy(own, this.policyOf(lane), isBroker);
    // One object for all lanes without options of their own: there may be very many of them.
    const kind = isBroker ? 'broker' : 'other';
    return (this.#shared[kind] ??= this.#settingsBy({}, this.#policy, isBroker));
  }

  policyOf(lane: string): DefinedPolicy {
    return this.#policies.get(lane) ?? this.#policy;
  }

  /** From the engine's to the lane's own; what is nearer goes before what is wider. */
  policyLayers(lane: string, ofHandler = this.#ofHandler.get(lane)): readonly PolicyLayer[] {
    const own = layersOf([
      [ofHandler, `the policy that ${lane} was registered with`],
      [this.#ofLane.get(lane)?.policy, `the policy of the lane ${lane}`],
    ]);
    return [...this.#policyLayers, ...own];
  }

  async open(): Promise<void> {
    for (const broker of this.#brokers) await broker.open();
    // Before handlers hold connections.
    await this.once?.open();
  }

  async close(): Promise<void> {
    for (const broker of this.#brokers) await broker.close();
    for (const delivery of this.#deliveries.values()) await delivery.close?.();
  }

  /** What runs a handler under its idempotency key. */
  #onceFor(name: string): OnceRunner {
    if (this.#once) return this.#once;
    throw new EngineError(
      'NO_IDEMPOTENCY',
      `The handler '${name}' is idempotent, and this store keeps no idempotency keys. Use sqlite(), postgres() or memory(), or give createEngine an idempotency store: { idempotency: redisIdempotency(url) }.`,
    );
  }

  #settingsBy(
    own: LaneOptions,
    { attemptTimeout }: DefinedPolicy,
    isBroker: boolean,
  ): LaneSettings {
    const usual = isBroker ? { concurrency: BROKER_CONCURRENCY } : {};
    const { leaseMs } = this.#settings;
    return laneSettings({ ...usual, ...this.#ofAll, ...own }, leaseMs, attemptTimeout);
  }
}

function layersOf(given: readonly (readonly [Policy | undefined, string])[]): PolicyLayer[] {
  return given.flatMap(([policy, origin]) => (policy === undefined ? [] : [{ policy, origin }]));
}

const always = () => true;

function kindOf(lane: string): string {
  return lane.slice(0, lane.indexOf(':'));
}
