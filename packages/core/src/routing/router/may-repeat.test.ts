import { expect, it, vi } from 'vitest';
import { createRouter } from './router.ts';
import type { FailedAttempt } from './router-options.ts';

const policy = {
  version: '1.0',
  providers: [
    { name: 'a', weight: 100 },
    { name: 'b', weight: 0 },
  ],
  fallbacks: [{ when: {}, to: 'b', retry: 0 }],
} as const;

function failing(status: number) {
  return (): Promise<string> => Promise.reject(Object.assign(new Error(), { status }));
}

const answers = () => Promise.resolve('ok');

it('ends a call whose failed attempt must not be repeated', async () => {
  const b = vi.fn(answers);
  const asked: FailedAttempt<unknown, string>[] = [];
  const router = createRouter(policy, {
    providers: { a: failing(502), b },
    mayRepeat: (failed) => asked.push(failed) === 0,
  });
  await expect(router.call('x')).rejects.toMatchObject({
    code: 'NOT_REPEATED',
    attempts: [{ provider: 'a', status: '502' }],
    cause: { status: 502 },
  });
  expect(asked).toMatchObject([
    { input: 'x', provider: 'a', status: '502', failure: { class: 'transient' } },
  ]);
  expect(b).not.toHaveBeenCalled();
  expect(router.health()['a']).toMatchObject({ calls: 1, failures: 1 });
});

it('goes on where the attempt may be repeated, and hands over what was refused', async () => {
  const seen: unknown[] = [];
  const router = createRouter(policy, {
    providers: {
      a: () => Promise.resolve({ status: 429 }),
      b: () => Promise.resolve({ status: 200 }),
    },
    refuse: ({ status }) => (status === 200 ? undefined : status),
    mayRepeat: ({ refused, failure }) => {
      seen.push(refused);
      return failure.notExecuted === true;
    },
  });
  expect(await router.call(undefined as never)).toMatchObject({ provider: 'b' });
  expect(seen).toEqual([{ status: 429 }]);
});

it('takes a function that throws for a no', async () => {
  const report = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  const router = createRouter(policy, {
    providers: { a: failing(500), b: answers },
    mayRepeat: () => {
      throw new Error('a bug');
    },
  });
  await expect(router.call('x')).rejects.toMatchObject({ code: 'NOT_REPEATED' });
  report.mockRestore();
});

it('is refused where it is no function', () => {
  expect(() =>
    createRouter(policy, { providers: { a: answers, b: answers }, mayRepeat: 1 as never }),
  ).toThrow(/mayRepeat/);
});
