/** The notifications of the demo, and how the push services answer each attempt. Pure. */
import type { DeliverOutcome, NewNotification, Priority } from '@redrive/notifications';
import type { Policy } from 'redrive';

export interface Role {
  id: string;
  priority: Priority;
  deviceId: string;
  /** What is wrong, in a few words. */
  trouble: string;
  /** How long it is worth delivering (24 h). */
  ttlMs?: number;
  isQuiet?: true;
  isInactive?: true;
  /** Failed attempts, in order. Whatever comes after them is delivered. */
  failures: readonly Failed[];
}

type Failed = Extract<DeliverOutcome, { outcome: 'failed' }>;

/** As the presets of the priorities, but quick, so that there is something to see. */
export const policies: Readonly<Record<Priority, Policy>> = {
  critical: { base: '600ms', cap: '3s' },
  high: { base: '900ms', cap: '3s' },
  medium: { base: '1200ms', cap: '3s' },
  low: { base: '1500ms', cap: '3s', maxAttempts: 4 },
};

const down = answer('apns', 503, 'ServiceUnavailable');
const fcmDown = answer('fcm', 503, 'UNAVAILABLE');

export const cast: readonly Role[] = [
  {
    id: 'taxi',
    priority: 'critical',
    deviceId: 'phone-1',
    trouble: '503 with Retry-After: 2',
    failures: [answer('apns', 503, 'ServiceUnavailable', { 'retry-after': '2' }), down],
  },
  {
    id: 'login-code',
    priority: 'high',
    deviceId: 'phone-2',
    trouble: 'connection reset, then 500',
    failures: [
      { outcome: 'failed', errorCode: 'ECONNRESET', errorMessage: 'socket hang up' },
      answer('fcm', 500, 'INTERNAL'),
    ],
  },
  {
    id: 'score',
    priority: 'high',
    deviceId: 'phone-3',
    trouble: 'worth nothing after 2.5 s',
    ttlMs: 2500,
    failures: [down, down],
  },
  {
    id: 'invoice',
    priority: 'medium',
    deviceId: 'tablet-4',
    trouble: 'the token is dead',
    failures: [down, answer('apns', 410, 'Unregistered')],
  },
  {
    id: 'chat',
    priority: 'medium',
    deviceId: 'phone-5',
    trouble: 'quiet hours',
    isQuiet: true,
    failures: [fcmDown],
  },
  {
    id: 'advert',
    priority: 'low',
    deviceId: 'phone-6',
    trouble: 'the device is inactive',
    isInactive: true,
    failures: [fcmDown],
  },
  {
    id: 'digest',
    priority: 'low',
    deviceId: 'phone-7',
    trouble: '503 until it is replayed',
    failures: [fcmDown, fcmDown, fcmDown, fcmDown],
  },
];

/** The one that an operator replays after it failed for good. */
export const REPLAYED = 'digest';

const HOUR_MS = 3_600_000;

/** Quiet hours are around the present time, and end hours after the demo. */
export function notificationOf(role: Role, nowMs: number): NewNotification {
  const quietHours = {
    from: hourOf(nowMs - HOUR_MS),
    to: hourOf(nowMs + 8 * HOUR_MS),
    timeZone: 'UTC',
  };
  return {
    id: role.id,
    recipient: { userId: 'u-7', deviceIds: [role.deviceId] },
    priority: role.priority,
    notification: { title: role.id, body: role.trouble },
    source: 'demo',
    ...(role.ttlMs === undefined ? {} : { ttlMs: role.ttlMs }),
    ...(role.isQuiet ? { quietHours } : {}),
  };
}

/** What the push service answers to this attempt. */
export function answerTo(id: string, attempt: number): DeliverOutcome & { outcome: Sent } {
  const failures = cast.find((role) => role.id === id)?.failures ?? [];
  return failures[attempt - 1] ?? { outcome: 'delivered' };
}
type Sent = 'delivered' | 'failed';

function answer(
  platform: string,
  status: number,
  reason: string,
  headers: Readonly<Record<string, string>> = {},
): Failed {
  return { outcome: 'failed', platformResponse: { platform, status, reason, headers } };
}

function hourOf(ms: number): string {
  return `${String(new Date(ms).getUTCHours()).padStart(2, '0')}:00`;
}
