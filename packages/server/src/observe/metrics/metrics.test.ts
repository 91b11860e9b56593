import type { EngineStats, LaneQuery, LaneReport } from '@redrive/engine';
import { pino } from 'pino';
import { virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { CensusTaker } from './census.ts';
import { ServiceMetrics } from './metrics.ts';

const silent = pino({ level: 'silent' });
const stats: EngineStats = {
  running: 2,
  held: 3,
  unsettled: 1,
  auditDropped: 4,
  seed: 0,
  outboxStuck: 5,
  sources: [
    { source: 'retry.scheduled', state: 'consuming' },
    { source: 'dead', state: 'stopped', why: 'x' },
  ],
};

function metricsOf() {
  const clock = virtualClock();
  const metrics = new ServiceMetrics({ clock, log: silent });
  /** The samples whose line begins so, without it. */
  const samples = async (name: string) => {
    const text = await metrics.text();
    const lines = text.split('\n').filter((line) => /^[^ {]+/.exec(line)?.[0] === name);
    return lines.map((line) => line.slice(name.length).trim());
  };
  const watch = (lanes: () => Promise<LaneReport[]>, broker?: { state: { state: 'blocked' } }) => {
    const census = new CensusTaker({ clock, log: silent, counted: () => undefined });
    let reading = Promise.resolve<LaneReport[]>([]);
    const pages = async ({ blocked, limit = 1000 }: LaneQuery = {}) => {
      if (!blocked) reading = lanes();
      const known = await reading;
      return known.filter((lane) => !blocked || lane.blocked !== undefined).slice(0, limit);
    };
    const laneCounts = async () => {
      const counts = { closed: 0, open: 0, probing: 0, paused: 0, NO_HANDLER: 0, blocked: 0 };
      for (const { state } of await reading) counts[state] += 1;
      return counts;
    };
    const engine = { stats: () => stats, lanes: pages, laneCounts };
    metrics.watch({ engine, census, brokers: broker ? { rabbitmq: broker } : {} });
  };
  return { clock, metrics, samples, watch };
}

const about = { id: 'm', lane: 'queue:orders' };

describe('the four of the contract', () => {
  it('have the names and labels of the contract', async () => {
    const { metrics, samples } = metricsOf();
    metrics.engineEvent({ type: 'accepted', ...about });
    metrics.executed('queue:orders', true);
    metrics.executed('queue:orders', false);
    metrics.engineEvent({ type: 'failed', ...about, attempt: 4, reason: 'EXHAUSTED' });
    metrics.counted({ pending: 7, open: {} }, 1);
    expect(await samples('retries_scheduled_total')).toEqual(['{queue="orders"} 1']);
    expect(await samples('retries_executed_total')).toEqual([
      '{queue="orders",status="success"} 1',
      '{queue="orders",status="failed"} 1',
    ]);
    expect(await samples('retries_exhausted_total')).toEqual(['{queue="orders"} 1']);
    expect(await samples('retry_queue_depth')).toEqual(['7']);
  });

  it('count what waits again as scheduled, but not what was only given back', async () => {
    const { metrics, samples } = metricsOf();
    const decision = {
      action: 'retry',
      reason: 'BACKOFF',
      delayMs: 0,
      attempt: 1,
      nextAttempt: 2,
      maxAttempts: 4,
      failure: { class: 'transient' },
    } as const;
    metrics.engineEvent({ type: 'retry', ...about, attempt: 1, delayMs: 100 });
    metrics.engineEvent({ type: 'retry', ...about, attempt: 1, delayMs: 0, decision });
    metrics.engineEvent({ type: 'retry', ...about, attempt: 1, delayMs: 0 });
    expect(await samples('retries_scheduled_total')).toEqual(['{queue="orders"} 2']);
  });

  it('count as exhausted nothing but used-up retries', async () => {
    const { metrics, samples } = metricsOf();
    metrics.engineEvent({ type: 'failed', ...about, attempt: 1, reason: 'PERMANENT' });
    metrics.engineEvent({ type: 'failed', ...about, attempt: 4, reason: 'EXHAUSTED' });
    metrics.engineEvent({
      type: 'failed',
      ...about,
      lane: 'source:q',
      attempt: 0,
      reason: 'UNREADABLE',
    });
    expect(await samples('retries_exhausted_total')).toEqual(['{queue="orders"} 1']);
    expect(await samples('redrive_inbox_entered_total')).toEqual([
      '{reason="PERMANENT"} 1',
      '{reason="EXHAUSTED"} 1',
    ]);
  });

  it('stay as they are when they are read again', async () => {
    const { metrics, samples } = metricsOf();
    metrics.engineEvent({ type: 'accepted', ...about });
    await metrics.text();
    expect(await samples('retries_scheduled_total')).toEqual(['{queue="orders"} 1']);
  });

  it('name queues by their names and URLs by their origins, and past 200 of them all are other', async () => {
    const { metrics, samples } = metricsOf();
    metrics.engineEvent({ type: 'accepted', id: 'm', lane: 'https://api.example.com' });
    metrics.engineEvent({ type: 'accepted', id: 'm', lane: 'queue:with "quotes"' });
    for (let i = 0; i < 300; i++)
      metrics.engineEvent({ type: 'accepted', id: 'm', lane: `queue:q${i}` });
    const lines = await samples('retries_scheduled_total');
    expect(lines).toHaveLength(201);
    expect(lines.slice(0, 3)).toEqual([
      '{queue="https://api.example.com"} 1',
      '{queue="with \\"quotes\\""} 1',
      '{queue="q0"} 1',
    ]);
    expect(lines.at(-1)).toBe('{queue="other"} 102');
  });
});

describe('events', () => {
  it('of a start show how late it was, by kind', async () => {
    const { metrics, samples } = metricsOf();
    const start = { type: 'started', id: 'm', attempt: 1, lease: 1, again: false } as const;
    metrics.engineEvent({ ...start, lane: 'queue:a', lateMs: 20 });
    metrics.engineEvent({ ...start, lane: 'https://x', lateMs: 2000, again: true });
    metrics.engineEvent({ ...start, lane: 'https://y', lateMs: 4000 });
    expect(await samples('redrive_drift_seconds_sum')).toEqual([
      '{kind="queue"} 0.02',
      '{kind="http"} 6',
    ]);
    expect(await samples('redrive_duplicates_total')).toEqual(['{cause="unsettled"} 1']);
  });

  it('of lost leases and known arrivals are counted', async () => {
    const { metrics, samples } = metricsOf();
    metrics.engineEvent({ type: 'leaseLost', ...about, attempt: 1 });
    metrics.engineEvent({ type: 'duplicate', ...about });
    expect(await samples('redrive_leases_lost_total')).toEqual(['1']);
    expect(await samples('redrive_arrivals_known_total')).toEqual(['1']);
    expect(await samples('redrive_duplicates_total')).toEqual(['{cause="lease_lost"} 1']);
  });

  it('that need no number change none', async () => {
    const { metrics } = metricsOf();
    const before = numbersOf(await metrics.text());
    metrics.engineEvent({ type: 'done', ...about, attempt: 1 });
    metrics.engineEvent({ type: 'taken', ...about, attempt: 1 });
    metrics.engineEvent({ type: 'cancelled', ...about });
    metrics.engineEvent({ type: 'rearmed', ...about, attempt: 1 });
    metrics.engineEvent({ type: 'inboxFull', open: 1, maxItems: 1 });
    metrics.engineEvent({ type: 'jobEnded', job: 1, state: 'done' });
    expect(numbersOf(await metrics.text())).toEqual(before);
  });
});

describe('calls', () => {
  it('of the store are measured by operation, and failed ones counted', async () => {
    const { metrics, samples } = metricsOf();
    metrics.stored('takeOutbox', 0.5, false);
    metrics.stored('takeOutbox', 0.25, true);
    expect(await samples('redrive_store_duration_seconds_sum')).toEqual([
      '{operation="take_outbox"} 0.75',
    ]);
    expect(await samples('redrive_store_errors_total')).toEqual(['{operation="take_outbox"} 1']);
  });

  it('to a broker that gave no confirm are sent again, and count as possible duplicates', async () => {
    const { metrics, samples } = metricsOf();
    for (const outcome of ['confirmed', 'away', 'refused', 'unroutable', 'impossible'] as const) {
      metrics.published(outcome, 0.5);
    }
    expect(await samples('redrive_duplicates_total')).toEqual([]);
    metrics.published('lost', 0.5);
    metrics.published('unknown', 0.5);
    expect(await samples('redrive_duplicates_total')).toEqual(['{cause="unsettled"} 2']);
  });

  it('of deliveries are measured by kind and outcome', async () => {
    const { metrics, samples } = metricsOf();
    metrics.delivered('http', 'done', 0.5);
    metrics.delivered('http', 'retryIn', 0.25);
    metrics.delivered('http', 'done', 0.5);
    expect(await samples('redrive_delivery_duration_seconds_sum')).toEqual([
      '{kind="http",outcome="done"} 1',
      '{kind="http",outcome="retry_in"} 0.25',
    ]);
  });

  it('of the API are measured by method, route and status, and what a client makes up is bounded', async () => {
    const { metrics, samples } = metricsOf();
    const ask = (method: string, route: string, status = 200) =>
      metrics.answered({ method, route, status, seconds: 0.5 });
    ask('GET', '/api/v1/retries');
    ask('GET', '/api/v1/retries');
    ask('BREW', '/api/v1/retries', 405);
    for (let i = 0; i < 300; i++) ask('GET', `/made-up/${i}`, 404);
    const lines = await samples('http_request_duration_seconds_count');
    expect(lines).toContain('{method="GET",route="/api/v1/retries",status="200"} 2');
    expect(lines).toContain('{method="OTHER",route="/api/v1/retries",status="405"} 1');
    expect(lines).toContain('{method="GET",route="other",status="404"} 101');
    expect(lines).toHaveLength(202);
  });
});

describe('what is read when the page is asked for', () => {
  it('says what this instance holds and in which state its connections are', async () => {
    const { samples, watch } = metricsOf();
    watch(async () => [], { state: { state: 'blocked' } });
    expect(await samples('redrive_deliveries_running')).toEqual(['2']);
    expect(await samples('redrive_tasks_held')).toEqual(['3']);
    expect(await samples('redrive_tasks_unsettled')).toEqual(['1']);
    expect(await samples('redrive_audit_dropped_total')).toEqual(['4']);
    expect(await samples('redrive_audit_dropped_total')).toEqual(['4']);
    expect(await samples('redrive_outbox_stuck')).toEqual(['5']);
    expect(await samples('redrive_broker_state')).toEqual([
      '{broker="rabbitmq",state="connected"} 0',
      '{broker="rabbitmq",state="connecting"} 0',
      '{broker="rabbitmq",state="blocked"} 1',
      '{broker="rabbitmq",state="closed"} 0',
    ]);
    expect(await samples('redrive_source_state')).toContain('{source="dead",state="stopped"} 1');
  });

  it('shows no broker where there is none', async () => {
    const { samples, watch } = metricsOf();
    watch(async () => []);
    expect(await samples('redrive_broker_state')).toEqual([]);
  });

  it('shows each lane in its state, and past 200 only how many', async () => {
    const { samples, watch } = metricsOf();
    const lanes: LaneReport[] = Array.from({ length: 203 }, (_, i) => ({
      lane: `queue:q${i}`,
      state: i === 0 ? 'open' : i === 1 ? 'NO_HANDLER' : 'closed',
      running: 0,
    }));
    watch(async () => lanes);
    const lines = await samples('redrive_lane_state');
    expect(lines).toHaveLength(1001);
    expect(lines.slice(0, 5)).toEqual([
      '{lane="queue:q0",state="closed"} 0',
      '{lane="queue:q0",state="open"} 1',
      '{lane="queue:q0",state="probing"} 0',
      '{lane="queue:q0",state="paused"} 0',
      '{lane="queue:q0",state="no_handler"} 0',
    ]);
    expect(lines).toContain('{lane="queue:q1",state="no_handler"} 1');
    expect(lines.at(-1)).toBe('{lane="other",state="closed"} 3');
  });

  it('shows where tasks wait behind items of the inbox', async () => {
    const { samples, watch, clock } = metricsOf();
    let lanes: LaneReport[] = [
      { lane: 'queue:a', state: 'closed', running: 0, blocked: 6247, blockedBy: 31 },
      { lane: 'queue:b', state: 'closed', running: 0 },
    ];
    watch(async () => lanes);
    expect(await samples('redrive_lane_blocked_tasks')).toEqual(['{lane="queue:a"} 6247']);
    expect(await samples('redrive_lane_blocked_items')).toEqual(['{lane="queue:a"} 31']);
    lanes = [];
    await clock.advance('5s');
    expect(await samples('redrive_lane_blocked_tasks')).toEqual([]);
  });

  it('asks for the lanes at most every 5 s, and once for all who ask at the same time', async () => {
    const { clock, metrics, samples, watch } = metricsOf();
    let asked = 0;
    watch(async () => {
      asked += 1;
      return asked > 1 ? [] : [{ lane: 'queue:gone', state: 'closed', running: 0 }];
    });
    await Promise.all([metrics.text(), metrics.text()]);
    await clock.advance(4999);
    await metrics.text();
    expect(asked).toBe(1);
    await clock.advance(1);
    expect(await samples('redrive_lane_state')).toEqual([]);
    expect(asked).toBe(2);
  });

  it('shows what was known before where the lanes cannot be read, and says so', async () => {
    const { clock, metrics, samples, watch } = metricsOf();
    let isAway = false;
    watch(async () => {
      if (isAway) throw new Error('away');
      return [{ lane: 'queue:a', state: 'paused', running: 0 }];
    });
    await metrics.text();
    isAway = true;
    await clock.advance('5s');
    expect(await samples('redrive_lane_state')).toContain('{lane="queue:a",state="paused"} 1');
    expect(await samples('redrive_scrape_errors_total')).toEqual(['{part="lanes"} 2']);
  });

  it('does not wait for lanes for more than a second', async () => {
    const { clock, metrics, watch } = metricsOf();
    watch(() => new Promise<never>(() => {}));
    const text = metrics.text();
    await clock.advance('1s');
    expect(await text).toContain('redrive_deliveries_running 2');
  });

  it('says how much waits, for how long it has been due, and what lies open', async () => {
    const { metrics, samples } = metricsOf();
    metrics.counted(
      { pending: 10, oldestDueInMs: -1500, open: { EXHAUSTED: 2, PERMANENT: 1 } },
      250,
    );
    expect(await samples('redrive_oldest_due_age_seconds')).toEqual(['1.5']);
    expect(await samples('redrive_census_duration_seconds')).toEqual(['0.25']);
    metrics.counted({ pending: 0, oldestDueInMs: 1500, open: { EXHAUSTED: 2 } }, 250);
    expect(await samples('redrive_oldest_due_age_seconds')).toEqual(['0']);
    expect(await samples('redrive_inbox_open')).toEqual(['{reason="EXHAUSTED"} 2']);
    metrics.counted({ pending: 0, open: {} }, 250);
    expect(await samples('redrive_oldest_due_age_seconds')).toEqual(['0']);
  });

  it('says nothing of what was not counted yet', async () => {
    const { samples, watch } = metricsOf();
    watch(async () => []);
    expect(await samples('retry_queue_depth')).toEqual([]);
    expect(await samples('redrive_oldest_due_age_seconds')).toEqual([]);
    expect(await samples('redrive_census_age_seconds')).toEqual([]);
    expect(await samples('redrive_census_duration_seconds')).toEqual([]);
  });

  it('is text for Prometheus, with the metrics of the process', async () => {
    const { metrics } = metricsOf();
    expect(metrics.contentType).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(await metrics.text()).toMatch(/^process_cpu_seconds_total \d/m);
  });
});

/** Without those of the process, which never stand still. */
function numbersOf(text: string): string[] {
  return text.split('\n').filter((line) => !/(^|# \w+ )(process|nodejs)_/.test(line));
}

describe('retry_rate', () => {
  it('shows the highest categories, and the sum of the others', async () => {
    const rates = Array.from({ length: 203 }, (_, i) => ({ category: `c${i}`, perMinute: i }));
    const retryRates = () => rates;
    const metrics = new ServiceMetrics({ clock: virtualClock(), log: silent, retryRates });
    const lines = (await metrics.text())
      .split('\n')
      .filter((line) => line.startsWith('retry_rate{'));
    expect(lines).toHaveLength(201);
    expect(lines[0]).toBe('retry_rate{category="c202"} 202');
    expect(lines.at(-1)).toBe('retry_rate{category="other"} 3');
    rates.splice(1);
    expect(await metrics.text()).toMatch(/^retry_rate\{category="c0"\} 0$/m);
  });
});
