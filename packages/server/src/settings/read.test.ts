import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { definePolicy, presets } from 'redrive';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readSettings, type SettingsInput } from './read.ts';
import type { Settings } from './settings.ts';

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'redrive-settings-'));
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

const hash = 'ab'.repeat(32);

function read(env: Record<string, string> = {}, more: Partial<SettingsInput> = {}) {
  return readSettings({ env, cwd, ...more });
}

async function settingsOf(
  env: Record<string, string> = {},
  more: Partial<SettingsInput> = {},
): Promise<Settings> {
  const reading = await read(env, more);
  if (!reading.ok) throw new Error(JSON.stringify(reading.faults));
  return reading.settings;
}

async function faultsOf(env: Record<string, string>): Promise<Record<string, string>> {
  const reading = await read(env);
  if (reading.ok) throw new Error('It has no faults.');
  return Object.fromEntries(reading.faults.map(({ name, message }) => [name, message]));
}

function write(name: string, content: unknown): void {
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  writeFileSync(join(cwd, name), text);
  // Whatever the umask is: what others may write is a warning.
  chmodSync(join(cwd, name), 0o644);
}

describe('with nothing set', () => {
  it('the contract’s defaults apply', async () => {
    const settings = await settingsOf();
    expect(settings).toMatchObject({
      serviceName: 'retry-scheduler',
      host: '127.0.0.1',
      port: 8086,
      dataDir: join(cwd, 'redrive-data'),
      retryQueue: 'retry.scheduled',
      manualReviewQueue: 'manual-review.pending',
      deadLetterBindings: ['#'],
      unclassifiedAs: 'transient',
      pollMs: 10_000,
      inboxRetentionDays: 30,
      inboxMaxItems: 1_000_000,
      audit: true,
      auditRetentionDays: 90,
      tokens: [],
      logFormat: 'json',
    });
    expect(settings).not.toHaveProperty('rabbitmqUrl');
    expect(settings).not.toHaveProperty('databaseUrl');
    expect(definePolicy(settings.policy).fingerprint).toBe(presets.scheduler.fingerprint);
  });

  it('the log is for a person where one is there', async () => {
    expect((await settingsOf({}, { isTty: true })).logFormat).toBe('pretty');
  });
});

describe('where a value comes from', () => {
  it('is the command line, then the environment, then .env, then the file', async () => {
    write('redrive.config.json', { port: 1, host: '127.0.0.2', serviceName: 'file', rateLimit: 7 });
    write('.env', 'HTTP_PORT=2\nREDRIVE_HOST=127.0.0.3\nSERVICE_NAME="from env file"\n');
    const reading = await read(
      { HTTP_PORT: '3', REDRIVE_HOST: '127.0.0.4' },
      { flags: { port: '4' } },
    );
    expect(reading).toMatchObject({
      settings: { port: 4, host: '127.0.0.4', serviceName: 'from env file', rateLimit: 7 },
      origins: expect.arrayContaining([
        { name: 'HTTP_PORT', value: '4', from: 'the command line' },
        { name: 'REDRIVE_HOST', value: '127.0.0.4', from: 'the environment' },
        { name: 'SERVICE_NAME', value: 'from env file', from: '.env' },
        { name: 'REDRIVE_RATE_LIMIT', value: '7', from: 'redrive.config.json' },
        { name: 'RETRY_QUEUE', value: 'retry.scheduled', from: 'default' },
      ]),
    });
  });

  it('an empty variable is none', async () => {
    expect(await settingsOf({ DATABASE_URL: '', HTTP_PORT: ' ' })).toMatchObject({ port: 8086 });
  });

  it('shows no secret', async () => {
    const reading = await read({
      DATABASE_URL: 'postgres://me:hush@db/x?password=hush2',
      RABBITMQ_URL: 'amqp://me:hush@mq',
      REDRIVE_INBOX_WEBHOOK: 'https://hooks.example.com/hush',
      REDRIVE_HTTP_ALLOW: 'hooks.example.com',
      REDRIVE_TOKENS: `ops:operator:${hash}`,
    });
    expect(JSON.stringify('origins' in reading && reading.origins)).not.toMatch(/hush|abab/);
    expect(reading).toMatchObject({
      origins: expect.arrayContaining([
        {
          name: 'DATABASE_URL',
          value: 'postgres://me:***@db/x?password=***',
          from: 'the environment',
        },
      ]),
    });
  });
});

