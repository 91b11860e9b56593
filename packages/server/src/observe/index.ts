import type {
  AuditSink,
  Broker,
  Delivery,
  Engine,
  EngineOptions,
  InboxOptions,
  SourceOptions,
  Store,
} from '@redrive/engine';
import type { Clock } from 'redrive';
import { systemClock } from 'redrive/internal';
import type { ServiceContext } from '../service-context.ts';
import type { Settings } from '../settings/settings.ts';
import { CensusTaker } from './metrics/census.ts';
import { Feed } from './events.ts';
import {
  HealthChecks,
  type MemberWithState,
  type NotificationsWithState,
  type RoutingWithState,
  type WatchedBrokers,
} from './health.ts';
import { createLog, engineLog, type LogOutput } from './log/log.ts';
import { LossyOutput } from './log/log-output.ts';
import { ServiceMetrics } from './metrics/metrics.ts';
import { Notices } from './log/notices.ts';
import { auditedSink, auditedStore } from './wrappers/audited-store.ts';
import { observedBroker } from './wrappers/observed-broker.ts';
import { observedDelivery } from './wrappers/observed-delivery.ts';
import { observedSource } from './wrappers/observed-source.ts';
import { RetryAlerts } from './retry-alerts.ts';
import { SkewWatch } from './skew-watch.ts';
import { type StoreTimes, timedStore } from './wrappers/timed-store.ts';
import { Tracing } from './trace/tracing.ts';
import { inboxWebhook, WINDOW_MS } from './webhook.ts';

interface ObserverOptions {
  settings: Settings;
  /** The name of this instance, as the engine has it. */
  instance: string;
  clock?: Clock;
  /** Where the log goes; standard output unless given. */
  logTo?: LogOutput;
}

/**
 * Everything that looks on: made first, then handed to the engine as hooks and wrappers, then told of the engine (wiring.ts), then
 * of its start and end (service.ts).
 */
export interface Observers extends Pick<ServiceContext, 'log' | 'feed' | 'health'> {
  readonly metrics: ServiceMetrics;
  /** Options of the engine. Where the inbox has options of its own, its `onEntry` goes with them. */
  readonly hooks: Required<Pick<EngineOptions, 'log' | 'on'>> & {
    inbox: Pick<InboxOptions, 'onEntry' | 'debounce'>;
  };
  store(store: Store): Store;
  broker(broker: Broker): Broker;
  delivery(delivery: Delivery): Delivery;
  source(source: SourceOptions): SourceOptions;
  /** A sink of the audit trail in place of the store's. */
  auditSink(sink: AuditSink): AuditSink;
  /** Before the start: whose numbers are shown, and whose health. Brokers as they were before they were wrapped. */
  watch(parts: {
    engine: Engine;
    brokers: WatchedBrokers;
    member?: MemberWithState;
    routing?: RoutingWithState;
    notifications?: NotificationsWithState;
  }): void;
  started(): void;
  /** From now on it says that it is not ready. */
  stopping(): void;
  /** Ends what runs in the background. Safe to call again. */
  stop(): void;
}

export function createObservers(options: ObserverOptions): Observers {
  const { settings, instance, clock = systemClock, logTo = process.stdout } = options;
  const output = new LossyOutput(logTo);
  const log = createLog({ ...settings, instance }, output);
  output.onBack = (lines) =>
    log.warn({ lines }, 'lines of this log were lost: its output could not be written');
  const feed = new Feed({ instance, clock });
  const { serviceName, retryRateAlert: perMinute, retryRateWebhookUrl } = settings;
  const teller = { serviceName, instance, clock, log };
  const alerts = new RetryAlerts({ perMinute, url: retryRateWebhookUrl, ...teller });
  const metrics = new ServiceMetrics({
    clock,
    log,
    retryRates: () => alerts.rates(),
    eventReaders: () => feed.readers,
    logLinesLost: () => output.lost,
  });
  const health = new HealthChecks({ clock });
  const tracing = new Tracing();
  const skew = new SkewWatch({ clock, log });
  const census = new CensusTaker({
    clock,
    log,
    counted: (result, tookMs) => metrics.counted(result, tookMs),
  });
  const { inboxWebhookUrl: url } = settings;
  const webhook = url === undefined ? undefined : inboxWebhook({ url, ...teller });
  const { rabbitmqUrl, natsUrl, kafkaBrokers, only } = settings;
  const missing = new Map<string, string>();
  if (rabbitmqUrl === undefined && only === undefined) missing.set('queue', 'RABBITMQ_URL');
  if (natsUrl === undefined && only === undefined) missing.set('nats', 'NATS_URL');
  if (kafkaBrokers === undefined && only === undefined) missing.set('kafka', 'KAFKA_BROKERS');
  const notices = new Notices({ log, missing });
  const parts = { metrics, tracing, clock };

  return {
    log,
    feed,
    metrics,
    health,
    hooks: {
      log: engineLog(log),
      on: (event) => {
        metrics.engineEvent(event);
        feed.add(event);
        health.engineEvent(event);
        notices.engineEvent(event);
      },
      inbox: {
        debounce: WINDOW_MS,
        onEntry: (entry) => {
          notices.entered(entry);
          return webhook?.onEntry(entry);
        },
      },
    },
    store: (store) => {
      const stored: StoreTimes['stored'] = (operation, seconds, failed, error) => {
        metrics.stored(operation, seconds, failed);
        health.stored(operation, error);
      };
      const timed = timedStore(store, { stored }, clock);
      return auditedStore(timed, (events) => alerts.written(events));
    },
    broker: (broker) => observedBroker(broker, parts),
    delivery: (delivery) => observedDelivery(delivery, parts),
    source: (source) => observedSource(source, parts),
    auditSink: (sink) => auditedSink(sink, (events) => alerts.written(events)),
    watch: ({ engine, brokers, member, routing, notifications }) => {
      webhook?.attach(engine);
      alerts.attach(engine);
      health.watch(engine, brokers, member, routing, notifications);
      metrics.cyoda.member = member;
      skew.watch(engine);
      metrics.watch({ engine, census, brokers });
      census.watch(() => engine.census());
    },
    started: () => {
      health.started();
      census.start();
      skew.start();
      alerts.start();
    },
    stopping: () => health.stopping(),
    stop: () => {
      census.stop();
      skew.stop();
      alerts.stop();
      feed.close();
    },
  };
}
