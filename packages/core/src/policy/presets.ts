import { type CategoryName, categoryMatrix } from '../categories/matrix.ts';
import { type DefinedPolicy, definePolicy } from './policy.ts';
import type { Policy } from './policy-fields.ts';

/** Durable work waits for hours where a call in process waits for a minute, and retries only what passes by itself. */
const durable = { maxRetryAfter: '24h', retryOn: ['transient'] } as const satisfies Policy;
/** The code of a failed notification is optional, so a failure that nobody can name is retried too. */
const notification = {
  ...durable,
  retryOn: ['transient', 'unknown'],
  jitter: 'up',
  jitterRatio: 0.3,
} as const satisfies Policy;
const category = { jitter: 'around', jitterRatio: 0.1, retryOn: ['any'] } as const satisfies Policy;

/** The policies of the categories, by their matrix. */
const categories = /* @__PURE__ */ (() =>
  Object.freeze(
    Object.fromEntries(
      Object.entries(categoryMatrix).map(([name, { maxAttempts, base, cap }]) => [
        name,
        definePolicy({ ...category, maxAttempts, base, cap }),
      ]),
    ) as Readonly<Record<CategoryName, DefinedPolicy>>,
  ))();

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
    category: definePolicy({ ...category, maxAttempts: 3, base: '1s', cap: '30s' }),
    categories,
  }))();