describe('the policy', () => {
  it('is the scheduler’s with the contract’s three numbers', async () => {
    const { policy } = await settingsOf({
      DEFAULT_MAX_RETRIES: '5',
      BASE_DELAY_MS: '100',
      MAX_DELAY_MS: '1000',
    });
    expect(policy).toMatchObject({ maxAttempts: 6, base: 100, cap: 1000, jitter: 'add' });
  });

  it('is the file’s, with what the environment says of it', async () => {
    write('redrive.config.json', { policy: { maxAttempts: 9, base: '1s', jitter: 'full' } });
    const { policy } = await settingsOf({ BASE_DELAY_MS: '100' });
    expect(policy).toMatchObject({ maxAttempts: 9, base: 100, jitter: 'full' });
  });

  it('is the scheduler’s in what the file leaves out', async () => {
    write('redrive.config.json', { policy: { maxAttempts: 9 } });
    const { policy } = await settingsOf();
    const usual = { base: 2000, cap: 60_000, jitter: 'add', retryOn: ['transient'] };
    expect(policy).toMatchObject({ ...usual, maxAttempts: 9, maxRetryAfter: 86_400_000 });
  });

  it('of a lane has to fit those below it', async () => {
    write('redrive.config.json', {
      policy: { jitter: 'decorrelated' },
      lane: { policy: { maxAttempts: 3 } },
      lanes: {
        'queue:a': { policy: { strategy: 'fixed' } },
        'queue:b': { policy: { base: '1s' } },
      },
    });
    const { faults } = (await read()) as { faults: object[] };
    expect(faults).toMatchObject([
      {
        name: 'lanes.queue:a.jitter',
        message: expect.stringContaining(
          'strategy from the policy of the lane queue:a, jitter from the policy of the engine',
        ),
      },
    ]);
  });
});

describe('the file', () => {
  it('may be a module, with secrets that stand in the environment', async () => {
    write(
      'redrive.config.ts',
      `const lanes: Record<string, object> = { 'queue:orders': { concurrency: 5, rate: 10 } };
       export default {
         lanes,
         policies: { slow: { base: '1h', cap: '1d' } },
         rules: [{ words: ['out of stock'], class: 'business' }],
         secrets: {
           billing: { bearer: { env: 'BILLING_TOKEN' }, origins: ['http://127.0.0.1:7000'] },
           crm: {
             basic: { user: 'redrive', password: { env: 'CRM_PASSWORD' } },
             origins: ['http://localhost:7001'],
           },
         },
       };`,
    );
    write('.env', 'CRM_PASSWORD=two\n');
    expect(await settingsOf({ BILLING_TOKEN: 'one' })).toMatchObject({
      lanes: { 'queue:orders': { concurrency: 5, rate: 10 } },
      policies: { slow: { base: '1h' } },
      rules: [{ class: 'business' }],
      secrets: { billing: { bearer: 'one' }, crm: { basic: { user: 'redrive', password: 'two' } } },
    });
  });

  it('tells every fault with its place', async () => {
    write('redrive.config.json', {
      prot: 1,
      HTTP_PORT: 2,
      port: '80',
      lane: { concurency: 5 },
      lanes: { 'queue:a': { concurrency: 0 }, orders: {}, 'https://a.example.com/x': {} },
      policy: { retries: 3 },
      policies: { slow: { base: 'soon' } },
      rules: [{ word: ['x'], class: 'busines' }],
      secrets: { billing: { bearer: { env: 'NOT_THERE' } } },
    });
    expect(await faultsOf({})).toMatchObject({
      prot: expect.stringContaining("Did you mean 'port'?"),
      HTTP_PORT: expect.stringContaining("Did you mean 'port'?"),
      port: expect.stringContaining('whole number from 0 to 65535'),
      'lane.concurency': expect.stringContaining("Did you mean 'concurrency'?"),
      'lanes.queue:a.concurrency': expect.stringContaining('from 1 to 10000'),
      'lanes.orders': expect.stringContaining("Did you mean 'queue:orders'?"),
      'lanes.https://a.example.com/x': expect.stringContaining(
        "Did you mean 'https://a.example.com'?",
      ),
      'policy.retries': expect.stringContaining("Did you mean 'maxAttempts'?"),
      'policies.slow.base': expect.stringContaining('not a duration'),
      'rules.0.word': expect.stringContaining("Did you mean 'words'?"),
      'rules.0.class': expect.stringContaining('transient, business, technical, unknown'),
      'secrets.billing.bearer': expect.stringContaining('NOT_THERE is not set'),
    });
  });

  it('that cannot be read is a fault', async () => {
    write('redrive.config.json', '{ "port": }');
    expect(await faultsOf({})).toHaveProperty(['redrive.config.json']);
    expect(await faultsOf({ REDRIVE_CONFIG: 'none.json' })).toEqual({
      'none.json': 'does not exist.',
    });
  });

  it('that is one of several is named', async () => {
    write('redrive.config.json', {});
    write('redrive.config.js', 'export default {}');
    expect(await read()).toMatchObject({
      warnings: ['redrive.config.js is used, redrive.config.json is not.'],
    });
  });
});

