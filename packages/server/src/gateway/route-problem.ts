/** A call without an answer, as a problem for the client. */
import type { RouteAttemptRecord, RouteError } from 'redrive';
import { Problem, type ProblemCode } from '../http/problem.ts';

const MAX_ATTEMPTS = 20;

export function routeProblem(error: RouteError): Problem {
  const { attempts, retryAfterMs } = error;
  const code = codeOf(error);
  const failures = attempts.filter(({ outcome }) => outcome === 'failed');
  const told = failures.map(({ provider, status }) => `${provider}: ${status}`);
  const list = told.length > 0 ? ` Attempts: ${told.slice(-MAX_ATTEMPTS).join(', ')}.` : '';
  const detail = `${sentences[code]}${error.code === 'NOT_REPEATED' ? UNSAFE : ''}${list}`;
  const wait = retryAfterMs === undefined ? {} : { 'retry-after': seconds(retryAfterMs) };
  return new Problem(code, detail, {
    headers: wait,
    cause: error,
    more: { reason: error.code, attempts: attempts.slice(-MAX_ATTEMPTS).map(viewOf) },
  });
}

type RouteProblemCode = Extract<
  ProblemCode,
  'PROVIDER_FAILED' | 'NO_PROVIDER_AVAILABLE' | 'PROVIDER_TIMEOUT'
>;

const sentences: Readonly<Record<RouteProblemCode, string>> = {
  PROVIDER_FAILED: 'No provider gave an answer.',
  NO_PROVIDER_AVAILABLE: 'No provider can be called now.',
  PROVIDER_TIMEOUT: 'No provider answered in time.',
};

const UNSAFE =
  ' The request may have been executed, so it was not repeated. Send an idempotency-key, or set retry_unsafe for the provider.';

function codeOf({ code, attempts }: RouteError): RouteProblemCode {
  if (code === 'NO_PROVIDERS' || code === 'BUDGET') return 'NO_PROVIDER_AVAILABLE';
  const last = attempts.findLast(({ outcome }) => outcome === 'failed');
  if (code === 'DEADLINE' || last?.status === 'timeout') return 'PROVIDER_TIMEOUT';
  return 'PROVIDER_FAILED';
}

function viewOf({ provider, outcome, status, durationMs }: RouteAttemptRecord): object {
  return { provider, outcome: status ?? outcome, duration_ms: Math.round(durationMs) };
}

function seconds(ms: number): string {
  return String(Math.ceil(ms / 1000));
}
