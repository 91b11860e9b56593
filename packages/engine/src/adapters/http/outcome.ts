/** What an exchange means for the task. Pure. */
import type { IncomingHttpHeaders } from 'node:http';
import { classify, type Failure, parseRetryAfter } from 'redrive';
import type { Outcome } from '../../ports/delivery.ts';
import { answerText, harmlessMessage } from './answer.ts';
import type { Ending } from './limit.ts';

type Failed = Extract<Outcome, { type: 'failed' }>;

/** `notExecuted` where nothing was sent yet. */
export function endedOutcome(ending: Ending, origin: string, reached: boolean): Outcome {
  const failure: Failure =
    ending === 'timeout'
      ? {
          class: 'transient',
          code: 'TIMEOUT',
          message: `No ${reached ? 'answer from' : 'connection to'} ${origin} in time.`,
        }
      : { class: 'technical', code: 'ABORT_ERR', message: 'The delivery was aborted.' };
  return failed(reached ? failure : { ...failure, notExecuted: true });
}

/**
 * A connection that failed says nothing about the task, so all of it is transient: also a certificate that has run
 * out or names another host. Nothing was sent then, the next one may be right, and until it is the whole lane is
 * down: a permanent failure would empty the lane into the inbox. What is refused here stays refused.
 */
export function brokenOutcome(
  error: unknown,
  origin: string,
  reached: boolean,
  hidden: RegExp | undefined,
): Failed {
  const { code, message, names, notExecuted } = classify(error);
  const refused = code === 'ADDRESS_REFUSED';
  const why = message || code || 'the connection failed';
  const failure: Failure = {
    class: refused ? 'technical' : 'transient',
    code: code ?? 'CONNECTION_FAILED',
    message: harmlessMessage(refused ? why : `No answer from ${origin}: ${why}`, hidden),
  };
  if (names && names.length > 0) failure.names = names;
  if (notExecuted || !reached) failure.notExecuted = true;
  return failed(failure);
}

/** Of a status that is not 2xx. */
export function answeredOutcome(
  answered: { status: number; headers: IncomingHttpHeaders; body: Uint8Array | undefined },
  url: URL,
  nowMs: number,
  hidden: RegExp | undefined,
): Outcome {
  const { status, headers, body } = answered;
  const failure: Failure = {
    class: classOf(status),
    code: `HTTP_${status}`,
    message: `${url.origin} answered ${status}.`,
    status,
  };
  if (status >= 300 && status < 400) {
    failure.message = harmlessMessage(redirectMessage(url, status, headers.location), hidden);
  }
  if (status === 429) failure.notExecuted = true;
  if (failure.class === 'transient') {
    const retryAfterMs = parseRetryAfter(headers, nowMs, status);
    if (retryAfterMs !== undefined) failure.retryAfterMs = retryAfterMs;
  }
  const answer = body && answerText(body, hidden);
  return answer === undefined ? failed(failure) : { type: 'failed', failure, answer };
}

export function failed(failure: Failure): Failed {
  return { type: 'failed', failure };
}

/** The task cannot be sent, whenever it is tried. */
export function invalidOutcome(message: string): Outcome {
  // It may name a header that is none.
  const shown = harmlessMessage(message, undefined);
  return failed({ class: 'technical', code: 'INVALID_REQUEST', message: shown, notExecuted: true });
}

function classOf(status: number): Failure['class'] {
  if (status === 408 || status === 425 || status === 429) return 'transient';
  // A status that does not exist (999) counts as the server's fault, as HTTP has it.
  if (status >= 500) return 'transient';
  return status >= 400 ? 'business' : 'technical';
}

/** Only the origin: the rest may hold tokens. */
function redirectMessage(url: URL, status: number, location: string | undefined): string {
  const target = location === undefined ? null : URL.parse(location, url.href);
  // Of `data:` and its like the origin is 'null'.
  const where = target && target.origin !== 'null' ? ` and points to ${target.origin}` : '';
  return `${url.origin} answered ${status}${where}: redirects are not followed. Submit to the final URL.`;
}
