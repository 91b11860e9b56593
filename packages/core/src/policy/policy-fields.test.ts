import { describe, expect, expectTypeOf, it } from 'vitest';
import type { Duration } from './duration.ts';
import type { Fault } from '../errors.ts';
import type { FailureClass } from '../failure/failure.ts';
import { defaultOf, readFields } from '../options/fields.ts';
import { type DefinedPolicy, definePolicy } from './policy.ts';
import {
  type FailureName,
  overrideFields,
  type Policy,
  policyFields,
  type PolicyOverride,
} from './policy-fields.ts';

describe('the table of fields', () => {
  it('has the documented words', () => {
    expect(Object.keys(policyFields)).toEqual([
      'maxAttempts',
      'strategy',
      'base',
      'cap',
      'multiplier',
      'schedule',
      'jitter',
      'jitterRatio',
      'jitterAdd',
      'hardCap',
      'attemptTimeout',
      'deadline',
      'maxRetryAfter',
      'retryOn',
      'neverOn',
      'maxUncounted',
      'idempotent',
      'overrides',
    ]);
  });

  it('has defaults that keep its own rules', () => {
    const defaults = Object.fromEntries(
      Object.entries(policyFields).map(([name, field]) => [name, defaultOf(field)]),
    );
    const faults: Fault[] = [];
    readFields(defaults, policyFields, Object.keys(policyFields), '', faults);
    expect(faults).toEqual([]);
  });

  it('is plain data, so that a schema can be made of it', () => {
    expect(JSON.parse(JSON.stringify(policyFields))).toEqual(policyFields);
  });

  it('lets an override change the delays and the attempts, and nothing else', () => {
    const fixed = Object.keys(policyFields).filter(
      (name) => !(overrideFields as readonly string[]).includes(name),
    );
    expect(fixed).toEqual([
      'attemptTimeout',
      'deadline',
      'retryOn',
      'neverOn',
      'maxUncounted',
      'idempotent',
      'overrides',
    ]);
  });
});

describe('the types', () => {
  it('take durations as numbers of ms or as texts with a unit', () => {
    expectTypeOf<250 | '250ms' | '2s' | '1.5s' | '5m' | '1h' | '1d'>().toExtend<Duration>();
    expectTypeOf<`${number}ms`>().toExtend<Duration>();
    expectTypeOf<'5 minutes'>().not.toExtend<Duration>();
    expectTypeOf<'250'>().not.toExtend<Duration>();
    expectTypeOf<'5min'>().not.toExtend<Duration>();
    expectTypeOf<'soon'>().not.toExtend<Duration>();
    expectTypeOf<string>().not.toExtend<Duration>();
    expectTypeOf<Policy['base']>().toEqualTypeOf<Duration | undefined>();
    expectTypeOf<Policy['deadline']>().toEqualTypeOf<Duration | undefined>();
    expectTypeOf<Policy['schedule']>().toEqualTypeOf<readonly Duration[] | undefined>();
  });

  it('know every field and no other', () => {
    expectTypeOf<keyof Policy>().toEqualTypeOf<keyof typeof policyFields>();
    expectTypeOf<keyof PolicyOverride>().toEqualTypeOf<(typeof overrideFields)[number]>();
    expectTypeOf<{ maxAttempt: number }>().not.toExtend<Policy>();
    expectTypeOf<{ retries: number }>().not.toExtend<Policy>();
    expectTypeOf<{ maxAttempts: string }>().not.toExtend<Policy>();
    expectTypeOf<{ overrides: { 429: { deadline: 5 } } }>().not.toExtend<Policy>();
    expectTypeOf<object>().toExtend<Policy>();
  });

  it('know the words of a choice', () => {
    expectTypeOf<Policy['strategy']>().toEqualTypeOf<
      'exponential' | 'linear' | 'fixed' | 'schedule' | undefined
    >();
    expectTypeOf<Policy['jitter']>().toEqualTypeOf<
      'none' | 'up' | 'around' | 'add' | 'full' | 'equal' | 'decorrelated' | undefined
    >();
  });

  it('suggest the classes for retryOn, and take any code', () => {
    expectTypeOf<Policy['retryOn']>().toEqualTypeOf<readonly FailureName[] | undefined>();
    expectTypeOf<Extract<FailureName, FailureClass | 'any'>>().toEqualTypeOf<
      FailureClass | 'any'
    >();
    expectTypeOf<'ECONNRESET'>().toExtend<FailureName>();
    expectTypeOf<number>().not.toExtend<FailureName>();
  });

  it('take a defined policy for a policy', () => {
    expectTypeOf<DefinedPolicy>().toExtend<Policy>();
    expectTypeOf(definePolicy).parameter(0).toEqualTypeOf<Policy | undefined>();
  });

  it('of a defined policy have every field, durations as ms', () => {
    expectTypeOf<DefinedPolicy['maxAttempts']>().toEqualTypeOf<number>();
    expectTypeOf<DefinedPolicy['base']>().toEqualTypeOf<number>();
    expectTypeOf<DefinedPolicy['deadline']>().toEqualTypeOf<number | undefined>();
    expectTypeOf<DefinedPolicy['fingerprint']>().toEqualTypeOf<string>();
    expectTypeOf<keyof Policy>().toExtend<keyof DefinedPolicy>();
  });
});
