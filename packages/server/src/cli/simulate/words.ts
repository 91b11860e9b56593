/** Policies, worlds and numbers in words, for the screen and for the picture. */
import { type DefinedPolicy, type DefinedWorld, delayFor, type Policy } from 'redrive';
import { count, duration } from '../terminal/terminal.ts';
import type { outcomes } from './columns.ts';

export const outcomeWords: Record<(typeof outcomes)[number], string> = {
  served: 'served',
  timedOut: 'no longer waited for',
  overloaded: 'refused: overloaded',
  down: 'refused: down',
};

/** The most attempts that a policy can name stand for no limit. */
const NO_LIMIT = 1_000_000_000;
const MAX_WAITS = 8;

/** The waits one by one, without jitter, and what jitter makes of them. */
export function waitsInWords(policy: DefinedPolicy): string {
  const plain = { ...(policy as Policy), jitter: 'none' } as const;
  const waitAfter = (attempt: number): string => duration(delayFor(plain, { attempt }));
  const total = policy.maxAttempts - 1;
  if (total === 0) return 'none';
  const last = waitAfter(total);
  const waits: string[] = [];
  for (let attempt = 1; attempt <= Math.min(total, MAX_WAITS); attempt++) {
    const wait = waitAfter(attempt);
    // From here on it is always the same.
    if (wait === last && attempt < total) {
      const rest = attempt === 1 ? `${wait} each time` : `then ${wait} each time`;
      return [...waits, rest].join(', ') + jitterInWords(policy);
    }
    waits.push(wait);
  }
  const more = total > MAX_WAITS ? ` ... ${last}` : '';
  return waits.join(', ') + more + jitterInWords(policy);
}

function jitterInWords({ jitter, jitterRatio, jitterAdd }: DefinedPolicy): string {
  const ratio = percent(jitterRatio, 1);
  return {
    none: '',
    up: `; jitter adds up to ${ratio}`,
    around: `; jitter makes them up to ${ratio} shorter or longer`,
    add: `; jitter adds up to ${duration(jitterAdd)}`,
    full: '; jitter draws from 0 to that',
    equal: '; jitter draws from half of that to that',
    decorrelated: '; jitter draws from the first to three times the one before',
  }[jitter];
}

export function policyInWords(policy: DefinedPolicy, withJitter = true): string {
  const { strategy, maxAttempts, base, cap, multiplier, jitter, schedule = [] } = policy;
  const growth = {
    exponential: `waits from ${duration(base)}, times ${multiplier}, up to ${duration(cap)}`,
    linear: `waits of ${duration(base)} more each time, up to ${duration(cap)}`,
    fixed: `waits of ${duration(Math.min(base, cap))}`,
    schedule: `waits of ${schedule.slice(0, 5).map(duration).join(', ')}${schedule.length > 5 ? ' ...' : ''}`,
  }[strategy];
  const limits = [
    policy.attemptTimeout === undefined ? '' : `, ${duration(policy.attemptTimeout)} an attempt`,
    policy.deadline === undefined ? '' : `, ${duration(policy.deadline)} in all`,
  ].join('');
  const attempts = maxAttempts < NO_LIMIT ? count(maxAttempts) : 'any number of';
  return `${attempts} attempts, ${growth}${withJitter ? `, jitter ${jitter}` : ''}${limits}`;
}

export function worldInWords(world: DefinedWorld): string {
  const when = world.outageStart > 0 ? ` after ${duration(world.outageStart)}` : '';
  const down =
    world.outage > 0 ? `is down for ${duration(world.outage)}${when} and then` : 'is up and';
  const call =
    world.spread > 0 ? `call within ${duration(world.spread)}` : 'call at the same moment';
  return `${count(world.clients)} clients ${call}; the service ${down} serves ${count(world.capacity)} a second`;
}

export function percent(part: number, whole: number): string {
  if (whole === 0) return '0 %';
  const share = (100 * part) / whole;
  // 999 of 1000 are not all of them.
  const rounded = share > 99 && share < 100 ? Math.floor(share * 10) / 10 : Math.round(share);
  return `${rounded} %`;
}
