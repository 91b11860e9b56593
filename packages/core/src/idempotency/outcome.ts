import { saidBy, textIn } from '../options/faults.ts';
import { IdempotencyError, type StoredFailure } from './idempotency-error.ts';
import { type JsonLoss, jsonLoss } from './json-loss.ts';
import type { Outcome, StoredRecord } from './store.ts';

const MAX_FAILURE_TEXT = 1024;
const MAX_PATH = 100;

/** A result as JSON. What JSON cannot carry or is too large becomes a record without the value, which says why. */
export function outcomeOf(result: unknown, maxBytes: number): Outcome {
  if (result === undefined) return { kind: 'undefined', text: '' };
  let text: string | undefined;
  let loss: JsonLoss | undefined;
  try {
    text = JSON.stringify(result);
    loss = jsonLoss(result);
  } catch (error) {
    return unstored(`it cannot be written as JSON (${saidBy(error)})`);
  }
  // Of a function or a symbol nothing is left.
  if (text === undefined) return unstored(`a ${typeof result} cannot be written as JSON`);
  if (loss) {
    const place = loss.path === '' ? '' : ` at ${loss.path.slice(0, MAX_PATH)}`;
    return unstored(`JSON would lose ${loss.lost}${place}`);
  }
  // No character has more than three bytes of UTF-8 for each of its units: most results need not be counted.
  const bytes = text.length * 3 <= maxBytes ? 0 : byteLength(text);
  return bytes > maxBytes
    ? unstored(`it has ${bytes} bytes of JSON, and the limit is ${maxBytes} (maxResultBytes)`)
    : { kind: 'value', text };
}

/** A failure as JSON: its name, its message and its code, and nothing else of it. */
export function failureOutcome(error: unknown): Outcome {
  const code = textIn(error, 'code');
  const failure: StoredFailure = {
    name: (textIn(error, 'name') ?? 'Error').slice(0, MAX_FAILURE_TEXT),
    message: saidBy(error),
    ...(code === undefined ? {} : { code: code.slice(0, MAX_FAILURE_TEXT) }),
  };
  return { kind: 'failure', text: JSON.stringify(failure) };
}

/** The result that was stored. Throws where a failure or no value was. */
export function resultOf({ outcome: { kind, text } }: Pick<StoredRecord, 'outcome'>): unknown {
  switch (kind) {
    case 'undefined':
      return undefined;
    case 'value':
      return JSON.parse(text) as unknown;
    case 'failure':
      throw failedBefore(JSON.parse(text) as StoredFailure);
    case 'unstored':
      throw new IdempotencyError(
        'RESULT_NOT_STORED',
        `The work was done before, but its result was not stored: ${text}. It is not run again.`,
      );
  }
}

function failedBefore(failure: StoredFailure): IdempotencyError {
  return new IdempotencyError(
    'IDEMPOTENCY_FAILED_BEFORE',
    `The work failed before, and its failure was stored: ${failure.name}: ${failure.message}`,
    { failure },
  );
}

function unstored(text: string): Outcome {
  return { kind: 'unstored', text };
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}
