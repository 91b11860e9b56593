import {
  type Census,
  type Engine,
  type EngineEvent,
  type LaneCounts,
  type LaneReport,
  laneStates,
  type Published,
} from '@redrive/engine';
import type { Logger } from 'pino';
import type { Histogram } from 'prom-client';
import type { Clock } from 'redrive';
import type { Metrics } from '../../service-context.ts';
import type { CensusTaker } from './census.ts';
import { CriterionCounts } from './criterion-counts.ts';
import { CyodaCounts } from './cyoda-counts.ts';
import { GatewayCounts } from './gateway-counts.ts';
import { NotificationCounts } from './notification-counts.ts';
import { RouteCounts } from './route-counts.ts';
import type { BrokerWithState, WatchedBrokers } from '../health.ts';
import { kindOf, LaneTable, MAX_NAMES, NameTable, OTHER } from '../lane-table.ts';
import { createMetricSet, type MetricSet } from './registry.ts';
import { snakeCase } from './names.ts';
import type { PlainSeries } from './plain-histogram.ts';

interface MetricsOptions {
  clock: Clock;
  log: Logger;
  /** Connections that read events. */
  eventReaders?: () => number;
  /** Lines that the log has lost since the start. */
  logLinesLost?: () => number;
  /** Retries of the last minute. */
  retryRates?: () => { category: string; perMinute: number }[];
}

/** Whose numbers are shown. */
interface Watched {
  engine: Pick<Engine, 'lanes' | 'laneCounts' | 'stats'>;
  census: CensusTaker;
  brokers: WatchedBrokers;
}

/** A page that is asked for more often shows the same lanes: reading them asks the store. */
const LANES_FOR_MS = 5000;
const WAIT_MS = 1000;

const brokerStates = ['connected', 'connecting', 'blocked', 'closed'];
const sourceStates = ['waiting', 'consuming', 'stopped'];
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

const NO_SLOT = 0;

/** Method and status as one number; only of the methods that are used often. */
function slotOf(method: string, status: number): number {
  if (method === 'POST') return status;
  return method === 'GET' ? -status : NO_SLOT;
}

/** One series of a histogram: looked up once, not by its labels every time. */
type Series = Pick<Histogram.Internal<string>, 'observe'>;

/**
 * The numbers of the service. What happens often is counted in plain fields or by a child that is made once; the rest is
 * read when somebody asks for the page.
 */
