import pino from 'pino';
import { virtualClock } from 'redrive/testing';
import { expect, it } from 'vitest';
import { SkewWatch } from './skew-watch.ts';

function watchOf() {
  const clock = virtualClock();
  const lines: { level: number; msg: string; skew_ms?: number }[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line) as never) });
  const skew = { ms: undefined as number | undefined };
  const watch = new SkewWatch({ clock, log });
  watch.watch({
    stats: () => (skew.ms === undefined ? {} : { clockSkewMs: skew.ms }) as never,
  });
  watch.start();
  return { clock, lines, skew, watch };
}

it('warns past a second in either direction, not at each look, and says when it is over', async () => {
  const { clock, lines, skew, watch } = watchOf();
  skew.ms = 1000;
  await clock.advance(10_000);
  expect(lines).toEqual([]);
  skew.ms = 1001;
  await clock.advance(30_000);
  expect(lines.map(({ msg, skew_ms }) => [msg, skew_ms])).toEqual([
    [
      'The clock of this host is 1.0 s ahead of the clock of the database. Look at NTP on both.',
      1001,
    ],
  ]);
  await clock.advance(600_000);
  expect(lines).toHaveLength(2);
  skew.ms = 0;
  await clock.advance(10_000);
  expect(lines[2]?.msg).toBe('the clocks of host and database agree again');
  skew.ms = -90_000;
  await clock.advance(10_000);
  expect(lines[3]?.msg).toContain('90.0 s behind');
  watch.stop();
  skew.ms = 0;
  await clock.advance(60_000);
  expect(lines).toHaveLength(4);
});
