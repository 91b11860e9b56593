/** The options of the service, with their defaults. */
import type { DelayLimits, DelayQueue, Log } from '@redrive/engine';
import type { AuditEntry, Clock, Policy, Random } from 'redrive';
import { checkNames } from 'redrive/internal';
import { NotificationError } from '../errors.ts';
import { priorities, type Priority, type Publication } from '../model/notification.ts';
import { type Lane, lanes } from '../model/retry-config.ts';
import type { NotificationRepository } from '../ports/repository.ts';
import type { Deliver } from './delivery.ts';
import type { DeviceServiceOptions, Devices } from './devices.ts';
import type { NotificationHappening } from './parts.ts';
import type { Sinks } from './publisher.ts';

export interface NotificationOptions extends Sinks {
  repository: NotificationRepository;
  /** Critical and high wait in `urgent`, medium and low in `bulk`. */
  queues: Readonly<Record<Lane, DelayQueue>>;
  /** Delivers a retry that is due, or hands it to a topic. */
  deliver: Deliver;
  /** Where the service asks whether a device is active. Without it no device counts as inactive but by its own answers. */
  devices?: DeviceServiceOptions | Devices;
  /** Fields that replace those of the preset `notification.<priority>`. */
  policies?: Partial<Record<Priority, Policy>>;
  /** The same `idempotency_key` again: answer what is there (`return`), or refuse (`conflict`). */
  existing?: 'return' | 'conflict';
  /** False: due retries are left to other instances. */
  consume?: boolean;
  /** What other instances publish: it is flagged here, and their sweepers find it. */
  publishedElsewhere?: readonly Publication['to'][];
  /** Deliveries at once in each lane (100). */
  concurrency?: number;
  limits?: DelayLimits;
  /** How long one delivery may take (30 s). */
  deliverTimeoutMs?: number;
  /** How long a claimed delivery belongs to its process (twice `deliverTimeoutMs`). */
  leaseMs?: number;
  /** An attempt that lost so many workers is given up (3). */
  maxLostLeases?: number;
  /** A wake-up that is late by this is scheduled again (30 s). */
  graceMs?: number;
  /** How often the sweeper looks (3 s). */
  sweepMs?: number;
  /** How long `stop` waits for what runs before it aborts it (5 s). */
  stopTimeoutMs?: number;
  /** How long records are kept after their last change (7 days). 0: for ever. */
  retentionMs?: number;
  /** The seed of the jitter: one per deployment. */
  seed?: number | (() => number);
  clock?: Clock;
  random?: Random;
  defer?: (callback: () => void) => void;
  newId?: () => string;
  log?: Log;
  /** Told of what happens. It must not throw. */
  on?: (event: NotificationHappening) => void;
  audit?: (entry: AuditEntry) => void;
}

const DAY_MS = 86_400_000;

/** Each of them, so that the compiler finds one that is missing here. */
const names: Record<keyof NotificationOptions, true> = {
  repository: true,
  queues: true,
  deliver: true,
  devices: true,
  policies: true,
  existing: true,
  consume: true,
  publishedElsewhere: true,
  concurrency: true,
  limits: true,
  deliverTimeoutMs: true,
  leaseMs: true,
  maxLostLeases: true,
  graceMs: true,
  sweepMs: true,
  stopTimeoutMs: true,
  retentionMs: true,
  seed: true,
  clock: true,
  random: true,
  defer: true,
  newId: true,
  log: true,
  on: true,
  audit: true,
  deadLetter: true,
  inbox: true,
  event: true,
};

interface Times {
  concurrency: number;
  deliverTimeoutMs: number;
  leaseMs: number;
  maxLostLeases: number;
  graceMs: number;
  sweepMs: number;
  stopTimeoutMs: number;
  retentionMs: number;
}

/** Throws one error that lists every fault. */
export function checkedTimes(options: NotificationOptions): Times {
  checkNames('The options of createNotifications', options, Object.keys(names));
  if (options.policies !== undefined)
    checkNames('The policies of createNotifications', options.policies, priorities);
  const { deliverTimeoutMs = 30_000 } = options;
  const times: Times = {
    concurrency: options.concurrency ?? 100,
    deliverTimeoutMs,
    leaseMs: options.leaseMs ?? 2 * deliverTimeoutMs,
    maxLostLeases: options.maxLostLeases ?? 3,
    graceMs: options.graceMs ?? 30_000,
    sweepMs: options.sweepMs ?? 3000,
    stopTimeoutMs: options.stopTimeoutMs ?? 5000,
    retentionMs: options.retentionMs ?? 7 * DAY_MS,
  };
  const faults: string[] = [];
  for (const [name, value] of Object.entries(times) as [keyof Times, number][]) {
    const min = name === 'retentionMs' ? 0 : 1;
    if (Number.isInteger(value) && value >= min && value <= 366 * DAY_MS) continue;
    faults.push(`${name} is ${value}: give a whole number from ${min}.`);
  }
  if (times.leaseMs <= deliverTimeoutMs) {
    faults.push(
      `leaseMs is ${times.leaseMs}: give more than deliverTimeoutMs, ${deliverTimeoutMs}.`,
    );
  }
  for (const lane of lanes) if (!options.queues?.[lane]) faults.push(`queues.${lane} is missing.`);
  if (typeof options.deliver !== 'function') faults.push('deliver is not a function.');
  if (faults.length === 0) return times;
  throw new NotificationError('INVALID_NOTIFICATIONS', faults.join(' '));
}

export function checkedLane(lane: Lane): Lane {
  if (lanes.includes(lane)) return lane;
  const message = `There is no lane ${JSON.stringify(lane)}. The lanes are ${lanes.join(' and ')}.`;
  throw new NotificationError('INVALID_NOTIFICATIONS', message);
}
