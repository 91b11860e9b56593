/** The notifications of the service: records, lanes and destinations by its settings. Only what is needed is loaded. */
import {
  type Broker,
  type Consumer,
  type DelayQueue,
  type Delivery,
  type Engine,
  type Store,
  storeDelayQueue,
} from '@redrive/engine';
import {
  createNotifications,
  type Lane,
  lanes,
  type NotificationOptions,
  type NotificationRepository,
  type Notifications,
  type NotificationStats,
  queueNames,
  type Sinks,
} from '@redrive/notifications';
import type { Logger } from 'pino';
import type { Clock, Policy } from 'redrive';
import type { NotificationCounts } from '../observe/metrics/notification-counts.ts';
import { databaseFile } from '../settings/data-dir.ts';
import { brokerSettingOf } from '../settings/notifications.ts';
import type { Settings } from '../settings/settings.ts';
import { DeliveryTrouble } from './delivery-trouble.ts';
import type { NotificationTimes } from '../wiring-options.ts';
import { deliverTo, destinationOf, keyFor } from './destination.ts';
import { addItem, NOTIFICATION, replayDelivery } from './inbox.ts';
import { consumeReports, readReport } from './intake.ts';
import { storeTime } from './store-time.ts';

interface NotificationParts {
  settings: Settings;
  clock: Clock;
  log: Logger;
  counts: NotificationCounts;
  store: Store;
  http: Readonly<Record<Lane, Delivery>>;
  /** By the kind of their destinations. */
  brokers: ReadonlyMap<string, Broker>;
  times?: Partial<NotificationTimes>;
}

export interface ServiceNotifications {
  readonly service: Notifications;
  /** Where replays of permanent failures go. */
  readonly delivery: Delivery;
  /** What is wrong, in sentences. */
  readonly troubles: readonly string[];
  /** Connects the engine, which keeps the inbox. */
  attach(engine: Engine): void;
  start(): Promise<void>;
  stop(): Promise<void>;
}

const DAY_MS = 86_400_000;
const DELIVER_MS = 30_000;
const priorities = ['critical', 'high', 'medium', 'low'] as const;

/** Undefined while NOTIFICATIONS is off. */
export async function createServiceNotifications(
  parts: NotificationParts,
): Promise<ServiceNotifications | undefined> {
  const { settings, clock, log, counts, http, brokers, times = {} } = parts;
  if (settings.notifications === 'off') return undefined;
  let engine: Engine | undefined;
  let consumer: Consumer | undefined;
  let isStopping = false;
  const { deviceServiceUrl: url, notificationDelivery, only } = settings;
  const sending =
    notificationDelivery === undefined ? undefined : new DeliveryTrouble(notificationDelivery, log);
  const {
    deliverTimeoutMs = DELIVER_MS,
    queueLeaseMs: _,
    sessionTimeoutMs: __,
    ...shorter
  } = times;
  const service = createNotifications({
    repository: await repositoryOf(parts),
    queues: await queuesOf(parts),
    deliver: deliverTo(notificationDelivery, {
      http,
      brokers,
      clock,
      timeoutMs: deliverTimeoutMs,
      ...(sending ? { trouble: sending } : {}),
    }),
    deliverTimeoutMs: deliverTimeoutMs + 1000,
    ...shorter,
    ...sinksOf(parts, () => engine),
    policies: policiesOf(settings),
    existing: settings.notificationExisting,
    concurrency: settings.notificationConcurrency,
    retentionMs: settings.notificationRetentionDays * DAY_MS,
    consume: only === undefined || only === 'dispatch',
    seed: () => engine?.stats().seed ?? 0,
    clock: storeTime(clock, () => engine?.stats().clockSkewMs),
    log,
    on: (event) => counts.heard(event),
    ...(settings.audit ? { audit: (entry) => engine?.audit(entry) } : {}),
    ...(url === undefined
      ? {}
      : { devices: { url, onAnswer: (outcome) => counts.device(outcome) } }),
  });
  counts.running = () => service.stats().running;
  return {
    service,
    delivery: replayDelivery(service, readReport),
    get troubles() {
      const nowhere = 'NOTIFICATION_DELIVERY is not set: due retries wait until you set it.';
      return [
        ...notReached(service.stats(), settings),
        ...(notificationDelivery === undefined ? [nowhere] : []),
        ...(sending?.trouble === undefined ? [] : [sending.trouble]),
      ];
    },
    attach: (to) => {
      engine = to;
    },
    start: async () => {
      for (const lane of lanes) watchLane(lane, service, engine!, log);
      const takeIn = async () => {
        const taking = await intakeOf(parts, service, engine!);
        if (isStopping) await taking?.stop();
        else consumer = taking;
      };
      // Side by side: reports need no queue, since what cannot be scheduled now waits in the record.
      await Promise.all([service.start(), takeIn()]);
    },
    stop: async () => {
      isStopping = true;
      await consumer?.stop();
      await service.stop();
      await Promise.all([http.urgent.close?.(), http.bulk.close?.()]);
    },
  };
}

