import { describe, expectTypeOf, it } from 'vitest';
import type { Policy } from './policy/policy-fields.ts';
import { retrier, retry, retryable } from './retry.ts';
import type { Failure, FailureClass } from './failure/failure.ts';
import type {
  Attempt,
  BeforeRetry,
  Listeners,
  RetryIf,
  RetryIfError,
  Runtime,
} from './run/runtime.ts';

describe('types', () => {
  it('of a result are inferred, whatever the function returns', () => {
    expectTypeOf(retry(async () => 1)).toEqualTypeOf<Promise<number>>();
    expectTypeOf(retry(() => 'text')).toEqualTypeOf<Promise<string>>();
    const maybe = (): number | Promise<string> => 1;
    expectTypeOf(retry(maybe)).toEqualTypeOf<Promise<number | string>>();
    expectTypeOf(retry((attempt) => attempt)).toEqualTypeOf<Promise<Attempt>>();
  });

  it('of a result reach retryIf', () => {
    const call = retry(
      async () => 1,
      {},
      {
        retryIf: {
          result(result, attempt) {
            expectTypeOf(result).toEqualTypeOf<number>();
            expectTypeOf(attempt).toEqualTypeOf<number>();
            return result === 0;
          },
        },
      },
    );
    expectTypeOf(call).toEqualTypeOf<Promise<number>>();
  });

  it('of an error are unknown to retryIf, in either form', () => {
    expectTypeOf<RetryIfError>().parameters.toEqualTypeOf<[error: unknown, attempt: number]>();
    const bare = retry(() => 1, {}, { retryIf: (error) => error instanceof RangeError });
    expectTypeOf(bare).toEqualTypeOf<Promise<number>>();
    const named = retry(() => 1, {}, { retryIf: { error: (error) => error === 'busy' } });
    expectTypeOf(named).toEqualTypeOf<Promise<number>>();
    expectTypeOf<(result: string) => boolean>().not.toExtend<Runtime<string>['retryIf']>();
  });

  it('of a verdict on a result leave no room for undefined, also of a promise', () => {
    type Verdict = ReturnType<NonNullable<RetryIf<number>['result']>>;
    expectTypeOf<Verdict>().toEqualTypeOf<boolean | PromiseLike<boolean>>();
    expectTypeOf<ReturnType<RetryIfError>>().toEqualTypeOf<
      boolean | undefined | PromiseLike<boolean | undefined>
    >();
    expectTypeOf<() => Promise<string>>().not.toExtend<RetryIfError>();
  });

  it('of async callbacks are inferred like those of others', () => {
    const call = retry(
      async () => 1,
      {},
      {
        retryIf: {
          error: async (error) => error instanceof RangeError,
          async result(result, attempt) {
            expectTypeOf(result).toEqualTypeOf<number>();
            expectTypeOf(attempt).toEqualTypeOf<number>();
            return result === 0;
          },
        },
        classify: async (error) => (error instanceof RangeError ? 'business' : undefined),
        async beforeRetry(info) {
          expectTypeOf(info).toEqualTypeOf<BeforeRetry>();
          expectTypeOf(info.failure).toEqualTypeOf<Failure>();
        },
      },
    );
    expectTypeOf(call).toEqualTypeOf<Promise<number>>();
    expectTypeOf<() => Promise<FailureClass>>().toExtend<Runtime['classify']>();
    expectTypeOf<() => Promise<{ code: string }>>().toExtend<Runtime['classify']>();
    expectTypeOf<() => Promise<'odd'>>().not.toExtend<Runtime['classify']>();
    expectTypeOf<(info: { attempt: number }) => void>().toExtend<Runtime['beforeRetry']>();
    expectTypeOf<(info: { attempt: string }) => void>().not.toExtend<Runtime['beforeRetry']>();
  });

  it('of a retrier follow each function', () => {
    const run = retrier({ maxAttempts: 2 });
    expectTypeOf(run(async () => 1)).toEqualTypeOf<Promise<number>>();
    const retryIf = { result: (text: string) => text === '' };
    expectTypeOf(run(() => 'text', { retryIf })).toEqualTypeOf<Promise<string>>();
  });

  it('of a wrapped function are kept: parameters, `this` and generics', () => {
    const plain = retryable(async (id: number, deep?: boolean) => ({ id, deep }));
    expectTypeOf(plain).parameters.toEqualTypeOf<[id: number, deep?: boolean | undefined]>();
    expectTypeOf(plain).returns.toEqualTypeOf<Promise<{ id: number; deep: boolean | undefined }>>();
    const method = retryable(function (this: { base: number }, add: number) {
      return this.base + add;
    });
    expectTypeOf(method).thisParameter.toEqualTypeOf<{ base: number }>();
    expectTypeOf(method).returns.toEqualTypeOf<Promise<number>>();
    const generic = retryable(async <K extends string>(key: K) => ({ key }));
    expectTypeOf(generic('a')).toEqualTypeOf<Promise<{ key: 'a' }>>();
  });

  it('of events are those of their listener', () => {
    expectTypeOf<
      Parameters<NonNullable<Listeners['wait']>>[0]['delayMs']
    >().toEqualTypeOf<number>();
    // An option may be there and undefined: `{ signal: request?.signal }`.
    expectTypeOf<{ signal: AbortSignal | undefined }>().toExtend<Runtime>();
  });

  it('refuse what is not a function, a policy or a runtime', () => {
    expectTypeOf(retry).parameter(0).not.toBeAny();
    expectTypeOf<Promise<number>>().not.toExtend<Parameters<typeof retry>[0]>();
    expectTypeOf<{ maxAttempts: string }>().not.toExtend<Policy>();
    expectTypeOf<{ deadline: '5 minutes' }>().not.toExtend<Policy>();
    expectTypeOf<{ signal: AbortController }>().not.toExtend<Runtime>();
  });
});
