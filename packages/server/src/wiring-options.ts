import type { Clock } from 'redrive';
import type { LogOutput } from './observe/log/log.ts';

/** Apart from the wiring, whose types need those of every client library. */
export interface WiringOptions {
  clock?: Clock;
  logTo?: LogOutput;
  notificationTimes?: Partial<NotificationTimes>;
}

/** How soon the work of an instance that was lost goes to another one. For tests, which cannot wait a minute for it. */
export interface NotificationTimes {
  deliverTimeoutMs: number;
  /** Of a delivery under way. */
  leaseMs: number;
  /** Of a wake-up in the hand of an instance, in Redis and in the store. */
  queueLeaseMs: number;
  /** Of a consumer of Kafka without a sign of life. */
  sessionTimeoutMs: number;
  graceMs: number;
  sweepMs: number;
  maxLostLeases: number;
}
