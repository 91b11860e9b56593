/** Settings become a store, a broker, deliveries and an engine. Only what is needed is loaded. */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import {
  type AuditSink,
  createEngine,
  type Engine,
  type EngineOptions,
  type InboxOptions,
  type Store,
} from '@redrive/engine';
import type { HttpOptions } from '@redrive/engine/http';
import type { KafkaBroker } from '@redrive/engine/kafka';
import type { NatsBroker } from '@redrive/engine/nats';
import type { RabbitBroker } from '@redrive/engine/rabbitmq';
import { type Clock, type IdempotencyStore, presets } from 'redrive';
import { systemClock } from 'redrive/internal';
import { createCriteria, type Criteria } from './criteria/index.ts';
import { CRITERION } from './criteria/review-item.ts';
import type { ServiceGateway } from './gateway/index.ts';
import { auditSinkOf } from './observe/audit-sink.ts';
import { createServiceNotifications, type ServiceNotifications } from './notifications/index.ts';
import type { WiringOptions } from './wiring-options.ts';
import { createObservers, type Observers } from './observe/index.ts';
import { deadLetterReader } from './scheduler/dead-letter-reader.ts';
import type { CyodaMember } from './cyoda/member.ts';
import { createRouting, type Routing } from './routing/index.ts';
import type { RouteResponder } from './routing/nats/responder.ts';
import { oversizedMessage } from './scheduler/oversized.ts';
import { DEAD_LETTER_QUEUE, ownQueues, topologyOf } from './scheduler/queues.ts';
import { retryReader } from './scheduler/retry-reader.ts';
import { reviewOf } from './scheduler/review-message.ts';
import { databaseFile } from './settings/data-dir.ts';
import { allowOf } from './settings/join.ts';
import type { Settings } from './settings/settings.ts';
import { namingSettings } from './service-words.ts';
import { idempotencyOf, KeyPruner } from './upkeep/idempotency-keys.ts';

/** What a service is made of. Nothing of it is open yet. */
export interface Wired {
  instance: string;
  /** As it is, without those who look on: for what is done before the engine starts. */
  store: Store;
  brokers: Brokers;
  observers: Observers;
  engine: Engine;
  criteria: Criteria;
  routing: Routing;
  /** Absent without ROUTING_GATEWAY. */
  gateway: ServiceGateway | undefined;
  /** Absent without NOTIFICATIONS. */
  notifications: ServiceNotifications | undefined;
  idempotency: IdempotencyStore;
  keyPruner: KeyPruner;
  /** Absent without CYODA_URL. */
  member?: CyodaMember;
  /** Absent without NATS_URL or ROUTING_DIR. */
  responder: RouteResponder | undefined;
}

/** Those that are configured, each for destinations of its own kind: `queue:NAME`, `nats:SUBJECT` and `kafka:TOPIC`. */
interface Brokers {
  rabbitmq?: RabbitBroker;
  nats?: NatsBroker;
  kafka?: KafkaBroker;
}

/** A container is killed ten seconds after it was asked to stop: what runs has to be over before. */
const GRACE_MS = 5000;
const DAY_MS = 86_400_000;

export async function wire(settings: Settings, options: WiringOptions = {}): Promise<Wired> {
  const instance = settings.instance ?? madeUpName();
  const observers = createObservers({ settings, instance, ...options });
  const store = await storeOf(settings, observers);
  const brokers = await brokersOf(settings, instance, observers);
  const delivery = observers.delivery(await httpOf(settings));
  const { log, metrics } = observers;
  const { clock = systemClock } = options;
  const criteria = createCriteria({ settings, instance, clock, log, counts: metrics.criteria });
  const sink = await auditSinkOf(settings, `${settings.serviceName} ${instance}`, log);
  const brokersByKind = new Map(
    Object.values(brokers).map((broker: RabbitBroker | NatsBroker | KafkaBroker) => [
      broker.kind,
      observers.broker(broker),
    ]),
  );
  const notifications = await createServiceNotifications({
    settings,
    clock,
    log,
    counts: metrics.notifications,
    store,
    http: await laneDeliveries(settings, observers),
    brokers: brokersByKind,
    ...(options.notificationTimes ? { times: options.notificationTimes } : {}),
  });
  const replays = notifications ? [observers.delivery(notifications.delivery)] : [];
  const engine = createEngine({
    ...observers.hooks,
    ...engineOptions(settings, sink && observers.auditSink(sink)),
    inbox: { ...inboxOptions(settings), ...observers.hooks.inbox },
    instance,
    store: observers.store(store),
    deliveries: [delivery, observers.delivery(criteria.delivery), ...replays],
    brokers: [...brokersByKind.values()],
    ...(options.clock ? { clock: options.clock } : {}),
  });
  await consume(settings, brokers, engine, observers);
  const member = await memberOf(settings, observers, criteria, clock);
  const gateway = await gatewayOf(settings, observers, clock);
  const routing = await createRouting({
    settings,
    optionsFor: gateway && ((policy) => gateway.optionsFor(policy)),
    log,
    clock,
    counts: metrics.routing,
    audit: settings.audit ? (entry) => engine.audit(entry) : undefined,
  });
  const idempotency = await idempotencyOf(settings, (what, err) => log.error({ err }, what));
  const keyPruner = new KeyPruner({ store: idempotency, clock, log });
  const optional = member ? { member } : {};
  if (routing.routers) gateway?.attach(routing.routers);
  const responder = await responderOf(settings, instance, observers, routing, clock);
  const troubled = {
    get troubles() {
      const { trouble } = responder ?? {};
      const own = trouble === undefined ? [] : [trouble];
      const known = routing.troubles;
      // A policy that waits for providers has said so already.
      const more = (gateway?.troubles ?? []).filter((one) => !known.join(' ').includes(one));
      return [...known, ...more, ...own];
    },
    get gatewayTrouble() {
      return gateway && routing.gatewayTrouble;
    },
  };
  observers.watch({
    engine,
    brokers,
    ...optional,
    ...(routing.routers ? { routing: troubled } : {}),
    ...(notifications ? { notifications } : {}),
  });
  notifications?.attach(engine);
  criteria.attach(engine);
  return {
    instance,
    store,
    brokers,
    observers,
    engine,
    criteria,
    routing,
    gateway,
    notifications,
    idempotency,
    keyPruner,
    responder,
    ...optional,
  };
}

