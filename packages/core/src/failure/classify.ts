import { findRule, spokenClass } from './classify-text.ts';
import type { ClassifyRule } from './classify-text.ts';
import { type Evidence, examine, type Look, messageOf, type Now } from './evidence.ts';
import type { Failure } from './failure.ts';
import { checkNames } from '../options/check-options.ts';

export interface ClassifyOptions {
  /** Asked in order, before anything built in. */
  rules?: readonly ClassifyRule[];
  /** The wall clock, for a Retry-After date in a response that has no `Date` of its own. */
  nowMs?: number;
}

/**
 * Turns whatever was thrown into data: by your rules, by what it carries (codes, statuses, names, down its causes), by the
 * words of its message, by the members of an AggregateError. Total: no error makes it throw. Only misspelt options do.
 */
export function classify(error: unknown, options?: ClassifyOptions): Failure {
  if (options !== undefined) checkNames('The options of classify', options, optionNames);
  const nowMs = options?.nowMs;
  const clock = nowMs === undefined ? undefined : { now: () => nowMs };
  const failure = examine(error, clock, wordsAndMembers(clock));
  const rule =
    options?.rules && findRule(options.rules, failure, textOf(failure, failure.names ?? []));
  if (rule) {
    failure.class = rule.class;
    if (rule.code) failure.code = rule.code;
    if (rule.counted === false) failure.counted = false;
  }
  return failure;
}

const optionNames = ['rules', 'nowMs'];

/** How many members of an AggregateError are looked at, and how deep. */
const maxMembers = 16;
const maxNesting = 2;

function wordsAndMembers(clock: Now | undefined, nesting = 0): Look {
  return (error, names) => {
    const spoken = spokenClass(textOf(error, names));
    if (spoken) return { class: spoken.class };
    const errors = nesting < maxNesting ? membersOf(error) : [];
    const inside = wordsAndMembers(clock, nesting + 1);
    const members = errors.slice(0, maxMembers).map((member) => examine(member, clock, inside));
    return joined(members, errors.length);
  };
}

/** One of several that may be worth another try makes the whole worth it. */
function joined(members: readonly Failure[], count: number): Evidence | undefined {
  for (const best of ['transient', 'unknown', 'technical', 'business']) {
    const member = members.find((each) => each.class === best);
    if (member) {
      const { class: kind, code, status } = member;
      const whole: Evidence = { class: kind };
      if (code !== undefined) whole.code = code;
      if (status !== undefined) whole.status = status;
      const waitMs = Math.max(...members.map((each) => each.retryAfterMs ?? -1));
      if (waitMs >= 0) whole.retryAfterMs = waitMs;
      // Of members past the limit nothing is known.
      if (count <= maxMembers && members.every((each) => each.notExecuted))
        whole.notExecuted = true;
      return whole;
    }
  }
  return undefined;
}

/** One more than is looked at, so that a longer list can be told. */
function membersOf(error: unknown): unknown[] {
  const { errors } = Object(error) as { errors?: unknown };
  return Array.isArray(errors) ? Array.from(errors.slice(0, maxMembers + 1)) : [];
}

/** `Error` says nothing, and without it a message that is a bare status stays alone. */
function textOf(error: unknown, names: readonly string[]): string {
  return [...names.filter((name) => name !== 'Error'), messageOf(error)].join(': ');
}
