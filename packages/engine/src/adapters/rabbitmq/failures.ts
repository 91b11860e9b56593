/** What goes wrong between here and the broker, in one place: codes, sentences, and nothing secret. */
import type { Failure } from 'redrive';
import type { Published } from '../../ports/broker.ts';

type Outcome = 'refused' | 'unknown' | 'lost' | 'away';

/** What `publish` answers for a message that was not confirmed. */
export function unpublished(outcome: Outcome, code: string, message: string): Published {
  const failure: Failure = { class: 'transient', code, message };
  if (outcome === 'away' || outcome === 'refused') failure.notExecuted = true;
  return { outcome, failure };
}

/** Why there is no connection, for people. A URL never stands in it. */
export function whyNoConnection(error: unknown): string {
  const text = textOf(error);
  if (text.includes('ACCESS_REFUSED') || text.includes('ACCESS-REFUSED')) {
    return 'The broker refused the user or the password of the URL.';
  }
  // The broker closes the connection instead of opening it.
  if (text.includes('Expected ConnectionOpenOk')) {
    return 'The broker did not open the virtual host of the URL: it is missing, or the user may not enter it.';
  }
  return `The broker cannot be reached: ${text}`;
}

/** The first line of what somebody threw. */
export function textOf(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  // Several addresses were tried: the first of them says enough.
  if (text === 'AggregateError' && error instanceof AggregateError && error.errors.length > 0) {
    return textOf(error.errors[0]);
  }
  return text.split('\n', 1)[0]!.slice(0, 500);
}

/** The limit that the broker names when it closes a channel for a message over it. */
export function messageLimitIn(text: string): number | undefined {
  const limit = /larger than configured max size (\d+)/.exec(text)?.[1];
  return limit === undefined ? undefined : Number(limit);
}
