/** Trails made by `decide`, for work that recovers by a known rule. */
import { describe, expect, it } from 'vitest';
import { auditEntry, type AuditEvent, decisionEntry, policyEntry } from '../audit/audit-events.ts';
import { decide } from '../decide.ts';
import { definePolicy } from '../policy/policy.ts';
import type { Policy } from '../policy/policy-fields.ts';
import { unitRandom } from '../policy/random.ts';

export interface MadeTrail {
  policy: Policy;
  work: number;
  /** Whether an attempt works, by its number, by how long the work waited so far, and a random number. */
  works: (attempt: number, waitedMs: number, random: number) => boolean;
  category?: string;
  operation?: string;
  successes?: boolean;
  strict?: boolean;
  /** Between the first attempts of two pieces of work. */
  apartMs?: number;
}

export const START_MS = Date.UTC(2026, 0, 1);

export function madeTrail(made: MadeTrail): AuditEvent[] {
  const { work, works, category = 'API', operation = 'get', successes, strict } = made;
  const { apartMs = 1000 } = made;
  const policy = definePolicy(made.policy);
  const events: AuditEvent[] = [];
  const write = (atMs: number, entry: object) => {
    const event = { ...entry, timestamp: new Date(atMs).toISOString() } as AuditEvent;
    if (strict === true) delete event.redrive;
    events.push(event);
  };
  if (strict !== true) write(START_MS, policyEntry(policy));
  const subject = { category, operation };
  for (let i = 0; i < work; i++) {
    const key = `${category}-${i}`;
    let waitedMs = 0;
    let previousMs = 0;
    for (let attempt = 1; ; attempt++) {
      const atMs = START_MS + i * apartMs + waitedMs;
      if (works(attempt, waitedMs, unitRandom(7, key, attempt))) {
        const { maxAttempts } = policy;
        const happening = { type: 'retry_succeeded', attempt, maxAttempts } as const;
        if (successes === true) write(atMs, auditEntry(subject, happening));
        break;
      }
      const failure = { class: 'transient', code: 'ECONNRESET', names: ['ResetError'] } as const;
      const facts = { attempt, failure, seed: 1, key, previousMs };
      const decision = decide(policy, facts);
      write(atMs, decisionEntry(subject, { policy, facts, decision }));
      if (decision.action === 'giveUp') break;
      previousMs = decision.delayMs;
      waitedMs += decision.delayMs;
    }
  }
  return events;
}

describe('a made trail', () => {
  it('has an event for every failure', () => {
    const works = (attempt: number) => attempt === 3;
    const types = madeTrail({ policy: {}, work: 1, works }).map((event) => event.event_type);
    expect(types).toEqual(['policy_registered', 'retry_attempt', 'retry_attempt']);
  });
});