function madeUpName(): string {
  const host = hostname().replace(/[^\w.-]/g, '-');
  return `${host.slice(0, 50)}-${randomBytes(3).toString('hex')}`;
}

async function storeOf(settings: Settings, { log }: Observers): Promise<Store> {
  const { databaseUrl } = settings;
  if (databaseUrl === undefined) {
    const { sqlite } = await import('@redrive/engine/sqlite');
    return sqlite(databaseFile(settings), { onFault: (what, err) => log.error({ err }, what) });
  }
  const { postgres } = await import('@redrive/engine/postgres');
  return postgres({ url: databaseUrl, onFault: (what, err) => log.warn({ err }, what) });
}

/** One who only answers requests leaves the brokers to the others. */
async function brokersOf(
  settings: Settings,
  instance: string,
  observers: Observers,
): Promise<Brokers> {
  const { rabbitmqUrl: url, natsUrl, kafkaBrokers, only, serviceName } = settings;
  const brokers: Brokers = {};
  if (only === 'api') return brokers;
  const name = `${serviceName} ${instance}`;
  if (url !== undefined) {
    const { rabbitmq } = await import('@redrive/engine/rabbitmq');
    const { log } = observers.hooks;
    brokers.rabbitmq = rabbitmq({ url, topology: topologyOf(settings), name, log });
  }
  if (natsUrl !== undefined) {
    const { natsBroker } = await import('./nats-wiring.ts');
    brokers.nats = natsBroker(settings, name, observers);
  }
  if (kafkaBrokers !== undefined) {
    const { kafkaBroker } = await import('./kafka-wiring.ts');
    brokers.kafka = await kafkaBroker(settings, name, observers);
  }
  return brokers;
}

/** A member answers requests, so one who only takes in or delivers leaves that to the others. */
async function memberOf(
  settings: Settings,
  { log, metrics }: Observers,
  { evaluator }: Criteria,
  clock: Clock,
): Promise<CyodaMember | undefined> {
  const { cyodaUrl, only } = settings;
  if (cyodaUrl === undefined || (only !== undefined && only !== 'api')) return undefined;
  const { memberFor } = await import('./cyoda/index.ts');
  return memberFor(cyodaUrl, settings, { evaluator, clock, log, observer: metrics.cyoda });
}

/** The gateway answers requests, so one who only takes in or delivers leaves that to the others. */
async function gatewayOf(
  settings: Settings,
  { log, metrics }: Observers,
  clock: Clock,
): Promise<ServiceGateway | undefined> {
  const { routingDir: dir, routingGateway, only } = settings;
  if (dir === undefined || routingGateway === 'off') return undefined;
  if (only !== undefined && only !== 'api') return undefined;
  const { createServiceGateway } = await import('./gateway/index.ts');
  return createServiceGateway({ settings, dir, log, clock, counts: metrics.gateway });
}

