import type { Failure } from '../../failure/failure.ts';

const timeouts = /TIMEOUT|ETIMEDOUT|DEADLINE/;
const connections =
  /^(?:E(?:CONN(?:REFUSED|RESET|ABORTED)|(?:NET|HOST)(?:UNREACH|DOWN)|PIPE|AI_AGAIN|NOTFOUND)|UND_ERR_SOCKET|ERR_STREAM_PREMATURE_CLOSE|FETCH_FAILED|UNAVAILABLE|STREAM_CUT)$/;

/** A failure in the words that rules compare: `timeout`, `connection_error`, `rate_limit`, a status code, `5xx`, `4xx`, `error`. */
export function statusOfFailure({ status, code = '', class: kind }: Failure): string {
  if (status === 429 || code === 'RESOURCE_EXHAUSTED') return 'rate_limit';
  if (status !== undefined) return String(status);
  if (timeouts.test(code)) return 'timeout';
  if (connections.test(code)) return 'connection_error';
  if (code === 'INTERNAL' || code === 'DATA_LOSS') return '5xx';
  return kind === 'business' ? '4xx' : 'error';
}

/** Whether a status says that the provider is in trouble. The caller's own faults and rate limits do not. */
export function countsForBreaker(status: string): boolean {
  return status === 'timeout' || status === 'connection_error' || /^5(?:xx|\d\d)$/.test(status);
}

export function isRateLimit(status: string): boolean {
  return status === 'rate_limit' || status === '429';
}

/** Whether a report says that the call worked. */
export function isSuccess(status: string): boolean {
  return status === 'ok' || /^2\d\d$/.test(status);
}
