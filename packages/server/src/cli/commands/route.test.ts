import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../run.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'route-'));
  file('llm.json', llm);
  file('bad.json', { version: 1, providers: [{ name: 'a', wieght: 1 }] });
  file('legacy.json', { version: '1.0', weights: { a: 60 } });
});
afterAll(() => rmSync(folder, { recursive: true }));

const backoff = { strategy: 'fixed', base_ms: 500, jitter: false };
const llm = {
  version: '1.0',
  providers: [
    { name: 'primary', weight: 100 },
    { name: 'backup', weight: 0 },
  ],
  fallbacks: [{ when: { status: ['timeout', '5xx', 'rate_limit'] }, to: 'backup', backoff }],
  circuit_breaker: { enabled: true, failure_threshold: 2, timeout_ms: 10_000 },
  timeout_ms: 1000,
};

function file(name: string, content: unknown): void {
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  writeFileSync(join(folder, name), text);
}

async function redrive(args: readonly string[], input = '') {
  const called = { code: -1, out: '', err: '' };
  called.code = await run(['route', ...args], {
    out: (text) => (called.out += text),
    err: (text) => (called.err += text),
    env: {},
    cwd: folder,
    isTty: false,
    columns: 80,
    input: () => Promise.resolve(Buffer.from(input)),
  });
  return called;
}

async function json(args: readonly string[], input = ''): Promise<unknown[]> {
  const { out } = await redrive([...args, '--json'], input);
  return out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
}

describe('redrive route lint', () => {
  it('says that a policy is good', async () => {
    expect(await redrive(['lint', 'llm.json'])).toEqual({
      code: 0,
      out: 'llm.json: good\n',
      err: '',
    });
  });

  it('lists faults with their places, warnings and notes, for several files', async () => {
    const { code, out } = await redrive(['lint', 'bad.json', 'legacy.json']);
    expect(code).toBe(1);
    expect(out.split('\n')).toEqual([
      'bad.json: 3 faults',
      expect.stringContaining('fault version: 1 is not a text'),
      expect.stringMatching(/fault providers\.0\.wieght: .*Did you mean 'weight'\?/),
      expect.stringContaining('fault providers.0.weight'),
      'legacy.json: usable, with 1 warning',
      expect.stringContaining('warning providers: The weights sum to 60'),
      expect.stringContaining('note weights: '),
      '',
    ]);
  });

  it('leaves out the file of the gateway, which lies beside the policies', async () => {
    file('providers.json', { openai: { base_url: 'https://api.openai.com' } });
    expect(await redrive(['lint', 'llm.json', 'providers.json'])).toEqual({
      code: 0,
      out: 'llm.json: good\nproviders.json: no policy, left out. redrive doctor looks at it.\n',
      err: '',
    });
    expect(await json(['lint', 'llm.json', 'providers.json'])).toHaveLength(1);
  });

  it('ends with 1 for warnings only where they count', async () => {
    expect((await redrive(['lint', 'legacy.json'])).code).toBe(0);
    expect((await redrive(['lint', 'legacy.json', '--strict'])).code).toBe(1);
    expect((await redrive(['lint', 'llm.json', '--strict'])).code).toBe(0);
  });

  it('reads the standard input, and JSON on the command line', async () => {
    expect((await redrive(['lint', '-'], JSON.stringify(llm))).code).toBe(0);
    const { out } = await redrive(['lint', '{"version": "1.0",}']);
    expect(out).toContain('the JSON given: 1 fault');
    expect(out).toContain('line 1, column 19');
  });

  it('answers with JSON', async () => {
    expect(await json(['lint', 'llm.json', 'bad.json'])).toMatchObject([
      { policy: 'llm.json', id: 'llm', ok: true, faults: [], warnings: [] },
      { policy: 'bad.json', ok: false, faults: [{ path: 'version' }, {}, {}] },
    ]);
  });

  it('says which file it cannot read', async () => {
    const { code, err } = await redrive(['lint', 'nowhere.json']);
    expect(code).not.toBe(0);
    expect(err).toContain('nowhere.json');
    file('large.json', ' '.repeat(1024 * 1024 + 1));
    expect((await redrive(['lint', 'large.json'])).out).toContain('more than 1048576 bytes');
  });

  it('obeys no control character of a policy', async () => {
    const { out } = await redrive(['lint', '{"version": "1.0", "a\\u001b[31m": 1}']);
    expect(out).not.toContain('\u001B');
  });
});

