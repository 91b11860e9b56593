/** What the parts of the service share. */
import type { AuditEntry } from 'redrive';
import type { Host } from '@redrive/engine/internal';
import type { DelayQueue } from '@redrive/engine';
import type { DropReason } from '../model/claims.ts';
import type { SkipReason } from '../model/assess.ts';
import type { MoveRules } from '../model/moves.ts';
import type { FailureReason, Priority } from '../model/notification.ts';
import type { Lane, PriorityPolicies } from '../model/retry-config.ts';
import type { Platform } from '../platforms/verdict.ts';
import type { NotificationRepository } from '../ports/repository.ts';

export interface Parts {
  host: Host;
  repository: NotificationRepository;
  queues: Readonly<Record<Lane, DelayQueue>>;
  policies: PriorityPolicies;
  rules: MoveRules;
  seed: () => number;
  tell: (event: NotificationHappening) => void;
  audit?: ((entry: AuditEntry) => void) | undefined;
}

/** What happens in the service, as it happens. */
export type NotificationHappening =
  /** A record was created. */
  | { type: 'created'; priority: Priority }
  /** An attempt ended, as far as it was not known before. */
  | { type: 'attempted'; status: 'delivered' | 'failed' }
  | { type: 'scheduled'; priority: Priority; lane: Lane; delayMs: number }
  | { type: 'failed'; priority: Priority; reason: FailureReason }
  | { type: 'skipped'; priority: Priority; reason: SkipReason }
  | { type: 'expired'; priority: Priority }
  | { type: 'duplicate' }
  | { type: 'replayed'; priority: Priority }
  /** A retry began. `lateMs`: after it was due. `again`: its last worker was lost, so it may be a duplicate. */
  | { type: 'started'; priority: Priority; lane: Lane; lateMs: number; again: boolean }
  /** A wake-up did nothing. */
  | { type: 'dropped'; lane: Lane; reason: DropReason }
  /** Quiet hours began while it waited, or nothing could be sent. */
  | { type: 'postponed'; lane: Lane; reason: 'quiet_hours' | 'not_sent' }
  /** The lease was gone when the attempt was to be settled: its outcome changed nothing. */
  | { type: 'leaseLost'; lane: Lane }
  /** The keys or certificates of a provider are refused. */
  | { type: 'misconfigured'; platform: Platform | 'unknown' }
  /** A wake-up could not be scheduled; the sweeper does it again. */
  | { type: 'unscheduled'; lane: Lane; count: number }
  /** The sweeper found records past their time. */
  | { type: 'swept'; count: number }
  | { type: 'published'; to: 'dead_letter' | 'inbox' | 'event'; ok: boolean }
  | { type: 'unreadable'; count: number };
