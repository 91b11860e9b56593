import type { Policy } from '../policy/policy-fields.ts';

interface CategoryRow extends Required<Pick<Policy, 'maxAttempts' | 'base' | 'cap'>> {
  useCase: string;
}

/** The categories of operations, as data. All of them double their delays and spread them by a tenth around. */
export const categoryMatrix = {
  NATS_CONNECT: {
    maxAttempts: 5,
    base: 1000,
    cap: 30000,
    useCase: 'Opening a connection',
  },
  NATS_PUBLISH: {
    maxAttempts: 3,
    base: 500,
    cap: 10000,
    useCase: 'Publishing a message',
  },
  NATS_SUBSCRIBE: {
    maxAttempts: 3,
    base: 500,
    cap: 10000,
    useCase: 'Subscribing to a subject',
  },
  NATS_STREAM_CREATE: {
    maxAttempts: 2,
    base: 2000,
    cap: 60000,
    useCase: 'Setting up a stream',
  },
  KV_CREATE: {
    maxAttempts: 2,
    base: 1000,
    cap: 30000,
    useCase: 'Creating a bucket',
  },
  KV_GET: {
    maxAttempts: 3,
    base: 500,
    cap: 10000,
    useCase: 'Reading a value',
  },
  KV_PUT: {
    maxAttempts: 3,
    base: 500,
    cap: 10000,
    useCase: 'Writing a value',
  },
  KV_DELETE: {
    maxAttempts: 2,
    base: 1000,
    cap: 30000,
    useCase: 'Deleting a value',
  },
  EXECUTION_INTENT: {
    maxAttempts: 2,
    base: 2000,
    cap: 60000,
    useCase: 'Executing an intent',
  },
  EXECUTION_CONTAINMENT: {
    maxAttempts: 2,
    base: 2000,
    cap: 60000,
    useCase: 'Containing something that went wrong',
  },
  EXECUTION_EXPIRATION: {
    maxAttempts: 1,
    base: 1000,
    cap: 30000,
    useCase: 'Expiring things in batches: the next batch is the retry',
  },
  APPROVAL_CHECK: {
    maxAttempts: 3,
    base: 1000,
    cap: 30000,
    useCase: 'Asking whether something is approved',
  },
  APPROVAL_GRANT: {
    maxAttempts: 2,
    base: 2000,
    cap: 60000,
    useCase: 'Granting an approval',
  },
  REPLAY_PROCESSING: {
    maxAttempts: 1,
    base: 1000,
    cap: 30000,
    useCase: 'Large replays: repeated as a whole by whoever asked for them',
  },
  REPLAY_VALIDATION: {
    maxAttempts: 2,
    base: 1000,
    cap: 30000,
    useCase: 'Validating a replay',
  },
  API_REQUEST: {
    maxAttempts: 3,
    base: 1000,
    cap: 30000,
    useCase: 'Calling an API',
  },
  API_VALIDATION: {
    maxAttempts: 2,
    base: 500,
    cap: 10000,
    useCase: 'Validating input by an API',
  },
} as const satisfies Readonly<Record<string, CategoryRow>>;

export type CategoryName = keyof typeof categoryMatrix;
