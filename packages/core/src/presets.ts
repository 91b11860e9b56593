import { definePolicy } from './policy.ts';
import type { Policy } from './policy-fields.ts';

/** Durable work waits for hours where a call in process waits for a minute, and retries only what passes by itself. */
const durable = { maxRetryAfter: '24h', retryOn: ['transient'] } as const satisfies Policy;
const notification = { ...durable, jitter: 'up', jitterRatio: 0.3 } as const satisfies Policy;
const category = { jitter: 'around', jitterRatio: 0.1, retryOn: ['any'] } as const satisfies Policy;

/** The policy of a category: tried so often, seconds of base and cap. */
function tries(maxAttempts: number, baseSeconds: number, capSeconds: number) {
  return definePolicy({
    ...category,
    maxAttempts,
    base: baseSeconds * 1000,
    cap: capSeconds * 1000,
  });
}

const categories = /* @__PURE__ */ (() =>
  Object.freeze({
    NATS_CONNECT: tries(5, 1, 30),
    NATS_PUBLISH: tries(3, 0.5, 10),
    NATS_SUBSCRIBE: tries(3, 0.5, 10),
    NATS_STREAM_CREATE: tries(2, 2, 60),
    KV_CREATE: tries(2, 1, 30),
    KV_GET: tries(3, 0.5, 10),
    KV_PUT: tries(3, 0.5, 10),
    KV_DELETE: tries(2, 1, 30),
    EXECUTION_INTENT: tries(2, 2, 60),
    EXECUTION_CONTAINMENT: tries(2, 2, 60),
    EXECUTION_EXPIRATION: tries(1, 1, 30),
    APPROVAL_CHECK: tries(3, 1, 30),
    APPROVAL_GRANT: tries(2, 2, 60),
    REPLAY_PROCESSING: tries(1, 1, 30),
    REPLAY_VALIDATION: tries(2, 1, 30),
    API_REQUEST: tries(3, 1, 30),
    API_VALIDATION: tries(2, 0.5, 10),
  }))();

/** Policies by name, ready to use or to spread into one's own. */
export const presets = /* @__PURE__ */ (() =>
  Object.freeze({
    default: definePolicy(),
    scheduler: definePolicy({ ...durable, base: '2s', cap: '60s', jitter: 'add', jitterAdd: '1s' }),
    'notification.critical': definePolicy({
      ...notification,
      maxAttempts: 11,
      base: '10s',
      cap: '300s',
    }),
    'notification.high': definePolicy({
      ...notification,
      maxAttempts: 9,
      base: '30s',
      cap: '900s',
    }),
    'notification.medium': definePolicy({
      ...notification,
      maxAttempts: 6,
      base: '120s',
      cap: '3600s',
    }),
    'notification.low': definePolicy({
      ...notification,
      maxAttempts: 4,
      base: '300s',
      cap: '7200s',
    }),
    /** The criterion answers by time alone; how often is its siblings' business. */
    criterion: definePolicy({
      ...durable,
      maxAttempts: 1_000_000_000,
      base: '60s',
      cap: '3600s',
      jitter: 'up',
      jitterRatio: 0.1,
    }),
    fallback: definePolicy({
      maxAttempts: 2,
      base: '100ms',
      cap: '5000ms',
      jitter: 'up',
      jitterRatio: 0.1,
      hardCap: true,
    }),
    /** What an unknown category gets. */
    category: tries(3, 1, 30),
    categories,
  }))();
