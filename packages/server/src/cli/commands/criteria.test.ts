import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { criterionCases } from 'redrive/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { wireAnswer } from '../../criteria/wire.ts';
import type { Io } from '../command.ts';
import { run } from '../run.ts';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'criteria-'));
});

afterAll(() => rmSync(folder, { recursive: true }));

const entity = {
  id: 'order-17',
  lastAttemptTime: '2026-01-25T21:15:00Z',
  retryDelaySeconds: 60,
  attemptCount: 2,
};

interface Called {
  code: number;
  out: string;
  err: string;
}

async function redrive(
  args: readonly string[],
  { input = '', env = {} }: { input?: string; env?: Io['env'] } = {},
): Promise<Called> {
  const called: Called = { code: -1, out: '', err: '' };
  called.code = await run(['criteria', ...args], {
    out: (text) => (called.out += text),
    err: (text) => (called.err += text),
    env,
    cwd: folder,
    isTty: false,
    columns: 100,
    input: () => Promise.resolve(Buffer.from(input)),
  });
  return called;
}

function file(name: string, content: unknown): string {
  writeFileSync(
    join(folder, name),
    typeof content === 'string' ? content : JSON.stringify(content),
  );
  return name;
}

type WireAnswer = ReturnType<typeof wireAnswer>;

const evaluate = (...args: string[]): string[] => ['evaluate', 'isRetryDelayElapsed', ...args];

describe('redrive criteria evaluate', () => {
  it('answers with a sentence', async () => {
    const name = file('entity.json', entity);
    const at = (time: string): Promise<Called> => redrive(evaluate(name, '--at', time));
    expect(await at('2026-01-25T21:20:00Z')).toEqual({
      code: 0,
      out: 'matches: yes. The delay of 2 min 1.099 s after 2026-01-25T21:15:00Z was over at 2026-01-25T21:17:01.099Z, 2 min 58.901 s ago. (JITTER_ELAPSED)\n',
      err: '',
    });
    expect(await at('2026-01-25T21:15:10Z')).toEqual({
      code: 0,
      out: 'matches: no. The delay of 2 min 1.099 s after 2026-01-25T21:15:00Z is over at 2026-01-25T21:17:01.099Z, in 1 min 51.099 s. (BACKOFF_WAIT)\n',
      err: '',
    });
  });

  it('tells warnings below the sentence, and the skew within it', async () => {
    const odd = { ...entity, attemptCount: '2', jitterEnabled: false };
    const { out } = await redrive(evaluate(file('odd.json', odd), '--at', '2026-01-25T21:14:00Z'));
    expect(out).toBe(
      'matches: no. The last attempt is in the future: lastAttemptTime is 60000 ms after the current time. (TIMING_ERROR)\n' +
        '  DEFAULT_USED: attemptCount must be a whole number, 1 or more, not the text "2"; 1 is used.\n',
    );
  });

  it('answers with JSON as the API does', async () => {
    const name = file('entity.json', entity);
    const { out, code } = await redrive(evaluate(name, '--at', '2026-01-25T21:15:10Z', '--json'));
    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual({
      matches: false,
      reason: 'BACKOFF_WAIT',
      delay_ms: 121_099,
      elapsed_ms: 10_000,
      due_at: '2026-01-25T21:17:01.099Z',
      errors: [],
      warnings: [],
    });
    const limit = await redrive(['evaluate', 'hasRetriesAvailable', name, '--json']);
    expect(JSON.parse(limit.out)).toEqual({
      matches: true,
      reason: 'RETRIES_AVAILABLE',
      attempt_count: 2,
      limit: 3,
      errors: [],
      warnings: [],
    });
  });

  it('gives every case of the rules its answer', async () => {
    for (const { criterion, entity: one, settings, key, context, expected } of criterionCases) {
      const { sets, ...plain } = settings ?? {};
      const given = { ...plain, ...(sets ? { sets } : {}) };
      const args = Object.entries(given).flatMap(([name, value]) => [
        '--set',
        `${name}=${JSON.stringify(value)}`,
      ]);
      if (key !== undefined) args.push('--entity-id', key);
      if (context !== undefined) args.push('--context', context);
      const { out, code } = await redrive(['evaluate', criterion, '-', '--json', ...args], {
        input: JSON.stringify(one),
      });
      const answer = JSON.parse(out) as WireAnswer;
      expect(code).toBe(expected.errors.length > 0 ? 1 : 0);
      expect(answer.errors.map((error) => error.code)).toEqual(expected.errors);
      expect(answer.warnings.map((warning) => warning.code)).toEqual(expected.warnings);
      expect(answer).toMatchObject(
        'limit' in expected
          ? {
              matches: expected.matches,
              reason: expected.reason,
              attempt_count: expected.attemptCount,
              limit: expected.limit,
            }
          : {
              matches: expected.matches,
              reason: expected.reason,
              delay_ms: expected.delayMs,
              due_at: expected.dueAtMs === null ? null : new Date(expected.dueAtMs).toISOString(),
            },
      );
    }
  });

  it('lets --at go before the currentTime of the entity', async () => {
    const name = file('now.json', { ...entity, currentTime: '2026-01-25T21:15:00Z' });
    const { out } = await redrive(evaluate(name, '--at', '2026-01-25T23:00:00+01:00', '--json'));
    expect(JSON.parse(out)).toMatchObject({ matches: true, elapsed_ms: 45 * 60_000 });
    expect((await redrive(evaluate(name))).out).toMatch(/^matches: no\. /);
  });

  it('lets --entity-id, --seed and --set change the answer', async () => {
    const name = file('entity.json', entity);
    const delayOf = async (...args: string[]): Promise<unknown> =>
      (JSON.parse((await redrive(evaluate(name, '--json', ...args))).out) as WireAnswer & object)[
        'delay_ms' as keyof WireAnswer
      ];
    const usual = await delayOf();
    expect(await delayOf('--entity-id', 'order-17')).toBe(usual);
    expect(await delayOf('--entity-id', 'order-18')).not.toBe(usual);
    expect(await delayOf('--seed', '7')).not.toBe(usual);
    expect(await delayOf('--set', 'enableJitter=false')).toBe(120_000);
    expect(
      await delayOf('--set', 'enableJitter=false', '--set', 'defaultBackoffMultiplier=3'),
    ).toBe(180_000);
  });

  it('uses the settings of the environment and of the file', async () => {
    const name = file('bare.json', { lastAttemptTime: entity.lastAttemptTime, operationType: 'x' });
    const off = { CRITERION_ENABLE_JITTER: 'false' };
    const byEnv = await redrive(evaluate(name, '--json'), {
      env: { ...off, CRITERION_DEFAULT_RETRY_DELAY_SECONDS: '7' },
    });
    expect(JSON.parse(byEnv.out)).toMatchObject({ delay_ms: 7000 });
    const config = file('own.json', { criteria: { sets: { x: { defaultRetryDelaySeconds: 9 } } } });
    const byFile = await redrive(evaluate(name, '--json', '--config', config), { env: off });
    expect(JSON.parse(byFile.out)).toMatchObject({ delay_ms: 9000 });
    const faulty = await redrive(evaluate(name), { env: { CRITERION_ENABLE_JITTER: 'maybe' } });
    expect(faulty).toMatchObject({ code: 78, out: '' });
    expect(faulty.err).toContain('CRITERION_ENABLE_JITTER');
  });
});

