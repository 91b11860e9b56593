import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { simulate } from 'redrive';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Io, readArguments } from '../command.ts';
import { commands } from './simulate.ts';

const command = commands[0]!;
const root = join(import.meta.dirname, '../../../../..');
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'simulate-'));
});

afterAll(() => rmSync(folder, { recursive: true }));

describe('redrive simulate', () => {
  it('draws the default policy in the default world', async () => {
    const text = await run();
    expect(text).toContain('Policy  the default policy, since no file was given');
    expect(text).toMatch(/^▸ full .* %.*\/s/m);
  });

  it('shows the schedule of a preset', async () => {
    const text = await run('--preset', 'criterion', '--clients', '10');
    expect(text).toContain('Policy  preset criterion: any number of attempts, waits from 1 min');
    expect(text.replace(/\s+/g, ' ')).toContain(
      'Waits 1 min, 2 min, 4 min, 8 min, 16 min, 32 min, then 1 h each time; jitter adds up to 10 %',
    );
  });

  it('says in its options what the world has as its defaults', () => {
    const { world } = simulate({}, { clients: 1000 });
    const reading = readArguments(command, []);
    const given = reading.type === 'run' ? Object.entries(reading.args.options) : [];
    const named = given
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [
        name.replace(/-(.)/g, (_, one: string) => one.toUpperCase()),
        value,
      ]);
    expect(Object.fromEntries(named)).toEqual({ ...world });
  });

  it('compares the jitters that are asked for, each once', async () => {
    const { policy, simulations } = JSON.parse(
      await run('scheduler', '--clients', '20', '--json', '--jitters', 'none,full,none'),
    ) as Record<string, Record<string, unknown>>;
    expect(policy).toMatchObject({ maxAttempts: 4, base: 2000 });
    expect(Object.keys(simulations!)).toEqual(['add', 'none', 'full']);
  });

  it('writes a picture, also beside JSON', async () => {
    expect(await run('--clients', '20', '--svg', 'one.svg')).toContain(
      'The picture is in one.svg.',
    );
    const text = await run('--clients', '20', '--svg', 'two.svg', '--json');
    expect(Object.keys(JSON.parse(text) as object)).toEqual(['policy', 'simulations']);
    expect(existsSync(join(folder, 'two.svg'))).toBe(true);
  });

  it('draws the picture of the guide', async () => {
    await run(
      join(root, 'docs/images/choosing-a-policy.json'),
      ...'--clients 1000 --spread 500ms --outage 30s --capacity 100 --svg guide.svg'.split(' '),
      '--title',
      'One outage, 1,000 clients: the same policy with each jitter',
    );
    const drawn = readFileSync(join(folder, 'guide.svg'), 'utf8');
    expect(readFileSync(join(root, 'docs/images/choosing-a-policy.svg'), 'utf8')).toBe(drawn);
  });

  it.each([
    [['nowhere.json'], 'There is no file nowhere.json'],
    [['{ "maxAttempts": 0 }'], 'The policy given has faults:'],
    [['--latency', '0ms'], '--latency: '],
    [['--preset', 'criterio'], "there is no preset 'criterio'. Did you mean criterion?"],
    [['--preset', 'toString'], "there is no preset 'toString'."],
    [['--preset', 'criterion', 'default'], 'Give one of them.'],
    [['toString'], 'There is no file toString'],
    [['--svg', 'no/folder/load.svg'], 'no/folder/load.svg cannot be written'],
    [
      ['--jitters', 'none,ful'],
      "--jitters: 'ful' is not one of none, up, around, add, full, equal, decorrelated. Did you mean full?",
    ],
  ])('refuses %j with what to do, and exit code 2', async (args, message) => {
    await expect(run(...args)).rejects.toMatchObject({
      exit: 2,
      message: expect.stringContaining(message),
    });
  });
});

async function run(...args: string[]): Promise<string> {
  const reading = readArguments(command, args);
  if (reading.type !== 'run') throw new Error(JSON.stringify(reading));
  let text = '';
  const io: Io = {
    out: (part) => (text += part),
    err: () => {},
    env: {},
    cwd: folder,
    isTty: false,
    columns: 80,
    input: () => Promise.resolve(new Uint8Array()),
  };
  await command.run(reading.args, io);
  return text;
}
