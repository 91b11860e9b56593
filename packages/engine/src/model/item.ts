import type { Failure } from 'redrive';
import { hash64 } from 'redrive/internal';
import type { NewItem } from '../ports/inbox.ts';
import type { Reason } from './task.ts';

/** The inbox item of a failure. */
export function itemOf(reason: Reason, failure: Failure, lane: string): NewItem {
  return { reason, failure, fingerprint: fingerprintOf(failure, lane) };
}

/** Failures of one cause have one fingerprint: class, code, lane, and the message without what varies in it. */
function fingerprintOf(failure: Failure, lane: string): string {
  return hash64(
    [failure.class, failure.code ?? '', normalise(failure.message ?? ''), lane].join('\n'),
  );
}

const MAX_MESSAGE = 500;

/** Ids, numbers, times and quoted values differ from one failure to the next of the same cause. */
function normalise(message: string): string {
  return message
    .slice(0, MAX_MESSAGE)
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, '<id>')
    .replace(/'[^']*'|"[^"]*"/g, '<text>')
    .replace(/\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b/gi, '<id>')
    .replace(/\d+/g, '<n>');
}
