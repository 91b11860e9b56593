import type { Engine } from '@redrive/engine';
import type { Logger } from 'pino';
import type { Clock, IdempotencyStore } from 'redrive';
import type { Criteria } from './criteria/index.ts';
import type { ServiceGateway } from './gateway/index.ts';
import type { Notifications } from '@redrive/notifications';
import type { Routing } from './routing/index.ts';
import type { Settings } from './settings/settings.ts';

/** What the parts of a running service know of each other. */
export interface ServiceContext {
  readonly settings: Settings;
  /** The name of this instance. */
  readonly instance: string;
  readonly engine: Engine;
  readonly clock: Clock;
  readonly log: Logger;
  readonly feed: EventFeed;
  readonly metrics: Metrics;
  readonly health: Health;
  /** Where the responses to requests with an `Idempotency-Key` are kept. */
  readonly idempotency: IdempotencyStore;
  readonly criteria: Pick<Criteria, 'evaluator' | 'settings' | 'recent'>;
  /** Absent without ROUTING_GATEWAY. */
  readonly gateway?: Pick<ServiceGateway, 'handle'> | undefined;
  /** Absent without NOTIFICATIONS. */
  readonly notifications?: Notifications | undefined;
  readonly routing: Pick<Routing, 'routers' | 'counts' | 'decideInline'>;
}

/** What happens here, as server-sent events. */
export interface EventFeed {
  /** Writes what came after that id, or a reset where it is not known, and then all that comes. Returns the end of it. */
  read(lastEventId: string | undefined, write: (text: string) => void): () => void;
}

export interface Metrics {
  readonly contentType: string;
  /** In the format of Prometheus. */
  text(): Promise<string>;
  answered(request: { method: string; route: string; status: number; seconds: number }): void;
}

export interface Health {
  ready(): Promise<Readiness>;
}

export interface Readiness {
  ready: boolean;
  checks: Check[];
}

/** One thing that has to be well. */
export interface Check {
  name: string;
  ok: boolean;
  /** What is wrong, and what to do. No credentials. */
  detail?: string;
}