export class ServiceMetrics implements Metrics {
  readonly #set: MetricSet = createMetricSet();
  readonly criteria = new CriterionCounts(this.#set);
  readonly cyoda = new CyodaCounts(this.#set);
  readonly gateway = new GatewayCounts(this.#set);
  readonly notifications = new NotificationCounts(this.#set);
  readonly routing = new RouteCounts(this.#set);
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #eventReaders: () => number;
  readonly #logLinesLost: () => number;
  readonly #retryRates: NonNullable<MetricsOptions['retryRates']>;
  readonly #lanes = new LaneTable();
  readonly #routes = new NameTable();
  readonly #sources = new NameTable();
  readonly #drift = new Map<string, Series>();
  readonly #operations = new Map<string, Series>();
  readonly #deliveries = new Map<string, Series>();
  readonly #requests = new Map<string, Map<number, PlainSeries>>();
  readonly #published = new Map<string, number>();
  #leasesLost = 0;
  #known = 0;
  #watched: Watched | undefined;
  #lanesAt = -Infinity;
  #readingLanes: Promise<void> | undefined;

  constructor(options: MetricsOptions) {
    this.#clock = options.clock;
    this.#log = options.log;
    this.#eventReaders = options.eventReaders ?? (() => 0);
    this.#logLinesLost = options.logLinesLost ?? (() => 0);
    this.#retryRates = options.retryRates ?? (() => []);
    // Nothing at all is better than a nought that nobody has counted.
    const { depth, oldestDue, censusAge, censusDuration, clockSkew } = this.#set;
    for (const unknown of [depth, oldestDue, censusAge, censusDuration, clockSkew]) {
      unknown.remove();
    }
  }

  get contentType(): string {
    return this.#set.registry.contentType;
  }

  watch(parts: Watched): void {
    this.#watched = parts;
  }

  async text(): Promise<string> {
    await Promise.all([this.#watched?.census.wanted(), this.#readLanes()]);
    this.#write();
    return this.#set.registry.metrics();
  }

  engineEvent(event: EngineEvent): void {
    switch (event.type) {
      case 'accepted':
        this.#lanes.of(event.lane).scheduled += 1;
        return;
      case 'duplicate':
        this.#known += 1;
        return;
      case 'started':
        this.#driftOf(event.lane).observe(event.lateMs / 1000);
        if (event.again) this.#set.duplicates.inc({ cause: 'unsettled' });
        return;
      case 'retry':
        // Given back because this instance stops: nothing new was scheduled.
        if (event.delayMs === 0 && !event.decision) return;
        this.#lanes.of(event.lane).scheduled += 1;
        return;
      case 'failed':
        if (event.reason === 'EXHAUSTED') this.#lanes.of(event.lane).exhausted += 1;
        // What could not be read is counted where it is taken in.
        if (!event.lane.startsWith('source:')) this.entered(event.reason);
        return;
      case 'leaseLost':
        this.#leasesLost += 1;
        this.#set.duplicates.inc({ cause: 'lease_lost' });
        return;
      case 'done':
      case 'taken':
      case 'cancelled':
      case 'rearmed':
      case 'inboxFilling':
      case 'inboxFull':
      case 'jobEnded':
    }
  }

  entered(reason: string, count = 1): void {
    this.#set.inboxEntered.inc({ reason }, count);
  }

  /** An execution came to its end. */
  executed(lane: string, worked: boolean): void {
    const numbers = this.#lanes.of(lane);
    if (worked) numbers.succeeded += 1;
    else numbers.failed += 1;
  }

  delivered(kind: string, outcome: string, seconds: number): void {
    const key = `${kind} ${outcome}`;
    let series = this.#deliveries.get(key);
    if (!series) {
      series = this.#set.delivery.labels(kind, snakeCase(outcome));
      this.#deliveries.set(key, series);
    }
    series.observe(seconds);
  }

  publishing(messages: number): void {
    this.#set.publishBatch.observe(messages);
  }

  published(outcome: Published['outcome'], seconds: number): void {
    this.#set.publish.observe(seconds);
    this.#published.set(outcome, (this.#published.get(outcome) ?? 0) + 1);
    // It may have been taken, and is sent again.
    if (outcome === 'lost' || outcome === 'unknown') {
      this.#set.duplicates.inc({ cause: 'unsettled' });
    }
  }

  tookIn(
    source: string,
    result: 'taken' | 'unreadable' | 'oversized' | 'returned',
    count: number,
  ): void {
    if (count > 0) this.#set.intake.inc({ source: this.#sources.of(source), result }, count);
  }

  /** Messages whose own time to live is not carried on. */
  droppedExpiration(source: string, count: number): void {
    if (count > 0) this.#set.expirationDropped.inc({ source: this.#sources.of(source) }, count);
  }

  redelivered(count: number): void {
    if (count > 0) this.#set.duplicates.inc({ cause: 'redelivered' }, count);
  }

  stored(operation: string, seconds: number, failed: boolean): void {
    let series = this.#operations.get(operation);
    if (!series) {
      series = this.#set.store.labels(snakeCase(operation));
      this.#operations.set(operation, series);
    }
    series.observe(seconds);
    if (failed) this.#set.storeErrors.inc({ operation: snakeCase(operation) });
  }

  answered(request: { method: string; route: string; status: number; seconds: number }): void {
    const { method, route, status, seconds } = request;
    // By route first: a text that is put together for every request would cost more than to count.
    const series = this.#requests.get(route)?.get(slotOf(method, status));
    (series ?? this.#requestSeries(request)).observe(seconds);
  }

  #requestSeries({ method, route, status }: { method: string; route: string; status: number }) {
    const known = this.#routes.of(route);
    const named = methods.has(method) ? method : 'OTHER';
    const series = this.#set.http.labels(named, known, String(status));
    // What a client makes up must not be remembered for ever.
    const slot = slotOf(method, status);
    if (known === OTHER || slot === NO_SLOT) return series;
    const slots = this.#requests.get(route) ?? new Map<number, PlainSeries>();
    this.#requests.set(route, slots.set(slot, series));
    return series;
  }

  counted({ pending, oldestDueInMs, open }: Census, tookMs: number): void {
    const { depth, oldestDue, inboxOpen, censusDuration } = this.#set;
    depth.set(pending);
    oldestDue.set(Math.max(0, -(oldestDueInMs ?? 0)) / 1000);
    inboxOpen.reset();
    for (const [reason, count] of Object.entries(open)) inboxOpen.set({ reason }, count);
    censusDuration.set(tookMs / 1000);
  }

  #driftOf(lane: string): Series {
    const kind = kindOf(lane);
    let series = this.#drift.get(kind);
    if (!series) {
      series = this.#set.drift.labels(kind);
      this.#drift.set(kind, series);
    }
    return series;
  }

  /** At most once at a time and not for long: a store that is away must not take the page along. */
  async #readLanes(): Promise<void> {
    if (!this.#watched || this.#clock.monotonic() - this.#lanesAt < LANES_FOR_MS) return;
    const { engine } = this.#watched;
    this.#readingLanes ??= Promise.all([
      engine.lanes({ limit: MAX_NAMES }),
      engine.lanes({ blocked: true, limit: MAX_NAMES }),
      engine.laneCounts(),
    ])
      .then(([lanes, blocked, counts]) => {
        this.#lanesAt = this.#clock.monotonic();
        this.#showLanes(lanes, counts);
        this.#showBlocked(blocked);
      })
      .catch((error: unknown) => {
        this.#set.scrapeErrors.inc({ part: 'lanes' });
        this.#log.debug({ err: error }, 'the lanes could not be read for the metrics');
      })
      .finally(() => (this.#readingLanes = undefined));
    let timer: unknown;
    const limit = new Promise<void>((resolve) => {
      timer = this.#clock.setTimer(resolve, WAIT_MS, true);
    });
    await Promise.race([this.#readingLanes, limit]);
    this.#clock.clearTimer(timer);
  }

  /** The first ones by name, and how many others there are. */
  #showLanes(lanes: readonly LaneReport[], counts: LaneCounts): void {
    const { laneState } = this.#set;
    laneState.reset();
    for (const { lane, state } of lanes) {
      for (const one of laneStates) {
        laneState.set({ lane, state: one.toLowerCase() }, one === state ? 1 : 0);
      }
    }
    if (lanes.length < MAX_NAMES) return;
    for (const state of laneStates) {
      // The counts may be older.
      const others = counts[state] - lanes.filter((lane) => lane.state === state).length;
      if (others > 0) laneState.set({ lane: OTHER, state: state.toLowerCase() }, others);
    }
  }

  #showBlocked(lanes: readonly LaneReport[]): void {
    const { blockedTasks, blockedItems } = this.#set;
    blockedTasks.reset();
    blockedItems.reset();
    for (const { lane, blocked = 0, blockedBy = 0 } of lanes) {
      blockedTasks.set({ lane }, blocked);
      blockedItems.set({ lane }, blockedBy);
    }
  }

  /** What is counted elsewhere, as it stands now. */
  #write(): void {
    const { scheduled, executed, exhausted, published, leasesLost, known } = this.#set;
    for (const one of [scheduled, executed, exhausted, published, leasesLost, known]) one.reset();
    for (const lane of this.#lanes.all()) {
      const { queue } = lane;
      if (lane.scheduled > 0) scheduled.inc({ queue }, lane.scheduled);
      if (lane.succeeded > 0) executed.inc({ queue, status: 'success' }, lane.succeeded);
      if (lane.failed > 0) executed.inc({ queue, status: 'failed' }, lane.failed);
      if (lane.exhausted > 0) exhausted.inc({ queue }, lane.exhausted);
    }
    for (const [outcome, count] of this.#published) published.inc({ outcome }, count);
    leasesLost.inc(this.#leasesLost);
    known.inc(this.#known);
    this.#writeRates();
    this.criteria.write();
    this.cyoda.write();
    this.gateway.write();
    this.routing.write();
    this.notifications.write();
    this.#set.eventReaders.set(this.#eventReaders());
    this.#set.logLinesLost.reset();
    this.#set.logLinesLost.inc(this.#logLinesLost());
    if (this.#watched) this.#writeWatched(this.#watched);
  }

  /** The highest ones, and the sum of the others. */
  #writeRates(): void {
    const { retryRate } = this.#set;
    retryRate.reset();
    const rates = this.#retryRates().toSorted((a, b) => b.perMinute - a.perMinute);
    for (const [i, { category, perMinute }] of rates.entries()) {
      retryRate.inc({ category: i < MAX_NAMES ? category : OTHER }, perMinute);
    }
  }

  #writeWatched({ engine, brokers, census }: Watched): void {
    const set = this.#set;
    const stats = engine.stats();
    set.running.set(stats.running);
    set.held.set(stats.held);
    set.unsettled.set(stats.unsettled);
    set.outboxStuck.set(stats.outboxStuck);
    if (stats.clockSkewMs !== undefined) set.clockSkew.set(stats.clockSkewMs / 1000);
    set.auditDropped.reset();
    set.auditDropped.inc(stats.auditDropped);
    if (census.ageMs !== undefined) set.censusAge.set(census.ageMs / 1000);
    for (const { source, state } of stats.sources) {
      for (const one of sourceStates) {
        const labels = { source: this.#sources.of(source), state: one };
        set.sourceState.set(labels, one === state ? 1 : 0);
      }
    }
    for (const [name, broker] of Object.entries(brokers) as [string, BrokerWithState][]) {
      for (const one of brokerStates) {
        set.brokerState.set({ broker: name, state: one }, broker.state.state === one ? 1 : 0);
      }
    }
  }
}
