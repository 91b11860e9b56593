/** One operation on NATS under the retry policy of its category. */
import {
  type CategoryName,
  type ExecuteOptions,
  getRetryManager,
  type RetryManager,
} from 'redrive';
import { permanentCodes } from './faults.ts';
import { loadNats } from '../library.ts';

/** Options of `execute` of a retry manager, and the manager itself. `timeoutMs` is that of one attempt (5 s). */
export interface OperationOptions extends Omit<
  ExecuteOptions,
  'idempotencyKey' | 'payload' | 'metadata'
> {
  /** The shared one of `getRetryManager()` unless given. */
  manager?: Pick<RetryManager, 'execute' | 'getPolicy'>;
  /** What events and errors call it, such as `publish to orders.eu`. */
  operation?: string;
}

/** As stores and sinks have it. */
const TIMEOUT_MS = 5000;
/** The client's own timeout comes first: its error says what is wrong. */
const GUARD_MS = 1000;

export async function underCategory<T>(
  category: Extract<CategoryName, `NATS_${string}` | `KV_${string}`>,
  usualName: string,
  options: OperationOptions,
  /** One attempt. What it resolves to after its time is disposed of. */
  attempt: (limits: { timeoutMs: number }) => Promise<T>,
): Promise<T> {
  await loadNats();
  const { manager = getRetryManager(), operation = usualName, ...rest } = options;
  const { timeoutMs = TIMEOUT_MS } = rest;
  const policy = rest.policy ?? manager.getPolicy(category);
  return manager.execute(category, operation, () => attempt({ timeoutMs }), {
    ...rest,
    timeoutMs: timeoutMs + GUARD_MS,
    policy: { ...policy, neverOn: [...(policy.neverOn ?? []), ...permanentCodes] },
  });
}
