/** The retries of each priority: a preset of core, or what the configuration makes of it. Pure. */
import {
  type DefinedPolicy,
  definePolicy,
  type DelayFacts,
  delayFor,
  type Policy,
  presets,
} from 'redrive';
import { defined, didYouMean, nearest } from 'redrive/internal';
import { NotificationError } from '../errors.ts';
import { priorities, type Priority } from './notification.ts';

export type PriorityPolicies = Readonly<Record<Priority, DefinedPolicy>>;

/** The lanes of waiting: a queue of its own for each, so that a flood in the one is none in the other. */
export const lanes = ['urgent', 'bulk'] as const;
export type Lane = (typeof lanes)[number];

export const laneOfPriority: Readonly<Record<Priority, Lane>> = {
  critical: 'urgent',
  high: 'urgent',
  medium: 'bulk',
  low: 'bulk',
};

export const priorityPolicies: PriorityPolicies = Object.freeze({
  critical: presets['notification.critical'],
  high: presets['notification.high'],
  medium: presets['notification.medium'],
  low: presets['notification.low'],
});

/** Fields that are given replace those of the preset. */
export function policiesWith(changes: Partial<Record<Priority, Policy>> = {}): PriorityPolicies {
  const named = priorities.map((priority) => {
    const change = changes[priority];
    const preset = priorityPolicies[priority];
    return [priority, change ? definePolicy({ ...fieldsOf(preset), ...change }) : preset] as const;
  });
  return Object.freeze(Object.fromEntries(named)) as PriorityPolicies;
}

/** The delay that follows this attempt, before jitter. */
export function getPriorityBackoff(
  priority: Priority,
  attemptNumber: number,
  policies: PriorityPolicies = priorityPolicies,
): number {
  const policy = defined({ ...fieldsOf(policyOf(priority, policies)), jitter: 'none' });
  return delayFor(policy, { attempt: attemptNumber });
}

/** Whether another attempt follows the one that failed. */
export function shouldRetry(
  priority: Priority,
  attemptNumber: number,
  policies: PriorityPolicies = priorityPolicies,
): boolean {
  return attemptNumber < policyOf(priority, policies).maxAttempts;
}

/** The delay that follows this attempt, with jitter. `random` is in [0, 1); left out: the middle of the jitter's range. */
export function calculateBackoffDelay(
  priority: Priority,
  attemptNumber: number,
  random?: number,
  policies: PriorityPolicies = priorityPolicies,
): number {
  return delayFor(policyOf(priority, policies), factsOf(attemptNumber, random));
}

/** Up to 30 % more. */
export function addJitter(delayMs: number, random?: number): number {
  return delayFor(
    { strategy: 'fixed', base: delayMs, cap: delayMs, jitter: 'up', jitterRatio: 0.3 },
    factsOf(1, random),
  );
}

function factsOf(attempt: number, random: number | undefined): DelayFacts {
  return random === undefined ? { attempt } : { attempt, random };
}

/** Its fields alone: what is changed of it is not the policy that was defined. */
function fieldsOf(policy: DefinedPolicy): Policy {
  return Object.fromEntries(Object.entries(policy));
}

function policyOf(priority: Priority, policies: PriorityPolicies): DefinedPolicy {
  if (Object.hasOwn(policies, priority)) return policies[priority];
  throw unknownPriority(priority);
}

export function unknownPriority(priority: unknown): NotificationError {
  const hint = typeof priority === 'string' ? didYouMean(nearest(priority, priorities)) : '';
  const message = `There is no priority ${JSON.stringify(priority)}. Use one of ${priorities.join(', ')}.${hint}`;
  return new NotificationError('UNKNOWN_PRIORITY', message);
}
