/** `redrive simulate`: choose a policy by looking. It needs no server. */
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { isConfigError, type World } from 'redrive';
import { nearest } from 'redrive/internal';
import { command, CommandError, exits, type Io, type OptionTable } from '../command.ts';
import { FINE_BUCKET_MS } from '../simulate/columns.ts';
import { compare, type Comparison, type Jitter, jitters } from '../simulate/compare.ts';
import { drawPicture } from '../simulate/picture.ts';
import { readPolicy, readPreset } from '../simulate/policy-source.ts';
import { drawScreen } from '../simulate/screen.ts';
import { terminalOf } from '../terminal/terminal.ts';

type Dashed<Name extends string> = Name extends `${infer Head}${infer Tail}`
  ? `${Head extends Lowercase<Head> ? Head : `-${Lowercase<Head>}`}${Dashed<Tail>}`
  : '';

/** The world that a policy is tried in: one option for each of its fields, with the default that it has there. */
const worldOptions = {
  clients: number('n', 1, 100_000, 1000, 'How many clients, with one call to make each.'),
  spread: time(100, 'The time over which they make their first calls.'),
  outage: time(500, 'How long the service is down.'),
  'outage-start': time(0, 'When it goes down.'),
  capacity: number('n', 1, 1_000_000, 500, 'Requests that it can serve in a second.'),
  queue: time(200, 'What would have to queue for longer is refused (503).'),
  latency: time(50, 'How long any answer takes.'),
  'retry-after': {
    kind: 'duration',
    value: 'time',
    summary: 'The Retry-After of a refusal; none unless given.',
  },
  seed: number(
    'n',
    0,
    Number.MAX_SAFE_INTEGER,
    1,
    'The same seed always gives the same random numbers.',
  ),
  horizon: time(3_600_000, 'No attempt starts after this.'),
  limit: number('n', 1, 10_000_000, 2_000_000, 'After so many attempts it stops.'),
  bucket: {
    kind: 'duration',
    value: 'time',
    summary: 'The width of one step of load in --json and --svg.',
  },
} as const satisfies Record<Dashed<keyof World>, OptionTable[string]>;

export const commands = [
  command({
    name: 'simulate',
    summary: 'Show what a policy does to a service that was down.',
    usage: 'simulate [policy]',
    about:
      'Shows load over time while a service goes down and comes back, what each jitter would change, and what to change. ' +
      'The policy is a file with one JSON object, the name of a preset, or JSON; without one, the default.\n\n' +
      'Things to try: an outage longer than the policy lasts; --spread 10s, where jitter matters less; --retry-after 2s; ' +
      'a deadline in the policy.',
    options: {
      preset: { kind: 'text', value: 'name', summary: 'The policy by the name of a preset.' },
      ...worldOptions,
      jitters: { kind: 'text', value: 'names', summary: 'Compare these only: none,full.' },
      svg: { kind: 'text', value: 'file', summary: 'Write a picture of the comparison.' },
      title: { kind: 'text', value: 'text', summary: 'The title of the picture.' },
    },
    examples: [
      'redrive simulate # the default policy',
      'redrive simulate scheduler --outage 5s # a preset in an outage of five seconds',
      'redrive simulate --preset criterion --outage 10m --spread 5m # the schedule of the workflow criterion',
      'redrive simulate policy.json --clients 1000 --outage 30s --capacity 100 # your policy and your service',
      `redrive simulate '{ "maxAttempts": 10, "cap": "20s" }' --outage 30s # a policy on the command line`,
      'redrive simulate policy.json --svg load.svg --jitters none,equal,full # a picture of it',
    ],
    run: ({ positionals, options, json }, io) => {
      const { preset, jitters: names, svg, title, ...given } = options;
      const { name, policy } =
        preset === undefined
          ? readPolicy(positionals[0], io.cwd)
          : readPreset(preset, positionals[0]);
      const asked = readJitters(names);
      const world = worldOf(given);
      if (json) {
        const { simulations } = compared(() => compare(policy, world, asked));
        io.out(`${JSON.stringify({ policy, simulations: Object.fromEntries(simulations) })}\n`);
        if (svg === undefined) return Promise.resolve(exits.ok);
      }
      const fine = { ...world, bucket: FINE_BUCKET_MS };
      const comparison = compared(() => compare(policy, fine, asked));
      if (!json) {
        const terminal = terminalOf({ isTTY: io.isTty, columns: io.columns }, io.env);
        io.out(`${drawScreen(name, comparison, terminal).join('\n')}\n`);
      }
      if (svg !== undefined) {
        write(io, svg, drawPicture(comparison, title, given.bucket));
        if (!json) io.out(`\nThe picture is in ${svg}.\n`);
      }
      return Promise.resolve(exits.ok);
    },
  }),
];

function readJitters(list: string | undefined): readonly Jitter[] {
  if (list === undefined) return jitters;
  const names = new Set(list.split(',').map((name) => name.trim()));
  for (const name of names) {
    if (jitters.includes(name as Jitter)) continue;
    const near = nearest(name, jitters);
    throw refused(
      `--jitters: '${name}' is not one of ${jitters.join(', ')}.${near === undefined ? '' : ` Did you mean ${near}?`}`,
    );
  }
  return [...names] as Jitter[];
}

/** The same by the names that the world has: without those that were not given. */
function worldOf(given: Readonly<Record<string, number | undefined>>): World {
  const world: Record<string, number> = {};
  for (const [name, value] of Object.entries(given)) {
    const field = name.replace(/-[a-z]/g, (part) => part.slice(1).toUpperCase());
    if (value !== undefined) world[field] = value;
  }
  return world;
}

/** What the options cannot know of the world, the world says itself. */
function compared(run: () => Comparison): Comparison {
  try {
    return run();
  } catch (error) {
    if (!isConfigError(error)) throw error;
    const faults = error.faults.map(({ path, message }) => `--${dashed(path)}: ${message}`);
    throw refused(faults.join('\n'));
  }
}

function write(io: Io, path: string, text: string): void {
  try {
    writeFileSync(resolve(io.cwd, path), text);
  } catch (error) {
    const { code } = error as { code?: string };
    const reason = code === 'ENOENT' ? 'its folder does not exist' : String(code);
    throw refused(`${path} cannot be written: ${reason}. Name a file in a folder of yours.`);
  }
}

function dashed(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function refused(message: string): CommandError {
  return new CommandError(message, { exit: exits.usage, code: 'USAGE' });
}

function number<const Default extends number>(
  value: string,
  min: number,
  max: number,
  usual: Default,
  summary: string,
): {
  kind: 'number';
  value: string;
  min: number;
  max: number;
  whole: true;
  default: Default;
  summary: string;
} {
  return { kind: 'number', value, min, max, whole: true, default: usual, summary };
}

function time<const Default extends number>(
  usual: Default,
  summary: string,
): { kind: 'duration'; value: 'time'; default: Default; summary: string } {
  return { kind: 'duration', value: 'time', default: usual, summary };
}
