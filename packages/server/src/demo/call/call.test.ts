import { definePolicy, delayFor, type Policy } from 'redrive';
import { virtualClock } from 'redrive/testing';
import { describe, expect, it } from 'vitest';
import { terminalOf, visibleLength } from '../../cli/terminal/terminal.ts';
import { play } from './play.ts';
import { drawSchedule } from './schedule.ts';
import { policy, type Story, stories } from './stories.ts';
import { tell } from './tell.ts';

const plain = terminalOf({}, {});
const live = terminalOf({ isTTY: true, columns: 80 }, {});

describe('the demo', () => {
  it('retries the flaky call until it works, and says why each time', async () => {
    const { text, tookMs } = await watch(stories[0]!);
    expect(text).toMatch(
      /attempt 1\n.*✗ Attempt 1 of 6 failed \(ECONNREFUSED, transient\); the next/,
    );
    expect(text).toContain('(HTTP_503, transient); as the server asked');
    expect(text).toContain('(TIMEOUT, transient)');
    expect(text).toContain('✔ order 4711 is placed, after 4 attempts');
    expect(text.match(/█+ /g)).toHaveLength(3);
    expect(tookMs).toBeGreaterThan(3000);
    expect(tookMs).toBeLessThan(5500);
  });

  it('gives up where retrying is no use', async () => {
    const [, declined, patient] = await Promise.all(stories.map((story) => watch(story)));
    expect(declined!.text).toContain(
      '■ Attempt 1 of 6 failed (HTTP_422, business); gave up because',
    );
    expect(patient!.text).toContain('(come back after 2 min)');
  });

  it('fills its bars while a person is looking', async () => {
    const { text } = await watch(stories[0]!, live);
    expect(text.match(/\r/g)!.length).toBeGreaterThan(40);
    const frames = text.split(/[\r\n]/).map(visibleLength);
    expect(Math.max(...frames)).toBeLessThanOrEqual(80);
  });
});

describe('all of it', () => {
  it('is told, with what to try next', async () => {
    const text = await telling(new AbortController().signal);
    for (const { title } of stories) expect(text).toContain(title);
    expect(text).toContain('The waits of that policy');
    expect(text).toMatch(/redrive simulate +what a policy does/);
  });

  it('ends when whoever watches has seen enough', async () => {
    const text = await telling(AbortSignal.abort());
    expect(text).not.toContain(stories[0]!.title);
  });

  it('ends in the middle of a wait', async () => {
    const controller = new AbortController();
    const text = await telling(controller.signal, (part) => {
      if (part.includes('█')) controller.abort();
    });
    expect(text).toContain(stories[0]!.title);
    expect(text).not.toContain(stories[1]!.title);
  });
});

describe('the schedule', () => {
  it('shows where each wait is without jitter, and where jitter may put it', () => {
    const lines = drawSchedule({ maxAttempts: 4, base: 1000, jitter: 'equal' }, plain);
    expect(lines[0]).toMatch(/^ {2}after attempt {2}1 +▒+┃ +500 ms to 1 s$/);
    expect(lines[2]).toMatch(/▒┃ 2 s to 4 s$/);
    expect(lines.at(-1)).toBe('  In all 3.5 s to 7 s of waiting.');
  });

  it.each<Policy>([
    policy,
    { jitter: 'none' },
    { jitter: 'decorrelated', maxAttempts: 8 },
    { jitter: 'around', jitterRatio: 1, maxAttempts: 500 },
    { base: 0 },
  ])('fits any width: %o', (written) => {
    for (const columns of [40, 80]) {
      const lines = drawSchedule(written, terminalOf({ isTTY: true, columns }, {}));
      expect(Math.max(...lines.map(visibleLength))).toBeLessThanOrEqual(columns);
    }
  });

  it('stops where it would only repeat itself', () => {
    expect(drawSchedule({ maxAttempts: 500 }, plain)).toContain('  ... and so on');
  });

  it('has the widest range of the decorrelated jitter, which feeds on itself', () => {
    const text = drawSchedule({ jitter: 'decorrelated', base: 100, maxAttempts: 3 }, plain).join(
      '\n',
    );
    expect(text).toContain('100 ms to 300 ms');
    expect(text).toContain('100 ms to 900 ms');
    expect(
      delayFor(definePolicy({ jitter: 'decorrelated', base: 100 }), {
        attempt: 2,
        random: 1,
        previousMs: 300,
      }),
    ).toBe(900);
  });

  it('has nothing to show for a single attempt', () => {
    expect(drawSchedule({ maxAttempts: 1 }, plain)).toEqual([
      '  It never waits: there is one attempt.',
    ]);
  });
});

async function telling(signal: AbortSignal, look?: (part: string) => void): Promise<string> {
  const clock = virtualClock();
  let text = '';
  const write = (part: string): void => {
    text += part;
    look?.(part);
  };
  const told = tell(plain, clock, write, signal);
  await clock.run();
  await told;
  return text;
}

async function watch(story: Story, terminal = plain): Promise<{ text: string; tookMs: number }> {
  const clock = virtualClock();
  let text = '';
  const played = play(story, terminal, clock, (part) => (text += part));
  const tookMs = await clock.run();
  await played;
  return { text, tookMs };
}