describe('faults', () => {
  it('are all told at once, with the value and what is allowed', async () => {
    const faults = await faultsOf({
      HTTP_PORT: '80x',
      DEFAULT_MAX_RETRIES: '-1',
      UNCLASSIFIED_AS: 'transiet',
      REDRIVE_AUDIT: 'maybe',
      RABBITMQ_URL: 'ampq://me:hush@mq',
      RETRY_QUEUE: 'amq.retry',
      REDRIVE_HTTP_ALLOW: 'loopback,169.254.169.254',
    });
    expect(faults).toEqual({
      HTTP_PORT: "'80x' is not a whole number from 0 to 65535.",
      DEFAULT_MAX_RETRIES: '-1 is not a whole number from 0 to 1000000.',
      UNCLASSIFIED_AS:
        "'transiet' is not one of transient, business, technical, unknown. Did you mean 'transient'?",
      REDRIVE_AUDIT: "'maybe' is not true or false.",
      RABBITMQ_URL:
        "'ampq://me:***@mq' is not a URL with amqp:// or amqps://, such as amqp://guest:guest@localhost:5672. Did you mean amqp://?",
      RETRY_QUEUE: "'amq.retry' is not a name of 1 to 255 bytes that does not begin with 'amq.'.",
      REDRIVE_HTTP_ALLOW: expect.stringContaining('169.254.169.254'),
    });
  });

  it('a secret that could be sent anywhere is one', async () => {
    write('redrive.config.json', {
      secrets: {
        anywhere: { bearer: 'hush' },
        nowhere: { bearer: 'hush', origins: [] },
        wrong: null,
        fine: { bearer: 'hush', origins: ['http://localhost:7000'] },
      },
    });
    const faults = await faultsOf({});
    expect(faults).toEqual({
      'secrets.anywhere': expect.stringMatching(/has no `origins`.*\['https:\/\/api/),
      'secrets.nowhere': expect.stringContaining('has no `origins`'),
      'secrets.wrong': expect.any(String),
    });
    expect(JSON.stringify(faults)).not.toContain('hush');
  });

  it('a webhook whose host may not be connected to is one', async () => {
    const webhook = { REDRIVE_INBOX_WEBHOOK: 'https://hooks.example.com/hush' };
    expect(await faultsOf(webhook)).toEqual({
      REDRIVE_INBOX_WEBHOOK: expect.stringMatching(
        /'hooks.example.com' is not in REDRIVE_HTTP_ALLOW/,
      ),
    });
    expect(JSON.stringify(await faultsOf(webhook))).not.toContain('hush');
    for (const allow of ['public', '*.example.com']) {
      await settingsOf({ ...webhook, REDRIVE_HTTP_ALLOW: allow });
    }
    await settingsOf({ REDRIVE_INBOX_WEBHOOK: 'http://127.0.0.1:9/hook' });
  });

  it('an alert that nobody could raise, or that has no limit, is warned of', async () => {
    const webhook = { REDRIVE_RETRY_RATE_WEBHOOK: 'http://127.0.0.1:9/hook' };
    const alert = { REDRIVE_RETRY_RATE_ALERT: '600' };
    expect((await read({ ...webhook, ...alert })).warnings).toEqual([]);
    expect((await read(webhook)).warnings).toEqual([
      'REDRIVE_RETRY_RATE_WEBHOOK: has no effect without REDRIVE_RETRY_RATE_ALERT.',
    ]);
    expect((await read({ ...alert, REDRIVE_AUDIT: 'false' })).warnings).toEqual([
      'REDRIVE_RETRY_RATE_ALERT: has no effect without REDRIVE_AUDIT.',
    ]);
  });

  it('lanes and secrets of hosts that may not be connected to are warned of', async () => {
    write('redrive.config.json', {
      lanes: { 'https://a.example.com': { rate: 1 }, 'https://b.example.com': { rate: 1 } },
      secrets: {
        crm: { bearer: 'x', origins: ['https://a.example.com', 'https://c.example.com'] },
      },
    });
    const reading = await readSettings({ cwd, env: { REDRIVE_HTTP_ALLOW: 'a.example.com' } });
    expect(reading.warnings.filter((text) => text.includes('REDRIVE_HTTP_ALLOW'))).toEqual([
      expect.stringContaining('https://b.example.com'),
      expect.stringContaining('https://c.example.com'),
    ]);
  });

  it('a receiver of notifications that may not be connected to is warned of', async () => {
    const told = async (more: Record<string, string>) => {
      const env = { NOTIFICATIONS: 'on', NOTIFICATION_DELIVERY: 'https://p.example/x', ...more };
      const { warnings } = await readSettings({ cwd, env });
      return warnings.filter((text) => text.includes('NOTIFICATION_DELIVERY'));
    };
    expect(await told({})).toEqual([expect.stringContaining('Set REDRIVE_HTTP_ALLOW=p.example')]);
    expect(await told({ REDRIVE_HTTP_ALLOW: 'p.example' })).toEqual([]);
    expect(await told({ NOTIFICATION_DELIVERY: 'http://127.0.0.1:9/' })).toEqual([]);
    expect(await told({ NOTIFICATIONS: 'off' })).toEqual([]);
  });

  it('a setting that is set wrongly is not told to be missing', async () => {
    const env = { NOTIFICATIONS: 'on', NOTIFICATION_DELIVERY: 'foo' };
    const reading = await readSettings({ cwd, env });
    expect(reading).toMatchObject({ ok: false, faults: [{ name: 'NOTIFICATION_DELIVERY' }] });
    expect(reading.warnings.join()).not.toContain('is not set');
  });

  it('listening beyond this machine needs tokens', async () => {
    const faults = await faultsOf({ REDRIVE_HOST: '0.0.0.0' });
    expect(faults['REDRIVE_HOST']).toContain('redrive token ops');
    for (const host of ['localhost', '127.9.9.9', '::1']) {
      expect(await settingsOf({ REDRIVE_HOST: host })).toMatchObject({ host });
    }
    const tokens = { REDRIVE_TOKENS: `ops:admin:${hash}, ro:reader:${hash.toUpperCase()}` };
    expect(await settingsOf({ REDRIVE_HOST: '0.0.0.0', ...tokens })).toMatchObject({
      tokens: [
        { name: 'ops', role: 'admin', sha256: hash },
        { name: 'ro', role: 'reader', sha256: hash },
      ],
    });
  });

  it('a token that stands where its hash belongs is not shown', async () => {
    const faults = await faultsOf({
      REDRIVE_HOST: '0.0.0.0',
      REDRIVE_TOKENS: `ops:admin:redrive_hush,hush,ops:king:${hash},ops:admin:${hash}`,
    });
    // Not REDRIVE_HOST: faulty tokens are not none.
    expect(Object.keys(faults)).toEqual(['REDRIVE_TOKENS']);
    expect(faults['REDRIVE_TOKENS']).toMatch(/entry 1.*entry 2.*entry 3.*entry 4/);
    expect(faults['REDRIVE_TOKENS']).not.toContain('hush');
  });

  it('queues of ours must differ', async () => {
    const names = { RETRY_QUEUE: 'a', MANUAL_REVIEW_QUEUE: 'a' };
    expect(await faultsOf(names)).toHaveProperty('MANUAL_REVIEW_QUEUE');
    expect(await faultsOf({ RETRY_QUEUE: 'redrive.dead-letters' })).toHaveProperty('RETRY_QUEUE');
  });
});

it('refuses the names of queues that Redrive uses itself', async () => {
  const reading = await read({
    RETRY_QUEUE: 'redrive.oversized',
    MANUAL_REVIEW_QUEUE: 'redrive.dead-letters',
  });
  expect(reading).toMatchObject({
    ok: false,
    faults: [
      {
        name: 'RETRY_QUEUE',
        message: `'redrive.oversized' is where Redrive puts messages that are too large to be stored. Give it another name.`,
      },
      {
        name: 'MANUAL_REVIEW_QUEUE',
        message: `'redrive.dead-letters' is where Redrive takes in dead letters. Give it another name.`,
      },
    ],
  });
});

describe('the largest request', () => {
  const MiB = 1024 * 1024;
  const limitWith = async (env: Record<string, string>) => {
    const reading = await read(env);
    if (!reading.ok) throw new Error('it has faults');
    return { bytes: reading.settings.maxRequestBytes, warnings: reading.warnings };
  };

  it('is 8 MiB, or what the largest payload needs in base64', async () => {
    expect(await limitWith({})).toEqual({ bytes: 8 * MiB, warnings: [] });
    const largest = { REDRIVE_MAX_PAYLOAD_BYTES: `${16 * MiB}` };
    const needed = Math.ceil((16 * MiB) / 3) * 4 + 64 * 1024;
    expect(await limitWith(largest)).toEqual({ bytes: needed, warnings: [] });
  });

  it('is as it was set, with a warning where it is too small for a payload that is allowed', async () => {
    const env = { REDRIVE_MAX_PAYLOAD_BYTES: '3000', REDRIVE_MAX_REQUEST_BYTES: '69535' };
    expect(await limitWith(env)).toEqual({
      bytes: 69_535,
      warnings: [
        'REDRIVE_MAX_REQUEST_BYTES (69535) is too little for the largest payload in base64, so that such requests are refused. With REDRIVE_MAX_PAYLOAD_BYTES=3000, 69536 are enough.',
      ],
    });
    const enough = { ...env, REDRIVE_MAX_REQUEST_BYTES: '69536' };
    expect((await limitWith(enough)).warnings).toEqual([]);
  });
});

describe('warnings', () => {
  it('are given for names that are not known', async () => {
    write('.env', 'DATABSE_URL=x\nSOMETHING=else\n');
    const reading = await read({
      REDRIVE_DATADIR: 'x',
      REDRIVE_MAX_PAYLOAD_BYTE: '1',
      REDRIVE_NONSENSE: 'x',
      REDRIVE_PROT: '9000',
      REDRIVE_DATABASE_URL: 'x',
      RABITMQ_URL: 'x',
      NOTIFICATION: 'on',
      HTTP_PROXY: 'not ours',
      REDIS_URL: 'redis://127.0.0.1',
      REDIS_URI: 'of somebody else, since ours is set',
      PATH: '/bin',
    });
    expect(reading.warnings).toEqual([
      'DATABSE_URL is not a setting of Redrive, and is ignored. Did you mean DATABASE_URL?',
      'REDRIVE_DATADIR is not a setting of Redrive, and is ignored. Did you mean REDRIVE_DATA_DIR?',
      'REDRIVE_MAX_PAYLOAD_BYTE is not a setting of Redrive, and is ignored. Did you mean REDRIVE_MAX_PAYLOAD_BYTES?',
      'REDRIVE_NONSENSE is not a setting of Redrive, and is ignored.',
      'REDRIVE_PROT is not a setting of Redrive, and is ignored. Did you mean HTTP_PORT?',
      'REDRIVE_DATABASE_URL is not a setting of Redrive, and is ignored. Did you mean DATABASE_URL?',
      'RABITMQ_URL is not a setting of Redrive, and is ignored. Did you mean RABBITMQ_URL?',
      'NOTIFICATION is not a setting of Redrive, and is ignored. Did you mean NOTIFICATIONS?',
    ]);
  });

  it('are given for what has no effect', async () => {
    const { warnings } = await read({ DEAD_LETTER_EXCHANGE: 'dlx', BASE_DELAY_MS: '70000' });
    expect(warnings).toEqual([
      'BASE_DELAY_MS (70000) is over MAX_DELAY_MS (60000): every delay is 60000 ms.',
      'DEAD_LETTER_EXCHANGE: has no effect without RABBITMQ_URL.',
    ]);
  });

  it('are given for notifications that go nowhere, or are off', async () => {
    expect((await read({ NOTIFICATIONS: 'on' })).warnings).toEqual([
      expect.stringMatching(/^NOTIFICATION_DELIVERY is not set/),
    ]);
    const to = { NOTIFICATION_DELIVERY: 'http://127.0.0.1:9000/deliver' };
    expect((await read({ NOTIFICATIONS: 'on', ...to })).warnings).toEqual([]);
    expect((await read(to)).warnings).toEqual([
      'NOTIFICATION_DELIVERY: has no effect without NOTIFICATIONS=on.',
    ]);
    expect((await read({ NOTIFICATIONS: 'off', ...to })).warnings).toEqual([]);
  });

  it('are given for a lane or a secret of a host that may not be connected to', async () => {
    write('redrive.config.json', {
      lanes: { 'https://lane.example': { concurrency: 2 }, 'handler:a': { concurrency: 2 } },
    });
    const ofLane = /lane\.example.*: has no effect, its host is not in REDRIVE_HTTP_ALLOW\.$/;
    expect((await read({})).warnings).toEqual([expect.stringMatching(ofLane)]);
    expect((await read({ REDRIVE_HTTP_ALLOW: 'lane.example' })).warnings).toEqual([]);
    const secrets = { key: { bearer: 'hush', origins: ['https://secret.example'] } };
    write('redrive.config.json', { secrets });
    const ofSecret = /^secrets\.key: https:\/\/secret\.example: has no effect/;
    expect((await read({})).warnings).toEqual([expect.stringMatching(ofSecret)]);
  });
});
