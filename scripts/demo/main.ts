/** `npm start`, until there is a service to start: a flaky call, retried before your eyes. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Clock } from 'redrive';
import { terminalOf, wrap } from '../terminal.ts';
import { play } from './play.ts';
import { drawSchedule } from './schedule.ts';
import { policy, stories } from './stories.ts';

const terminal = terminalOf(process.stdout, process.env);
const { paint } = terminal;

const clock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer: (callback, ms) => setTimeout(callback, ms),
  clearTimer: (timer) => clearTimeout(timer as NodeJS.Timeout),
};

// Whoever reads only the first lines (`| head`) is not a fault.
process.stdout.on('error', () => process.exit());

const next = [
  ['npm run simulate', 'what a policy does to a service that was down'],
  ['npm run simulate -- --help', 'the same with your policy and your outage'],
  ['npm test', 'every promise, tested'],
  ['README.md, docs/', 'how to use it, and how to choose a policy'],
] as const;

say(`${paint('bold', 'Redrive')}: one retry policy, everywhere.`);
for (const story of stories) {
  await play(story, terminal, clock, (text) => process.stdout.write(text));
  // Time to read it.
  await pause(400);
}
say('', paint('bold', 'The waits of that policy'), '', ...drawSchedule(policy, terminal));
say('', paint('bold', 'What to try next'), '');
for (const [command, what] of next) {
  say(...wrap(`  ${paint('cyan', command.padEnd(27))} ${what}`, terminal.width, ' '.repeat(4)));
}

function say(...lines: string[]): void {
  console.log(lines.join('\n'));
}