describe('redrive route explain', () => {
  it('says who is called first, and shows the next context', async () => {
    const { code, out } = await redrive(['explain', 'llm.json', '--seed', '3']);
    expect(code).toBe(0);
    expect(out).toBe(`Provider primary: weighted (priority 50, policy llm 1.0)
  2. Applied weighted distribution: 2 providers, total weight: 100
Call primary.

Seed 3. Next context:
{
  "current_provider": "primary"
}
`);
  });

  it('says how long to wait before a retry, with a context of a file, of JSON or of the input', async () => {
    const context = { request_id: 'r1', current_provider: 'primary', status: 'timeout' };
    file('ctx.json', context);
    for (const source of ['ctx.json', JSON.stringify(context), '-']) {
      const args = ['explain', 'llm.json', '--context', source];
      const { out } = await redrive(args, JSON.stringify(context));
      expect(out).toContain('3. Retry attempt 1/1 with backoff 500ms');
      expect(out).toContain('Wait 500 ms, then call primary.');
    }
  });

  it('says that nobody is left, and what was ignored', async () => {
    const context = { current_provider: 'primary', status: '404', retry_attempts_x: 1 };
    const { code, out } = await redrive([
      'explain',
      'llm.json',
      '--context',
      JSON.stringify(context),
    ]);
    expect(code).toBe(0);
    expect(out).toContain('No provider is left: give up.');
    expect(out).toContain('warning retry_attempts_x: ');
  });

  it('answers as the API does', async () => {
    const [answer] = await json(['explain', 'llm.json', '--seed', '5', '--detail', 'verbose']);
    expect(answer).toMatchObject({
      result: 'ok',
      provider: 'primary',
      seed: 5,
      explanation: { details: { providers: [{ provider: 'primary' }, {}] } },
    });
    const { out } = await redrive(['explain', 'llm.json', '--detail', 'verbose']);
    expect(out).toContain('    primary, weight 100\n');
    expect(out).toMatch(/ {4}[\da-f]{16} to backup, 0\/1 retries used/);
  });

  it.each([
    [['explain', 'bad.json'], 'providers.0.wieght: '],
    [['explain', 'llm.json', '--context', '[]'], 'is not an object'],
    [['explain', 'llm.json', '--context', '{"a"'], 'is none'],
    [['explain', 'llm.json', '--context', '{"current_provider": "x"}'], 'primary, backup'],
    [['explain', '-', '--context', '-'], 'standard input'],
    [['explain', 'llm.json', '--detail', 'all'], 'minimal'],
  ])('refuses %j', async (args, sentence) => {
    const { code, err } = await redrive(args);
    expect(code).toBe(2);
    expect(err).toContain(sentence);
  });
});

