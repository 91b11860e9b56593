/** Every metric of the service, with the sentence that explains it. */
import { PlainHistogram } from './plain-histogram.ts';
import { notificationMetrics } from './notification-metrics.ts';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

export type MetricSet = ReturnType<typeof createMetricSet>;

const fastSeconds = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
];
const driftSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 3600];
const evaluationSeconds = [
  0.000_005, 0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.005, 0.025, 0.1,
  0.5, 2,
];
const firstByteSeconds = [
  0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300,
];
const batchSizes = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000];

/** One metric, as it is documented. */
interface Described {
  name: string;
  type: string;
  labels: readonly string[];
  help: string;
}

/** All but those of the process, which depend on where it runs. */
export function describeMetrics(): Described[] {
  const { registry, ...metrics } = createMetricSet();
  registry.clear();
  return Object.values(metrics).map((metric) => {
    const { name, help, labelNames, type } = metric as unknown as {
      name: string;
      help: string;
      labelNames: readonly string[];
      type: string;
    };
    return { name, type, labels: labelNames, help };
  });
}

export function createMetricSet() {
  const registry = new Registry();
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Counter<L>({ name, help, labelNames, registers });
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Gauge<L>({ name, help, labelNames, registers });
  const histogram = <L extends string>(
    name: string,
    help: string,
    buckets: number[],
    labelNames: readonly L[] = [],
  ) => new Histogram<L>({ name, help, buckets, labelNames, registers });

  const set = {
    registry,

    scheduled: counter(
      'retries_scheduled_total',
      'Executions that were scheduled: accepted messages and tasks, and failed executions that wait for another.',
      ['queue'],
    ),
    executed: counter(
      'retries_executed_total',
      'Executions by outcome. success: done, or taken over by the broker. failed: unroutable, refused, or a failed outcome.',
      ['queue', 'status'],
    ),
    exhausted: counter(
      'retries_exhausted_total',
      'Tasks whose retries are used up. Other ways into the inbox are in redrive_inbox_entered_total.',
      ['queue'],
    ),
    depth: gauge(
      'retry_queue_depth',
      'Tasks with status pending in the store, those in delivery included. As old as redrive_census_age_seconds says.',
    ),

    retryRate: gauge(
      'retry_rate',
      'Retries in the last minute by category, as this instance has written them to the audit trail.',
      ['category'],
    ),

    drift: histogram(
      'redrive_drift_seconds',
      'How long after its due time an execution began, by kind of destination.',
      driftSeconds,
      ['kind'],
    ),
    oldestDue: gauge(
      'redrive_oldest_due_age_seconds',
      'For how long the task that waits longest past its due time has been due; 0: nothing is overdue.',
    ),
    delivery: histogram(
      'redrive_delivery_duration_seconds',
      'Deliveries by kind of destination and outcome. Publishes are in redrive_publish_duration_seconds.',
      fastSeconds,
      ['kind', 'outcome'],
    ),
    running: gauge('redrive_deliveries_running', 'Deliveries under way in this instance.'),
    held: gauge('redrive_tasks_held', 'Tasks leased by this instance, those in delivery included.'),
    unsettled: gauge(
      'redrive_tasks_unsettled',
      'Deliveries that ended and whose outcome is not stored yet.',
    ),
    leasesLost: counter(
      'redrive_leases_lost_total',
      'Deliveries whose lease was gone when they were to be settled.',
    ),
    duplicates: counter(
      'redrive_duplicates_total',
      'Possible duplicates by cause. unsettled: its confirm was lost, or it was started again after a lease without a settle. redelivered: taken in once more after an acknowledgement was lost. lease_lost: its lease ended while it ran.',
      ['cause'],
    ),
    known: counter(
      'redrive_arrivals_known_total',
      'Messages, reports and submissions that were known already and changed nothing.',
    ),

    inboxOpen: gauge(
      'redrive_inbox_open',
      'Open items of the inbox by reason. As old as redrive_census_age_seconds says.',
      ['reason'],
    ),
    inboxEntered: counter('redrive_inbox_entered_total', 'What entered the inbox, by reason.', [
      'reason',
    ]),

    laneState: gauge(
      'redrive_lane_state',
      'The state of each lane: 1 where it is in that state. Under lane="other" the number of such lanes.',
      ['lane', 'state'],
    ),

    blockedTasks: gauge(
      'redrive_lane_blocked_tasks',
      'Tasks by lane that wait behind an open item of the inbox with the same ordering key.',
      ['lane'],
    ),
    blockedItems: gauge(
      'redrive_lane_blocked_items',
      'Open items of the inbox by lane that tasks with the same ordering key wait behind.',
      ['lane'],
    ),

    store: histogram(
      'redrive_store_duration_seconds',
      'Calls of the store by operation, failed ones included.',
      fastSeconds,
      ['operation'],
    ),
    storeErrors: counter(
      'redrive_store_errors_total',
      'Calls of the store that failed, by operation.',
      ['operation'],
    ),

    publish: histogram(
      'redrive_publish_duration_seconds',
      'From handing a message to the broker to its answer.',
      fastSeconds,
    ),
    publishBatch: histogram(
      'redrive_publish_batch_messages',
      'Messages per batch that was handed to the broker.',
      batchSizes,
    ),
    published: counter(
      'redrive_publish_total',
      'Messages for the broker by outcome. unknown, lost: no confirm came, so it may have been taken, and is sent again. away: not sent, since the broker was not ready.',
      ['outcome'],
    ),
    intake: counter(
      'redrive_intake_messages_total',
      'Messages of a source by result. taken: stored and acknowledged. unreadable: in the inbox as it came, and acknowledged. oversized: over 16 MiB, published to redrive.oversized and acknowledged. returned: given back to the broker.',
      ['source', 'result'],
    ),
    expirationDropped: counter(
      'redrive_expiration_dropped_total',
      'Messages of a source that had a time to live of their own (the AMQP property expiration). It is not carried on: what is published again does not expire.',
      ['source'],
    ),
    sourceState: gauge(
      'redrive_source_state',
      'The state of each source: 1 where it is in that state.',
      ['source', 'state'],
    ),
    brokerState: gauge(
      'redrive_broker_state',
      'The state of the connection to each broker (rabbitmq, nats, kafka): 1 where it is in that state.',
      ['broker', 'state'],
    ),
    outboxStuck: gauge(
      'redrive_outbox_stuck',
      'Review messages that could not be published so far.',
    ),
    auditDropped: counter(
      'redrive_audit_dropped_total',
      'Events of the audit trail that were lost because its sink did not take them.',
    ),

    censusAge: gauge(
      'redrive_census_age_seconds',
      'How old retry_queue_depth, redrive_oldest_due_age_seconds and redrive_inbox_open are.',
    ),
    censusDuration: gauge('redrive_census_duration_seconds', 'How long the last count took.'),
    scrapeErrors: counter(
      'redrive_scrape_errors_total',
      'Parts of this page that could not be read and show what was known before.',
      ['part'],
    ),
    logLinesLost: counter(
      'redrive_log_lines_lost_total',
      'Lines of the log that could not be written, or that nobody read. The service goes on without them.',
    ),
    eventReaders: gauge('redrive_event_readers', 'Connections that read /api/v1/events.'),

    criterionEvaluations: counter(
      'criterion_evaluations_total',
      'Evaluations of the criteria by result. error: the evaluation failed, see criterion_errors_total.',
      ['criterion', 'result'],
    ),
    criterionErrors: counter(
      'criterion_errors_total',
      'Failed evaluations by code. DATA_UNAVAILABLE, INVALID_TIME, EVALUATION_TIMEOUT: for operations. CALCULATION_ERROR, OVERFLOW_ERROR: for development.',
      ['criterion', 'code'],
    ),
    criterionDuration: new PlainHistogram({
      name: 'criterion_evaluation_duration_seconds',
      help: 'How long one evaluation took, without its way over the network.',
      labels: ['criterion'],
      buckets: evaluationSeconds,
      register: registry,
    }),
    criterionWaiting: gauge(
      'criterion_review_waiting',
      'Failed evaluations that wait to be written to the inbox.',
    ),
    criterionDropped: counter(
      'criterion_review_dropped_total',
      'Failed evaluations that were not written to the inbox, because too many waited or the store refused them.',
    ),
    cyodaConnected: gauge(
      'cyoda_member_connected',
      '1 while the member is joined to the Cyoda server, else 0. Absent without CYODA_URL.',
    ),
    cyodaJoins: counter(
      'cyoda_joins_total',
      'Joins of the Cyoda server, by result. joined: the server greeted. CYODA_…: the code of what kept the member from joining, or ended its stream.',
      ['result'],
    ),
    cyodaRequests: counter(
      'cyoda_requests_total',
      'Requests of the Cyoda server by outcome. failed: answered with the code of an error. refused: unknown name, or unreadable. dropped: the stream was gone before the answer.',
      ['outcome'],
    ),
    routeDecisions: counter(
      'redrive_route_decisions_total',
      'Routing decisions by policy, result (ok, retry, error) and provider. policy="inline": the policy came with the request. Past 1000 series policy and provider are "other".',
      ['policy', 'result', 'provider'],
    ),
    routeOutcomes: counter(
      'redrive_route_outcomes_total',
      'Calls of providers that ended, reported or made by this instance, by status: ok, timeout, connection_error, rate_limit, 5xx, 4xx, other.',
      ['policy', 'provider', 'status'],
    ),
    routeProviders: gauge(
      'redrive_route_provider_state',
      'The state of each provider of a routing policy: 1 where it is closed, open, half_open or cooling. Past 1000 series policy and provider are "other", with the number of providers.',
      ['policy', 'provider', 'state'],
    ),
    ...notificationMetrics({ counter, gauge, histogram }),
    clockSkew: gauge(
      'redrive_clock_skew_seconds',
      "How far this host's clock is ahead of the database's; negative: behind. 0 within what can be told.",
    ),

    gatewayRequests: counter(
      'redrive_gateway_requests_total',
      'Requests to the gateway by policy and outcome. answered: with the whole answer of a provider. failed: no provider had a good one. cut: the answer broke off. client_gone: the client left. refused: not routed; the policy is empty where it is not known.',
      ['policy', 'outcome'],
    ),
    gatewayFirstByte: new PlainHistogram({
      name: 'redrive_gateway_first_byte_seconds',
      help: 'From the arrival of a request at the gateway to the first byte of its answer, by policy.',
      labels: ['policy'],
      buckets: firstByteSeconds,
      register: registry,
    }),
    gatewayRunning: gauge('redrive_gateway_running', 'Requests under way in the gateway.'),

    http: new PlainHistogram({
      name: 'http_request_duration_seconds',
      help: 'Requests to the API by method, route and status.',
      labels: ['method', 'route', 'status'],
      buckets: fastSeconds,
      register: registry,
    }),
  };
  collectDefaultMetrics({ register: registry });
  return set;
}