/** It answers requests, so one who only takes in or delivers leaves that to the others. */
async function responderOf(
  settings: Settings,
  instance: string,
  { log }: Observers,
  routing: Routing,
  clock: Clock,
): Promise<RouteResponder | undefined> {
  const { natsUrl, routingDir, natsRouting, only, serviceName } = settings;
  if (natsUrl === undefined || routingDir === undefined || natsRouting === 'off') return undefined;
  if (only !== undefined && only !== 'api') return undefined;
  const { createRouteResponder } = await import('./routing/nats/responder.ts');
  const name = `${serviceName} ${instance} routing`;
  return createRouteResponder({ settings, name, routing, log, clock });
}

async function httpOf(settings: Settings, limits: HttpOptions = {}) {
  const { http } = await import('@redrive/engine/http');
  const { secrets } = settings;
  return namingSettings(http({ allow: allowOf(settings), public: false, secrets, ...limits }));
}

/** Retries of notifications take connections from nobody, and those of one lane none from the other. */
async function laneDeliveries(settings: Settings, observers: Observers) {
  const { notificationConcurrency: atOnce } = settings;
  const limits = { maxConnectionsPerOrigin: atOnce, maxConnections: atOnce };
  const [urgent, bulk] = [await httpOf(settings, limits), await httpOf(settings, limits)];
  return { urgent: observers.delivery(urgent), bulk: observers.delivery(bulk) };
}

function inboxOptions({ inboxRetentionDays, inboxMaxItems }: Settings): InboxOptions {
  return { retention: inboxRetentionDays * DAY_MS, maxItems: inboxMaxItems };
}

function engineOptions(settings: Settings, sink: AuditSink | undefined): Partial<EngineOptions> {
  const { policy, policies, lane, lanes, concurrency, maxPayloadBytes, pollMs } = settings;
  const { audit, auditRetentionDays, only, rabbitmqUrl } = settings;
  const kept = {
    ...(sink ? { sink } : {}),
    ...(auditRetentionDays === 0 ? {} : { retention: auditRetentionDays * DAY_MS }),
  };
  return {
    policy,
    policies,
    lane: { ...(concurrency === undefined ? {} : { concurrency }), ...lane },
    lanes,
    maxPayloadBytes,
    poll: pollMs,
    audit: audit && kept,
    grace: GRACE_MS,
    dispatch: only === undefined || only === 'dispatch',
    // Without a broker nobody could ever take the messages out of the outbox.
    ...(rabbitmqUrl === undefined ? {} : { review: queueReview(settings) }),
  };
}

/** An entity is no message of any queue: its people hear of it by the routes of the criteria. */
function queueReview(settings: Settings): NonNullable<EngineOptions['review']> {
  const review = reviewOf(reviewing(settings));
  return (task, item) => (task.destination.kind === CRITERION ? undefined : review(task, item));
}

function reviewing({ manualReviewQueue }: Settings) {
  return { reviewQueue: manualReviewQueue };
}

async function consume(
  settings: Settings,
  { rabbitmq, nats, kafka }: Brokers,
  engine: Engine,
  observers: Observers,
): Promise<void> {
  if (settings.only === 'dispatch') return;
  const { maxAttempts = presets.scheduler.maxAttempts } = settings.policy;
  const defaultMaxRetries = maxAttempts - 1;
  if (rabbitmq) await consumeQueues(settings, rabbitmq, engine, observers, defaultMaxRetries);
  // Only RabbitMQ has a queue of what needs review.
  const reading = { ...(rabbitmq ? reviewing(settings) : {}), defaultMaxRetries };
  if (nats) {
    const { consumeNats } = await import('./nats-wiring.ts');
    consumeNats(settings, nats, engine, observers, reading);
  }
  if (!kafka) return;
  const { consumeKafka } = await import('./kafka-wiring.ts');
  consumeKafka(settings, kafka, engine, observers, reading);
}

async function consumeQueues(
  settings: Settings,
  broker: RabbitBroker,
  engine: Engine,
  observers: Observers,
  defaultMaxRetries: number,
): Promise<void> {
  const { retryQueue, deadLetterExchange, maxPayloadBytes } = settings;
  const { carriedContext: carry } = await import('@redrive/engine/rabbitmq');
  const reading = { ...reviewing(settings), maxPayloadBytes, carry, nowMs: () => Date.now() };
  const retries = { ...reading, source: retryQueue, defaultMaxRetries };
  const oversized = (source: string) =>
    oversizedMessage({ source, carry, isDeadLetter: source === DEAD_LETTER_QUEUE });
  engine.consume(
    observers.source({
      broker,
      source: retryQueue,
      read: retryReader(retries),
      oversized: oversized(retryQueue),
    }),
  );
  if (deadLetterExchange === undefined) return;
  const { unclassifiedAs, rules } = settings;
  const source = DEAD_LETTER_QUEUE;
  const dead = { ...reading, source, unclassifiedAs, rules, ownQueues: ownQueues(settings) };
  engine.consume(
    observers.source({
      broker,
      source,
      read: deadLetterReader(dead),
      oversized: oversized(source),
    }),
  );
}