describe('redrive route play', () => {
  it('knows which status was meant, and takes words of its own', async () => {
    const misspelt = await redrive(['play', 'llm.json', '--fail', 'primary:tiemout']);
    expect(misspelt.code).toBe(2);
    expect(misspelt.err).toContain("Did you mean 'timeout'?");
    const own = await redrive(['play', 'llm.json', '--fail', 'primary:content_filter']);
    expect(own.code).not.toBe(2);
    expect((await redrive(['play', 'llm.json', '--fail', 'primary:504'])).code).not.toBe(2);
  });

  it('draws calls and waits to scale, with the reason of each step', async () => {
    const { code, out } = await redrive(['play', 'llm.json', '--fail', 'primary:timeout,503']);
    expect(code).toBe(0);
    expect(out).toBe(`Policy llm 1.0: 3 calls in 1.9 s

         0 ms                                                              1.9 s
primary  █████████████████████████████████████✗·················████████✗
backup                                                                  ███████✓

   AT  PROVIDER  OUTCOME            REASON
 0 ms  primary   timeout after 1 s  weighted: Applied weighted distribution: 2 providers, total weight: 100
  1 s  primary   wait 500 ms
1.5 s  primary   503 after 200 ms   retry: Retry attempt 1/1 with backoff 500ms
1.7 s  backup    ok after 200 ms    circuit_breaker_fallback: Applied fallback rule: circuit breaker of primary is open, 1/1 retry attempts used

backup answered.
primary is open then.
`);
  });

  it('ends with 1 where nobody answers, and says why', async () => {
    const args = ['play', 'llm.json', '--fail', 'primary:503,503', '--fail', 'backup:400'];
    const { code, out } = await redrive(args);
    expect(code).toBe(1);
    expect(out).toContain('no answer: NO_FALLBACK');
    expect(out).toContain('No provider answered.');
  });

  it('shows several requests: a breaker that opens keeps them away', async () => {
    const args = ['play', 'llm.json', '--fail', 'primary:503,503,503', '--requests', '4'];
    const [story] = (await json(args)) as [
      {
        requests: { attempts: { provider: string; started_at_ms: number }[] }[];
        providers: object;
      },
    ];
    expect(story.providers).toMatchObject({ primary: { state: 'open' } });
    const calls = story.requests.map(({ attempts }) =>
      attempts.map((one) => `${one.provider} at ${one.started_at_ms}`).join(', '),
    );
    expect(calls).toEqual([
      'primary at 0, primary at 700, backup at 900',
      'backup at 1000',
      'backup at 2000',
      'backup at 3000',
    ]);
  });

  it('shows a rate limit with its pause: other requests go elsewhere meanwhile', async () => {
    const args = ['play', 'llm.json', '--fail', 'primary:429@3s', '--requests', '3'];
    const [story] = (await json(args)) as [{ requests: { provider: string }[] }];
    expect(story.requests.map(({ provider }) => provider)).toEqual(['primary', 'backup', 'backup']);
  });

  it('hedges, skips waits and has a deadline where it is asked to', async () => {
    const play = async (...args: string[]) =>
      (await json(['play', 'llm.json', '--fail', 'primary:timeout', ...args]))[0];
    expect(await play('--hedge-after', '300ms')).toMatchObject({
      requests: [
        {
          provider: 'backup',
          attempts: [{ outcome: 'abandoned' }, { hedge: true, started_at_ms: 300 }],
        },
      ],
    });
    expect(await play('--skip-waits')).toMatchObject({
      requests: [{ attempts: [{}, { provider: 'backup', waited_ms: 0 }] }],
    });
    expect(await play('--deadline', '500ms')).toMatchObject({
      requests: [{ provider: null, error: { code: 'DEADLINE' }, ended_at_ms: 500 }],
    });
  });

  it('tells the same story for the same seed', async () => {
    const args = ['play', 'llm.json', '--fail', 'primary:timeout,503', '--seed', '9', '--json'];
    expect(await redrive(args)).toEqual(await redrive(args));
  });

  it.each([
    ['primry:timeout', "It has: primary, backup. Did you mean 'primary'?"],
    ['primary', 'is not a status'],
    ['primary:', 'is not a status'],
    ['primary:timeout,,ok', 'is not a status'],
    ['primary:429@soon', "'soon' is no time"],
  ])('refuses --fail %s', async (fail, sentence) => {
    const { code, err } = await redrive(['play', 'llm.json', '--fail', fail]);
    expect(code).toBe(2);
    expect(err).toContain(sentence);
  });

  it('refuses too many statuses', async () => {
    const fail = `primary:${'ok,'.repeat(1001)}ok`;
    expect((await redrive(['play', 'llm.json', '--fail', fail])).err).toContain('at most 1000');
  });

  it('refuses the same provider twice', async () => {
    const args = ['play', 'llm.json', '--fail', 'primary:503', '--fail', 'primary:503'];
    expect((await redrive(args)).err).toContain('primary is there twice');
  });

  it('draws a hundred requests to many providers in a narrow terminal', async () => {
    const providers = Array.from({ length: 40 }, (_, i) => ({ name: `provider_${i}`, weight: 1 }));
    file('many.json', { version: '1.0', providers });
    const { code, out } = await redrive([
      'play',
      'many.json',
      '--requests',
      '100',
      '--every',
      '0s',
    ]);
    expect(code).toBe(0);
    expect(out).toContain('more providers');
    expect(out).toContain('100 of 100 requests were answered.');
  });
});