describe('entities of redrive criteria evaluate', () => {
  const lines = [
    JSON.stringify({ ...entity, currentTime: '2026-01-25T21:20:00Z' }),
    '',
    '{"id": ',
    '[]',
    JSON.stringify({ ...entity, currentTime: '2026-01-25T21:15:00Z' }),
  ].join('\n');

  it('may be one per line, and a bad line spoils no other', async () => {
    const { out, code } = await redrive(evaluate('-'), { input: lines });
    expect(code).toBe(1);
    expect(out.split('\n').map((line) => line.slice(0, 40))).toEqual([
      'line 1: matches: yes. The delay of 2 min',
      'line 3: INVALID_JSON: It is not JSON: Un',
      'line 4: matches: no. DATA_UNAVAILABLE: l',
      'line 5: matches: no. The delay of 2 min ',
      '',
    ]);
  });

  it('have one line of JSON each, in order', async () => {
    const { out } = await redrive(evaluate(file('many.jsonl', lines), '--json'));
    const answers = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(answers).toMatchObject([
      { matches: true },
      { line: 3, error: { code: 'INVALID_JSON' } },
      { matches: false, errors: [{ code: 'DATA_UNAVAILABLE' }] },
      { matches: false, reason: 'BACKOFF_WAIT' },
    ]);
  });

  it.each([
    ['indented', JSON.stringify(entity, null, 2)],
    ['with a byte order mark and blank lines', `\uFEFF\n${JSON.stringify(entity, null, 2)}\n\n`],
    ['with commas first', '{"id": "order-17"\n, "lastAttemptTime": "2026-01-25T21:15:00Z"}'],
  ])('may be one document over many lines: %s', async (_name, input) => {
    const { out, code } = await redrive(evaluate('-', '--json'), { input });
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ matches: true });
  });

  it('may begin with a bad line', async () => {
    const input = `{"id": 1,}\n${JSON.stringify(entity)}\n`;
    const { out, code } = await redrive(evaluate('-'), { input });
    expect(code).toBe(1);
    expect(out).toMatch(/^line 1: INVALID_JSON: .*\nline 2: matches: yes\./);
  });

  it('may have 10 MB', async () => {
    const name = file('large.json', { ...entity, ballast: 'x'.repeat(10_000_000) });
    expect(await redrive(evaluate(name))).toMatchObject({ code: 0, err: '' });
  });

  it.each([
    ['', 'INVALID_JSON', 'The standard input is empty. Write an entity as a JSON object'],
    [' \n\n', 'INVALID_JSON', 'The standard input is empty.'],
    ['{"a": 1', 'INVALID_JSON', 'The standard input: It is not JSON: '],
    ['{\n  "a": 1,\n  "b" 2\n}', 'INVALID_JSON', '(line 3 column 5)'],
    ['[', 'INVALID_JSON', 'It is not JSON'],
    ['['.repeat(600), 'JSON_TOO_DEEP', 'It is nested more than 512 levels deep'],
  ])('that are %j are refused with %s', async (input, code, message) => {
    const plain = await redrive(evaluate('-'), { input });
    expect(plain).toMatchObject({ code: 2, out: '' });
    expect(plain.err).toContain(message);
    const json = await redrive(evaluate('-', '--json'), { input });
    expect(JSON.parse(json.err)).toMatchObject({ error: { code } });
  });

  it('of more than 32 MiB are refused, and spoil no other', async () => {
    const input = `${JSON.stringify({ a: 'x'.repeat(33 * 1024 * 1024) })}\n${JSON.stringify(entity)}`;
    const { out, code } = await redrive(evaluate('-'), { input });
    expect(code).toBe(1);
    expect(out).toMatch(/^line 1: TOO_LARGE: The entity is over 32 MiB.*\nline 2: matches: yes\./);
  });

  it('do not reach a terminal with what it would obey', async () => {
    const input = '{"attemptCount": "\\u001b[2J", "lastAttemptTime": "\\u202e"}\n\u001b[2J\n';
    const { out } = await redrive(evaluate('-'), { input });
    // oxlint-disable-next-line no-control-regex -- that is what must not be there
    expect(out).not.toMatch(/[\u0000-\u0009\u001b\u202e]/);
  });
});

