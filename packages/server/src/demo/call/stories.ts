/** Three calls, and what becomes of each. */
import type { Attempt, Clock, Policy } from 'redrive';

export interface Story {
  title: string;
  /** The code that the call stands for. */
  code: readonly string[];
  policy: Policy;
  call: (attempt: Attempt, clock: Clock) => Promise<string>;
}

export const policy = {
  maxAttempts: 6,
  base: '400ms',
  cap: '4s',
  jitter: 'equal',
  attemptTimeout: '800ms',
  deadline: '15s',
} as const satisfies Policy;

export const stories: readonly Story[] = [
  {
    title: 'A call that fails in three ways before it works',
    code: [
      'const policy = {',
      "  maxAttempts: 6, base: '400ms', cap: '4s', jitter: 'equal',",
      "  attemptTimeout: '800ms', deadline: '15s',",
      '};',
      'await retry(placeOrder, policy);',
    ],
    policy,
    async call({ attempt, signal }, clock) {
      if (attempt === 3) return neverAnswers(signal);
      await pause(clock, 150);
      if (attempt === 1) throw failure('connect ECONNREFUSED', { code: 'ECONNREFUSED' });
      if (attempt === 2)
        throw failure('try later', { status: 503, headers: { 'retry-after': '1' } });
      return 'order 4711 is placed';
    },
  },
  {
    title: 'A call that no retry can cure',
    code: ['await retry(placeOrder, policy);'],
    policy,
    async call(_attempt, clock) {
      await pause(clock, 150);
      throw failure('the card was declined', { status: 422 });
    },
  },
  {
    title: 'A server that asks for more patience than a call has',
    code: ["await retry(placeOrder, { ...policy, maxRetryAfter: '10s' });"],
    policy: { ...policy, maxRetryAfter: '10s' },
    async call(_attempt, clock) {
      await pause(clock, 150);
      throw failure('too many requests', { status: 429, headers: { 'retry-after': '120' } });
    },
  },
];

export function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(resolve, ms);
  });
}

function neverAnswers(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error));
  });
}

function failure(message: string, details: object): Error {
  return Object.assign(new Error(message), details);
}
