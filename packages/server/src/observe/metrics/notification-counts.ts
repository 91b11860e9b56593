/** The numbers of notifications. Counted in plain maps, and written when somebody asks for the page. */
import type { NotificationHappening } from '@redrive/notifications';
import type { Counter } from 'prom-client';
import type { MetricSet } from './registry.ts';

/** All labels have few values: priorities, lanes, reasons, statuses. */
export class NotificationCounts {
  readonly #set: MetricSet;
  readonly #counts = new Map<
    Counter,
    Map<string, { labels: Record<string, string>; count: number }>
  >();
  /** Deliveries under way. */
  running: () => number = () => 0;

  constructor(set: MetricSet) {
    this.#set = set;
  }

  heard(event: NotificationHappening): void {
    const set = this.#set;
    switch (event.type) {
      case 'created':
        return this.#add(set.notificationsCreated, { priority: event.priority });
      case 'attempted':
        return this.#add(set.notificationDeliveries, { status: event.status });
      case 'scheduled':
        return this.#add(set.notificationRetries, { priority: event.priority, lane: event.lane });
      case 'failed':
        this.#add(set.notificationFailures, { priority: event.priority });
        return this.#add(set.notificationFailureReasons, { reason: event.reason });
      case 'skipped':
        return this.#add(set.notificationSkipped, { reason: event.reason });
      case 'expired':
        return this.#add(set.notificationsExpired, { priority: event.priority });
      case 'replayed':
        return this.#add(set.notificationsReplayed, { priority: event.priority });
      case 'duplicate':
        return this.#add(set.notificationDuplicates, {});
      case 'started':
        set.notificationDrift.observe({ lane: event.lane }, event.lateMs / 1000);
        if (event.again) this.#add(set.notificationRestarts, { lane: event.lane });
        return;
      case 'dropped':
        return this.#add(set.notificationWakeUpsDropped, {
          lane: event.lane,
          reason: event.reason,
        });
      case 'postponed':
        return this.#add(set.notificationsPostponed, { lane: event.lane, reason: event.reason });
      case 'leaseLost':
        return this.#add(set.notificationLeasesLost, { lane: event.lane });
      case 'misconfigured':
        return this.#add(set.notificationConfiguration, { platform: event.platform });
      case 'unscheduled':
        return this.#add(set.notificationUnscheduled, { lane: event.lane }, event.count);
      case 'swept':
        return this.#add(set.notificationsSwept, {}, event.count);
      case 'published':
        return this.#add(set.notificationPublications, {
          to: event.to,
          result: event.ok ? 'ok' : 'failed',
        });
      case 'unreadable':
        return this.#add(set.notificationsUnreadable, {}, event.count);
    }
  }

  /** What came of a question to the device service. */
  device(outcome: string): void {
    this.#add(this.#set.notificationDeviceChecks, { outcome });
  }

  /** A report that came through a broker. */
  reported(result: string): void {
    this.#add(this.#set.notificationReports, { result });
  }

  write(): void {
    for (const [counter, series] of this.#counts) {
      counter.reset();
      for (const { labels, count } of series.values()) counter.inc(labels, count);
    }
    this.#set.notificationsRunning.set(this.running());
  }

  #add(counter: Counter, labels: Record<string, string>, by = 1): void {
    const series =
      this.#counts.get(counter) ??
      new Map<string, { labels: Record<string, string>; count: number }>();
    this.#counts.set(counter, series);
    const key = Object.values(labels).join(' ');
    const one = series.get(key) ?? { labels, count: 0 };
    one.count += by;
    series.set(key, one);
  }
}
