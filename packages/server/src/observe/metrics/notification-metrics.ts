/** The metrics of notifications, a part of registry.ts. */
import type { Counter, Gauge, Histogram } from 'prom-client';

interface Makers {
  counter: <L extends string>(name: string, help: string, labels?: readonly L[]) => Counter<L>;
  gauge: <L extends string>(name: string, help: string, labels?: readonly L[]) => Gauge<L>;
  histogram: <L extends string>(
    name: string,
    help: string,
    buckets: number[],
    labels?: readonly L[],
  ) => Histogram<L>;
}

const driftSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 3600];

export function notificationMetrics({ counter, gauge, histogram }: Makers) {
  return {
    notificationRetries: counter(
      'notification_retries_scheduled_total',
      'Retries of notifications that were scheduled.',
      ['priority', 'lane'],
    ),
    notificationFailures: counter(
      'notification_permanent_failures_total',
      'Deliveries of notifications that failed for good.',
      ['priority'],
    ),
    notificationSkipped: counter(
      'notification_retries_skipped_total',
      'Retries of notifications that were skipped. device_inactive: the device service says so. dead_token: a push service said so before.',
      ['reason'],
    ),
    notificationDeliveries: counter(
      'notification_deliveries_total',
      'Attempts to deliver notifications that ended, each counted once: delivered, failed.',
      ['status'],
    ),
    notificationsCreated: counter('redrive_notifications_created_total', 'Notifications.', [
      'priority',
    ]),
    notificationFailureReasons: counter(
      'redrive_notification_failures_total',
      'Deliveries of notifications that failed for good, by reason.',
      ['reason'],
    ),
    notificationsExpired: counter(
      'redrive_notification_deliveries_expired_total',
      'Deliveries whose notification ended before another retry.',
      ['priority'],
    ),
    notificationsReplayed: counter(
      'redrive_notification_replays_total',
      'Deliveries that failed for good and were replayed.',
      ['priority'],
    ),
    notificationDuplicates: counter(
      'redrive_notification_duplicates_total',
      'Reports that were known already.',
    ),
    notificationDrift: histogram(
      'redrive_notification_drift_seconds',
      'How long after its due time a retry of a notification began.',
      driftSeconds,
      ['lane'],
    ),
    notificationRestarts: counter(
      'redrive_notification_restarts_total',
      'Attempts that began again because their worker was lost: possible duplicates.',
      ['lane'],
    ),
    notificationWakeUpsDropped: counter(
      'redrive_notification_wake_ups_dropped_total',
      'Entries of a lane that did nothing. stale: for another attempt. over: the delivery is final. in_delivery: another worker has it. unknown: there is no such record. unreadable: the entry or the record.',
      ['lane', 'reason'],
    ),
    notificationsPostponed: counter(
      'redrive_notification_postponed_total',
      'Due retries that were put off without spending the attempt, by quiet hours or because nothing could be sent.',
      ['lane', 'reason'],
    ),
    notificationLeasesLost: counter(
      'redrive_notification_leases_lost_total',
      'Deliveries whose lease was gone when their outcome was to be written.',
      ['lane'],
    ),
    notificationConfiguration: counter(
      'redrive_notification_configuration_failures_total',
      'Answers of push services that refuse the credentials of the provider. Alert on this.',
      ['platform'],
    ),
    notificationUnscheduled: counter(
      'redrive_notification_unscheduled_total',
      'Wake-ups that a lane did not take. The sweeper schedules them again.',
      ['lane'],
    ),
    notificationsSwept: counter(
      'redrive_notification_swept_total',
      'Records that the sweeper found past their time.',
    ),
    notificationPublications: counter(
      'redrive_notification_publications_total',
      'Dead letters, items of the inbox and events that were published, and those that failed and are tried again.',
      ['to', 'result'],
    ),
    notificationsUnreadable: counter(
      'redrive_notification_records_unreadable_total',
      'Stored notifications that could not be read.',
    ),
    notificationDeviceChecks: counter(
      'redrive_notification_device_checks_total',
      'Questions to the device service: active, inactive, unknown, invalid, failed, open (the breaker).',
      ['outcome'],
    ),
    notificationReports: counter(
      'redrive_notification_reports_total',
      'Reports that came through a broker: taken, unreadable (in the inbox).',
      ['result'],
    ),
    notificationsRunning: gauge(
      'redrive_notification_deliveries_running',
      'Deliveries of notifications under way in this instance.',
    ),
  };
}
