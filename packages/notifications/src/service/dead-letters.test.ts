/** Dead letters fit into a message and into an item, however much the push services answered. */
import { expect, it } from 'vitest';
import { failure, notification, stage } from './stage.test.ts';

const MAX_BYTES = 1024 * 1024;
const last = { platformResponse: { status: 413 } };

it('a dead letter with large attempts keeps what the newest ones were answered', async () => {
  const { service, letters, items, clock } = await stage();
  await service.create(notification({ data: { text: 'x'.repeat(250_000) } }));
  for (let n = 1; n <= 7; n++)
    await service.reportFailure(failure(n, { platformResponse: { text: 'x'.repeat(200_000) } }));
  await service.reportFailure(failure(8, { ...last, errorMessage: 'm' }));
  await clock.advance('1s');
  expect(Buffer.byteLength(JSON.stringify(letters[0]))).toBeLessThan(MAX_BYTES);
  expect(items[0]?.letter).toEqual(letters[0]);
  const { attempts } = letters[0]!;
  expect(attempts.map(({ attempt_number }) => attempt_number)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  const whole = attempts.filter(({ platform_response }) => platform_response !== null);
  expect(whole.map(({ attempt_number }) => attempt_number)).toEqual([7, 8]);
});

it('a dead letter with many attempts of long texts is not too large', async () => {
  const { service, repository, letters, clock } = await stage();
  const deviceId = '\u0001'.repeat(255);
  await service.create(notification({ data: { text: 'x'.repeat(250_000) } }));
  const attempts = Array.from({ length: 150 }, (_, i) => ({
    ...failure(i + 1, { errorMessage: '\u0001'.repeat(8192), errorCode: '\u0001'.repeat(255) }),
    deviceId,
    status: 'failed' as const,
    attemptedAtMs: clock.now(),
  }));
  await repository.write([], attempts);
  await service.reportFailure({ ...failure(150, last), deviceId });
  await clock.advance('1s');
  expect(Buffer.byteLength(JSON.stringify(letters[0]))).toBeLessThan(MAX_BYTES);
  const numbers = letters[0]!.attempts.map(({ attempt_number }) => attempt_number);
  expect([numbers[0], numbers.at(-1), numbers.length]).toEqual([51, 150, 100]);
});
