/** What the HTTP API answers. Types only: a command must not wait for what the server is made of. */
import type { Static } from 'typebox';
import type * as bulk from '../http/schemas/bulk.ts';
import type * as common from '../http/schemas/common.ts';
import type * as retries from '../http/schemas/retries.ts';
import type * as review from '../http/schemas/review.ts';
import type * as service from '../http/schemas/service.ts';

export type DestinationView = Static<typeof common.Destination>;
export type ErrorView = Static<typeof common.Failure>;
export type AttemptView = Static<typeof common.Attempt>;

export type TaskView = Static<typeof retries.Task>;
export type TaskDetail = Static<typeof retries.TaskDetail>;
export type Receipt = Static<typeof retries.Receipt>;
export type Receipts = Static<typeof retries.Receipts>;
export type Acted = Static<typeof retries.Acted>;

export type ItemView = Static<typeof review.Item>;
export type ItemDetail = Static<typeof review.ItemDetail>;
export type ErasedItem = Static<typeof review.ErasedItem>;
export type GroupView = Static<typeof review.Group>;

export type JobView = Static<typeof bulk.Job>;
export type MemberView = Static<typeof bulk.Member>;
export type LaneView = Static<typeof service.Lane>;
export type LaneChange = Static<typeof service.LaneChange>;
export type AuditView = Static<typeof service.AuditEntry>;
export type ReadyView = Static<typeof service.Ready>;

export interface Preview {
  count: number;
  sample: readonly ItemView[];
}

export interface LaneCounts {
  counts: Readonly<Record<string, number>>;
}

export interface Page<T> {
  items: readonly T[];
  next_cursor?: string | null;
}