/** What cannot be used at present, and why, by the setting that says where it is. */
function notReached(
  { isOpen, trouble, lanes: states }: NotificationStats,
  { mongodbUrl, databaseUrl, redisUrl, kafkaBrokers }: Settings,
): string[] {
  const store = databaseUrl === undefined ? 'the file of the store' : 'DATABASE_URL';
  const places = {
    records: mongodbUrl === undefined ? store : 'MONGODB_URL',
    urgent: redisUrl === undefined ? store : 'REDIS_URL',
    bulk: kafkaBrokers === undefined ? store : 'KAFKA_BROKERS',
  };
  const why = (place: string, reason = 'No answer yet.') => `${place} cannot be used. ${reason}`;
  if (!isOpen) return [`Notifications have not started: ${why(places.records, trouble)}`];
  const found =
    trouble === undefined ? [] : [`Notifications wait: ${why(places.records, trouble)}`];
  for (const lane of lanes) {
    const { isOpen: isLaneOpen, trouble: reason } = states[lane];
    const does = isLaneOpen ? 'waits' : 'has not started';
    if (!isLaneOpen || reason !== undefined)
      found.push(`The lane notification:${lane} ${does}: ${why(places[lane], reason)}`);
  }
  return found;
}

/** An operator pauses and resumes it as every other lane, for all instances. */
function watchLane(lane: Lane, service: Notifications, engine: Engine, log: Logger): void {
  engine.watchLane(`${NOTIFICATION}:${lane}`, {
    running: () => service.stats().lanes[lane].running,
    paused: (isPaused) => {
      const failed = (err: unknown) =>
        log.warn({ err, lane }, 'a lane of notifications could not be paused or resumed');
      void (isPaused ? service.pause(lane) : service.resume(lane)).catch(failed);
    },
  });
}

async function repositoryOf({
  settings,
  log,
  counts,
}: NotificationParts): Promise<NotificationRepository> {
  const { databaseUrl, mongodbUrl } = settings;
  const onUnreadable = (err: Error) => {
    counts.heard({ type: 'unreadable', count: 1 });
    log.error({ err }, 'a stored notification cannot be read');
  };
  if (mongodbUrl !== undefined) {
    const { mongodbNotifications } = await import('@redrive/notifications/mongodb');
    return mongodbNotifications({ url: mongodbUrl, onUnreadable });
  }
  if (databaseUrl !== undefined) {
    const { postgresNotifications } = await import('@redrive/notifications/postgres');
    return postgresNotifications({ url: databaseUrl, onUnreadable });
  }
  const { sqliteNotifications } = await import('@redrive/notifications/sqlite');
  return sqliteNotifications(databaseFile(settings), { onUnreadable });
}

