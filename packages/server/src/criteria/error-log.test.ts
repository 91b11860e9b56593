import pino from 'pino';
import { virtualClock } from 'redrive/testing';
import { expect, it } from 'vitest';
import { ErrorLog } from './error-log.ts';

function logOf() {
  const clock = virtualClock();
  const lines: Record<string, unknown>[] = [];
  const log = pino(
    { base: null, timestamp: false },
    {
      write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>),
    },
  );
  return { clock, lines, errors: new ErrorLog({ log, clock }) };
}

const failure = (code: 'INVALID_TIME' | 'OVERFLOW_ERROR', attempt: unknown = 2) => ({
  criterion: 'isRetryDelayElapsed' as const,
  error: { code, message: 'no time' },
  entityId: 'order-7',
  attempt,
});

it('tells operations of times and development of calculations, with entity and attempt', () => {
  const { errors, lines } = logOf();
  errors.add(failure('INVALID_TIME'));
  errors.add(failure('OVERFLOW_ERROR', { secret: 'payload' }));
  expect(lines).toEqual([
    {
      level: 40,
      audience: 'operations',
      criterion: 'isRetryDelayElapsed',
      code: 'INVALID_TIME',
      entity_id: 'order-7',
      attempt: 2,
      msg: 'an evaluation failed: no time',
    },
    expect.objectContaining({ audience: 'development', code: 'OVERFLOW_ERROR', attempt: null }),
  ]);
});

it('writes ten lines a second of each audience, and says how many it left out', async () => {
  const { clock, errors, lines } = logOf();
  for (let i = 0; i < 5000; i++) errors.add(failure('INVALID_TIME'));
  errors.add(failure('OVERFLOW_ERROR'));
  expect(lines).toHaveLength(11);
  await clock.advance(1000);
  expect(lines.at(-1)).toEqual({
    level: 40,
    audience: 'operations',
    left_out: 4990,
    msg: 'more evaluations failed than are logged',
  });
  errors.add(failure('INVALID_TIME'));
  expect(lines).toHaveLength(13);
  for (let i = 0; i < 20; i++) errors.add(failure('INVALID_TIME'));
  errors.stop();
  expect(lines.at(-1)).toMatchObject({ left_out: 11 });
});
