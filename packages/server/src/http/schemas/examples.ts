/** One of each, for the document. A test holds them against their schemas. */

const messageId = '018f3c7e-5a86-7cc3-9a3c-0d2f6a1b9e40';
const destination = { kind: 'queue', address: 'orders' };
const error = { class: 'transient', message: 'connect ECONNREFUSED 10.0.0.7:443' };
const noCustomer = { class: 'business', message: 'no such customer' };

const task = {
  message_id: messageId,
  destination,
  queue: 'orders',
  lane: 'queue:orders',
  status: 'pending',
  in_delivery: false,
  blocked: false,
  cancelling: false,
  retry_count: 1,
  max_retries: 3,
  generation: 0,
  due_at: '2030-01-31T12:00:04.000Z',
  created_at: '2030-01-31T11:59:58.000Z',
  error,
};

const item = {
  id: 17,
  message_id: messageId,
  reason: 'PERMANENT',
  state: 'open',
  error: noCustomer,
  fingerprint: '5f1d7a84db735ba2',
  destination,
  queue: 'orders',
  lane: 'queue:orders',
  retry_count: 0,
  max_retries: 3,
  generation: 0,
  occurrences: 1,
  first_seen_at: '2030-01-31T12:00:00.000Z',
  last_seen_at: '2030-01-31T12:00:00.000Z',
  edited: false,
};

const attempt = {
  attempt: 1,
  generation: 0,
  at: '2030-01-31T12:00:00.000Z',
  duration_ms: 12,
  error,
};

export const examples = {
  criterionRequest: {
    entity: {
      lastAttemptTime: '2030-01-31T12:00:00Z',
      retryDelaySeconds: 60,
      attemptCount: 2,
      jitterEnabled: false,
    },
    entity_id: 'order-7',
  },
  delayAnswer: {
    matches: false,
    reason: 'BACKOFF_WAIT',
    delay_ms: 120_000,
    elapsed_ms: 90_000,
    due_at: '2030-01-31T12:02:00.000Z',
    errors: [],
    warnings: [],
  },
  limitAnswer: {
    matches: true,
    reason: 'RETRIES_EXHAUSTED',
    attempt_count: 3,
    limit: 3,
    errors: [],
    warnings: [],
  },
  item: { destination: 'queue:orders', payload: { order: 7 }, retry_count: 0 },
  receipt: {
    status_of_request: 'accepted',
    message_id: messageId,
    destination,
    queue: 'orders',
    lane: 'queue:orders',
    status: 'pending',
    retry_count: 0,
  },
  receipts: {
    accepted: [{ index: 0, message_id: messageId, result: 'accepted' }],
    rejected: [
      { index: 1, code: 'INVALID_VALUE', path: '/message_id', message: 'A UUID is needed.' },
    ],
  },
  task,
  taskDetail: { ...task, payload: { order: 7 }, attempts: [attempt] },
  acted: { message_id: messageId, destination, result: 'cancelled' },
  reviewItem: item,
  reviewDetail: { ...item, payload: { order: 7 }, attempts: [{ ...attempt, error: noCustomer }] },
  group: {
    fingerprint: '5f1d7a84db735ba2',
    lane: 'queue:orders',
    reason: 'PERMANENT',
    error: noCustomer,
    open: 12,
    first_seen_at: '2030-01-31T12:00:00.000Z',
    last_seen_at: '2030-01-31T12:30:00.000Z',
    owner: 'payments',
  },
  job: {
    id: 3,
    action: 'replay',
    state: 'running',
    by: 'ada',
    total: 1200,
    done: 111,
    skipped: 0,
    failed: 0,
    left: 1089,
    underway: 4,
    taken: 107,
    back: 0,
    canary: [1, 10, 100],
    per_second: 50,
    created_at: '2030-01-31T12:31:00.000Z',
  },
  lane: {
    lane: 'queue:orders',
    state: 'closed',
    running: 2,
    next_in_ms: 340,
    limits: { concurrency: 1000, timeout_ms: 15_000, failures: 5 },
  },
};
