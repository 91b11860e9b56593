/** A flaky call, retried before your eyes: what `retry` does in a process, without a service. */
import type { Clock } from 'redrive';
import { type Terminal, wrap } from '../../cli/terminal/terminal.ts';
import { play } from './play.ts';
import { drawSchedule } from './schedule.ts';
import { pause, policy, stories } from './stories.ts';

const next = [
  ['redrive demo', 'the same for whole services, durable'],
  ['redrive simulate', 'what a policy does to a service that was down'],
  ['redrive help simulate', 'the same with your policy and your outage'],
] as const;

/** Time to read it. */
const PAUSE_MS = 400;

export async function tell(
  terminal: Terminal,
  clock: Clock,
  write: (text: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const { paint, width } = terminal;
  const say = (...lines: string[]): void => write(`${lines.join('\n')}\n`);
  say(`${paint('bold', 'Redrive')}: one retry policy, everywhere.`);
  for (const story of stories) {
    if (signal.aborted) return;
    await play(story, terminal, clock, write, signal);
    await pause(clock, PAUSE_MS);
  }
  say('', paint('bold', 'The waits of that policy'), '', ...drawSchedule(policy, terminal));
  say('', paint('bold', 'What to try next'), '');
  for (const [command, what] of next) {
    say(...wrap(`  ${paint('cyan', command.padEnd(22))} ${what}`, width, ' '.repeat(4)));
  }
}