describe('redrive criteria', () => {
  it.each([
    [['evaluate', 'isRetryDelayElapsd', 'x'], "Did you mean 'isRetryDelayElapsed'?"],
    [['evaluate', 'nextRetryTime', 'x'], "'nextRetryTime' is a function, not a criterion"],
    [
      ['evaluate', 'zzz', 'x'],
      "There is no criterion 'zzz'. The criteria are isRetryDelayElapsed, ",
    ],
    [['evaluate', 'isRetryDelayElapsed'], '<file> is missing'],
    [evaluate('nowhere.json'), 'nowhere.json cannot be read: there is no such file.'],
    [evaluate('.'), '. cannot be read: it is a folder.'],
    [evaluate('x', '--at', 'noon'), "--at: 'noon' is no time"],
    [evaluate('x', '--set', 'enableJitter'), "--set: 'enableJitter' is not name=value, such as "],
    [evaluate('x', '--set', 'enableJiter=true'), "Did you mean 'enableJitter'?"],
    [
      evaluate('x', '--set', 'jitterPercentage=5'),
      '--set jitterPercentage: 5 is not a share from 0 to 1.',
    ],
    [['evalute'], 'Did you mean redrive criteria evaluate?'],
  ])('refuses %j with what to do, and exit code 2', async (args, message) => {
    const { code, out, err } = await redrive(args);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain(message);
  });

  it('teaches by an example', async () => {
    const { out, code } = await redrive(['--help']);
    expect(code).toBe(0);
    expect(out).toContain('redrive criteria evaluate isRetryDelayElapsed entity.json');
  });

  it('lists names and the settings in force', async () => {
    const env = { CRITERION_PROFILE: 'development', CRITERION_JITTER_PERCENTAGE: '0.5' };
    const config = file('sets.json', {
      criteria: { sets: { payment: { defaultRetryDelaySeconds: 300 } } },
    });
    const { out, code } = await redrive(['list', '--config', config], { env });
    expect(code).toBe(0);
    expect(out).toContain('hasRetriesAvailable   Whether');
    expect(out).toMatch(/Settings, profile development\n {2}defaultRetryDelaySeconds {2}5\n/);
    expect(out).toMatch(/jitterPercentage +0\.5\n/);
    expect(out).toMatch(/Set payment\n {2}defaultRetryDelaySeconds {2}300\n$/);
    const json = await redrive(['list', '--config', config, '--json'], { env });
    expect(JSON.parse(json.out)).toMatchObject({
      items: [
        { name: 'isRetryDelayElapsed' },
        { name: 'isMaxRetriesExceeded' },
        { name: 'hasRetriesAvailable' },
      ],
      profile: 'development',
      settings: { defaultRetryDelaySeconds: 5, jitterPercentage: 0.5 },
      sets: { payment: { defaultRetryDelaySeconds: 300, jitterPercentage: 0.5 } },
    });
  });
});