/** Each lane has a queue of its own, so that a flood in the one is none in the other. */
async function queuesOf(
  parts: NotificationParts,
): Promise<{ urgent: DelayQueue; bulk: DelayQueue }> {
  const { store, settings, clock, log, times: { queueLeaseMs, sessionTimeoutMs } = {} } = parts;
  const { redisUrl: url, kafkaBrokers, notificationPrefix } = settings;
  const names = queueNames(notificationPrefix);
  const lease = queueLeaseMs === undefined ? {} : { leaseMs: queueLeaseMs };
  const inStore = (lane: Lane) =>
    storeDelayQueue(store, { name: names.store[lane], clock, log, ...lease });
  const inRedis = async (to: string) => {
    const { redisDelayQueue } = await import('@redrive/engine/redis');
    return redisDelayQueue({ url: to, prefix: names.redis.urgent, clock, log, ...lease });
  };
  const inKafka = async () => {
    const { kafkaBulkQueue } = await import('../kafka-wiring.ts');
    return kafkaBulkQueue(settings, {
      prefix: names.kafka.bulk,
      clock,
      log,
      ...(sessionTimeoutMs === undefined ? {} : { sessionTimeout: sessionTimeoutMs }),
    });
  };
  return {
    urgent: url === undefined ? inStore('urgent') : await inRedis(url),
    bulk: kafkaBrokers === undefined ? inStore('bulk') : await inKafka(),
  };
}

/** A policy of the file that is called `notification.high` changes the preset of that name. */
function policiesOf({ policies }: Settings): Partial<Record<(typeof priorities)[number], Policy>> {
  const own = priorities.flatMap((priority) => {
    const policy = policies[`notification.${priority}`];
    return policy ? [[priority, policy] as const] : [];
  });
  return Object.fromEntries(own);
}

function sinksOf(
  parts: NotificationParts,
  engine: () => Engine | undefined,
): Pick<NotificationOptions, keyof Sinks | 'publishedElsewhere'> {
  const { notificationDeadLetters, notificationEvents } = parts.settings;
  const deadLetter = publisherTo(notificationDeadLetters, parts);
  const event = publisherTo(notificationEvents, parts);
  return {
    inbox: async (item) => {
      const to = engine();
      if (!to) throw new Error('The inbox is not open yet.');
      await addItem(to, item);
    },
    ...(deadLetter ? { deadLetter: (letter) => deadLetter(letter.notification_id, letter) } : {}),
    ...(event ? { event: (body) => event(body.notification_id, body) } : {}),
    publishedElsewhere: elsewhereOf(parts.settings),
  };
}

/** One who only answers requests has no brokers, and must not forget what the others can publish. */
function elsewhereOf(settings: Settings): ('dead_letter' | 'event')[] {
  const { only, notificationDeadLetters, notificationEvents } = settings;
  const isPublished = (place: string) =>
    only === 'api' && brokerSettingOf(place, settings)?.isGiven === true;
  return [
    ...(isPublished(notificationDeadLetters) ? (['dead_letter'] as const) : []),
    ...(isPublished(notificationEvents) ? (['event'] as const) : []),
  ];
}

const PUBLISH_MS = 5000;

/** Undefined where there is no such broker. Rejects unless the broker has confirmed. */
function publisherTo(
  text: string,
  { brokers }: NotificationParts,
): ((key: string, body: object) => Promise<void>) | undefined {
  const { kind, address } = destinationOf(text);
  const broker = brokers.get(kind);
  if (!broker) return undefined;
  return async (key, body) => {
    const payload = Buffer.from(JSON.stringify(body));
    const headers = { 'x-notification-id': key };
    const message = {
      address,
      payload,
      headers,
      contentType: 'application/json',
      ...keyFor(key),
    };
    const published = await broker.publish([message], { timeoutMs: PUBLISH_MS })[0]!;
    if (published.outcome === 'confirmed') return;
    const why = published.failure?.message ?? published.outcome;
    throw new Error(`${text} did not accept a message: ${why}`);
  };
}

async function intakeOf(
  { settings, brokers, log, clock, counts }: NotificationParts,
  service: Notifications,
  engine: Engine,
): Promise<Consumer | undefined> {
  const { kind, address: source } = destinationOf(settings.notificationReports);
  const broker = brokers.get(kind);
  if (!broker || settings.only === 'dispatch' || settings.only === 'api') return undefined;
  return consumeReports({
    broker,
    source,
    service,
    engine,
    log,
    clock,
    maxPayloadBytes: settings.maxPayloadBytes,
    counted: (result) => counts.reported(result),
  });
}
