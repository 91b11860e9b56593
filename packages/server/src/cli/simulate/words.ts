/** Policies, worlds and numbers in words, for the screen and for the picture. */
import type { DefinedPolicy, DefinedWorld } from 'redrive';
import { count, duration } from '../terminal.ts';
import type { outcomes } from './columns.ts';

export const outcomeWords: Record<(typeof outcomes)[number], string> = {
  served: 'served',
  timedOut: 'no longer waited for',
  overloaded: 'refused: overloaded',
  down: 'refused: down',
};

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
  return `${count(maxAttempts)} attempts, ${growth}${withJitter ? `, jitter ${jitter}` : ''}${limits}`;
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
