import { describe, expect, it } from 'vitest';
import { type Options, readArguments } from './arguments.ts';
import { help } from './help.ts';
import { defineWorld, type World, worldFields } from '../../packages/core/src/simulate-world.ts';

describe('the arguments of simulate', () => {
  it('may be left out', () => {
    expect(read()).toEqual({
      help: false,
      json: false,
      jitters: ['none', 'up', 'around', 'add', 'full', 'equal', 'decorrelated'],
      world: {},
    });
  });

  it('describe a world, a policy and what to make of them', () => {
    const line =
      'policy.json --clients 20 --outage 30s --outage-start=2s --retry-after 5s --svg a.svg --json';
    expect(read(line)).toMatchObject({
      policy: 'policy.json',
      json: true,
      svg: 'a.svg',
      world: { clients: 20, outage: '30s', outageStart: '2s', retryAfter: '5s' },
    });
  });

  it('choose the jitters to compare, each once', () => {
    expect(read('--jitters none,full,none').jitters).toEqual(['none', 'full']);
  });

  it.each(['-h', '--help', '--help --clints 3'])('ask for help with %s', (line) => {
    expect(read(line).help).toBe(true);
  });

  it.each([
    ['--clints 3', '--clints: there is no such option. Did you mean --clients?'],
    ['--colour', '--colour: there is no such option.'],
    ['--clients 0', '--clients: 0 is not a whole number from 1 to 100000.'],
    ['--clients many', "--clients: 'many' is not a whole number from 1 to 100000."],
    ['--outage 30', '--outage: 30 what? Write 30s or 30ms.'],
    ['--svg', '--svg: needs a value.'],
    ['--svg --json', '--svg: needs a value.'],
    ['--json=yes', '--json: takes no value.'],
    [
      '--jitters none,ful',
      "--jitters: 'ful' is not one of none, up, around, add, full, equal, decorrelated. Did you mean full?",
    ],
    ['a.json b.json', 'b.json: one policy at a time; a.json is there already.'],
  ])('%s is refused with what to do', (line, message) => {
    expect(faults(line)[0]).toBe(message);
  });

  it('are faulty all at once', () => {
    expect(faults('--clints 3 --outage 30 --capacity 0 --latency long')).toHaveLength(4);
  });
});

describe('the help', () => {
  it('names every option of a world, with its default', () => {
    for (const [name, field] of Object.entries(worldFields)) {
      const option = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
      const line = help.split('\n').find((each) => each.startsWith(`  ${option} `)) ?? '';
      const options = readArguments(line.trim().split(/\s+/).slice(0, 2)) as Options;
      const shown = defineWorld(options.world)[name as keyof World];
      expect([name, shown]).toEqual([name, 'default' in field ? field.default : shown]);
      expect(Object.keys(options.world)).toEqual([name]);
    }
  });

  it('fits 80 columns, and its examples are understood', () => {
    expect(Math.max(...help.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    for (const [, example] of help.matchAll(/npm run simulate -- ([^'"\n[]+)$/gm)) {
      expect(faults(example!)).toEqual([]);
    }
  });
});

function read(line = ''): Options {
  const options = readArguments(split(line));
  if ('faults' in options) throw new Error(options.faults.join('\n'));
  return options;
}

function faults(line: string): string[] {
  const options = readArguments(split(line));
  return 'faults' in options ? options.faults : [];
}

function split(line: string): string[] {
  return line.split(' ').filter((word) => word !== '');
}
