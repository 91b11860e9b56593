/** The numbers of routing. Counted in plain maps, and written when somebody asks for the page. */
import type { ProviderHealth, RouteEvent } from 'redrive';
import type { MetricSet } from './registry.ts';

/** What the gauge of states is made of. */
type ProviderStates = () => Iterable<{
  policy: string;
  provider: string;
  state: ProviderHealth['state'];
}>;

/** Of decisions by a policy that came with its request. */
const INLINE = 'inline';
const OTHER = 'other';
/** Series of one metric. What comes later is counted under `other`. */
const MAX_SERIES = 1000;
/** Between the labels of a series. No name of a file or a provider has it. */
const BETWEEN = '\0';
const states = ['closed', 'open', 'half_open', 'cooling'] as const;

export class RouteCounts {
  readonly #set: MetricSet;
  readonly #decisions = new Map<string, number>();
  readonly #outcomes = new Map<string, number>();
  /** Of the routers that there are now. */
  states: ProviderStates = () => [];

  constructor(set: MetricSet) {
    this.#set = set;
  }

  /** What a router tells of its decisions and calls. */
  heard(policy: string, event: RouteEvent): void {
    switch (event.type) {
      case 'decision': {
        const { result, explanation } = event.decision;
        this.#decided(policy, result, explanation.provider_id ?? '');
        return;
      }
      case 'success':
        return this.ended(policy, event.provider, 'ok');
      case 'failure':
        return this.ended(policy, event.record.provider, event.record.status ?? '');
      case 'attempt':
      case 'giveUp':
    }
  }

  decidedInline(result: string): void {
    this.#decided(INLINE, result, '');
  }

  /** A call of a provider came to its end. */
  ended(policy: string, provider: string, status: string): void {
    const word = wordFor(status);
    const other = [OTHER, OTHER, word];
    count(this.#outcomes, [policy, provider, word], other);
  }

  write(): void {
    const { routeDecisions, routeOutcomes, routeProviders } = this.#set;
    for (const one of [routeDecisions, routeOutcomes, routeProviders]) one.reset();
    for (const [key, number] of this.#decisions) {
      const [policy = '', result = '', provider = ''] = key.split(BETWEEN);
      routeDecisions.inc({ policy, result, provider }, number);
    }
    for (const [key, number] of this.#outcomes) {
      const [policy = '', provider = '', status = ''] = key.split(BETWEEN);
      routeOutcomes.inc({ policy, provider, status }, number);
    }
    let series = 0;
    for (const { policy, provider, state: now } of this.states()) {
      series += states.length;
      if (series > MAX_SERIES) {
        routeProviders.inc({ policy: OTHER, provider: OTHER, state: now });
        continue;
      }
      for (const state of states) {
        routeProviders.set({ policy, provider, state }, state === now ? 1 : 0);
      }
    }
  }

  #decided(policy: string, result: string, provider: string): void {
    count(this.#decisions, [policy, result, provider], [OTHER, result, OTHER]);
  }
}

function count(series: Map<string, number>, labels: string[], other: string[]): void {
  let key = labels.join(BETWEEN);
  if (!series.has(key) && series.size >= MAX_SERIES) key = other.join(BETWEEN);
  series.set(key, (series.get(key) ?? 0) + 1);
}

/** Statuses are what callers write: only the usual ones have a series of their own. */
function wordFor(status: string): string {
  if (/^(?:ok|timeout|connection_error|rate_limit|5xx|4xx)$/.test(status)) return status;
  if (status === '429') return 'rate_limit';
  const [, hundred] = /^([245])\d\d$/.exec(status) ?? [];
  if (hundred === '2') return 'ok';
  return hundred === undefined ? OTHER : `${hundred}xx`;
}
