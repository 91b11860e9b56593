/** What a broker's adapter answers for a message that was not confirmed, and how it words what it met. */
import type { Failure } from 'redrive';
import type { Published } from '../ports/broker.ts';

type Outcome = 'refused' | 'unknown' | 'lost' | 'away';

export type Impossible = Published & { outcome: 'impossible' };

/** What `publish` answers for a message that was not confirmed. */
export function unpublished(outcome: Outcome, code: string, message: string): Published {
  const failure: Failure = { class: 'transient', code, message };
  if (outcome === 'away' || outcome === 'refused') failure.notExecuted = true;
  return { outcome, failure };
}

/** What `publish` answers for a message that the broker will never take as it is. */
export function impossible(code: string, message: string): Impossible {
  const failure: Failure = { class: 'technical', code, message, notExecuted: true };
  return { outcome: 'impossible', failure };
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
