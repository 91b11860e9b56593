import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { criterionConfig } from 'redrive';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { criterionVariables } from './criterion-variables.ts';
import { readSettings } from './read.ts';

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'redrive-criteria-'));
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

function write(config: unknown): void {
  const path = join(cwd, 'redrive.config.json');
  writeFileSync(path, JSON.stringify(config));
  chmodSync(path, 0o644);
}

async function settingsOf(env: Record<string, string> = {}) {
  const reading = await readSettings({ env, cwd });
  if (!reading.ok) throw new Error(JSON.stringify(reading.faults));
  return { ...reading.settings, warnings: reading.warnings, origins: reading.origins };
}

async function faultsOf(env: Record<string, string> = {}): Promise<Record<string, string>> {
  const reading = await readSettings({ env, cwd });
  if (reading.ok) throw new Error('It has no faults.');
  return Object.fromEntries(reading.faults.map(({ name, message }) => [name, message]));
}

describe('the settings of the criteria', () => {
  it('are the defaults of the document where nothing is set', async () => {
    const { criteria, criterionReview, criterionRateLimit } = await settingsOf();
    expect(criteria).toEqual({});
    expect(criterionConfig(criteria)).toMatchObject({
      defaultRetryDelaySeconds: 60,
      defaultMaxDelaySeconds: 3600,
      responseTimeoutMs: 2000,
    });
    expect([criterionReview, criterionRateLimit]).toEqual([true, 100_000]);
  });

  it('have a variable for every field that core knows', () => {
    const fields = Object.keys(criterionVariables)
      .filter((name) => name.startsWith('criteria.'))
      .map((name) => name.slice('criteria.'.length));
    expect(fields.sort()).toEqual([...Object.keys(criterionConfig()), 'profile'].sort());
  });

  it('come from the environment under the document’s names', async () => {
    const { criteria } = await settingsOf({
      CRITERION_PROFILE: 'development',
      CRITERION_DEFAULT_RETRY_DELAY_SECONDS: '30',
      CRITERION_DEFAULT_BACKOFF_MULTIPLIER: '1.5',
      CRITERION_DEFAULT_MAX_DELAY_SECONDS: '600',
      CRITERION_ENABLE_EXPONENTIAL_BACKOFF: 'false',
      CRITERION_ENABLE_JITTER: '0',
      CRITERION_JITTER_PERCENTAGE: '0.25',
      CRITERION_RESPONSE_TIMEOUT_MS: '500',
      CRITERION_CALCULATION_NODES_TAGS: 'retry,submission',
      CRITERION_CONTEXT: 'check',
      CRITERION_ATTACH_ENTITY: 'false',
    });
    expect(criteria).toEqual({
      profile: 'development',
      defaultRetryDelaySeconds: 30,
      defaultBackoffMultiplier: 1.5,
      defaultMaxDelaySeconds: 600,
      enableExponentialBackoff: false,
      enableJitter: false,
      jitterPercentage: 0.25,
      responseTimeoutMs: 500,
      calculationNodesTags: 'retry,submission',
      context: 'check',
      attachEntity: false,
    });
  });

  it('come from the file with their sets, and a variable outranks the field', async () => {
    const sets = { PAYMENT: { defaultRetryDelaySeconds: 5 } };
    write({ criteria: { defaultRetryDelaySeconds: 20, enableJitter: false, sets } });
    const { criteria, origins } = await settingsOf({ CRITERION_ENABLE_JITTER: 'true' });
    expect(criteria).toEqual({ defaultRetryDelaySeconds: 20, enableJitter: true, sets });
    const shown = Object.fromEntries(origins.map(({ name, value, from }) => [name, [value, from]]));
    expect(shown).toMatchObject({
      CRITERION_DEFAULT_RETRY_DELAY_SECONDS: ['20', 'redrive.config.json'],
      CRITERION_ENABLE_JITTER: ['true', 'the environment'],
      criteria: ['given', 'redrive.config.json'],
    });
  });

  it('tell all faults at once, with what is allowed', async () => {
    write({
      criteria: { enableJiter: true, context: 7, sets: { A: { jitterPercentage: 2 }, '': {} } },
    });
    const faults = await faultsOf({
      CRITERION_DEFAULT_BACKOFF_MULTIPLIER: '0',
      CRITERION_JITTER_PERCENTAGE: '1.1',
      CRITERION_PROFILE: 'develop',
      CRITERION_DEFAULT_RETRY_DELAY_SECONDS: '1.5',
    });
    expect(faults).toMatchObject({
      CRITERION_DEFAULT_BACKOFF_MULTIPLIER: '0 is not a number above 0 and up to 1000, such as 2.',
      CRITERION_JITTER_PERCENTAGE: '1.1 is not a number from 0 to 1, such as 0.1.',
      CRITERION_PROFILE: expect.stringContaining('one of development, production') as string,
      CRITERION_DEFAULT_RETRY_DELAY_SECONDS: expect.stringContaining('a whole number') as string,
      'criteria.enableJiter': expect.stringContaining("Did you mean 'enableJitter'?") as string,
      'criteria.context': expect.stringContaining('7 is not a text') as string,
      'criteria.sets.A.jitterPercentage': expect.stringMatching(
        / is not a share from 0 to 1\.$/,
      ) as string,
    });
  });

  it('refuse a set without a name, and a part that is no object', async () => {
    write({ criteria: { sets: { '': {} } } });
    expect(Object.values(await faultsOf())).toEqual([
      'the name of a set has 1 to 256 characters, as an operation type has.',
    ]);
    write({ criteria: 7 });
    expect(await faultsOf()).toEqual({ criteria: '7 is not an object.' });
  });

  it('warn of a variable that does not exist', async () => {
    const { warnings } = await settingsOf({ CRITERION_ENABLE_JITER: 'true' });
    expect(warnings).toEqual([
      'CRITERION_ENABLE_JITER is not a setting of Redrive, and is ignored. Did you mean CRITERION_ENABLE_JITTER?',
    ]);
  });

  it('refuse a webhook whose host may not be connected to', async () => {
    const faults = await faultsOf({
      CRITERION_OPERATIONS_WEBHOOK: 'https://hooks.example.com/secret',
      CRITERION_DEVELOPMENT_WEBHOOK: 'https://dev.example.com/secret',
    });
    expect(faults).toEqual({
      CRITERION_OPERATIONS_WEBHOOK: expect.stringContaining("'hooks.example.com'") as string,
      CRITERION_DEVELOPMENT_WEBHOOK: expect.stringContaining("'dev.example.com'") as string,
    });
  });
});

describe('the settings of the Cyoda member', () => {
  it('are off, with the tag of the document', async () => {
    const settings = await settingsOf();
    expect(settings.cyodaTags).toEqual(['retry-timing']);
    expect(settings).not.toHaveProperty('cyodaUrl');
  });

  it('come from the environment; the token is never shown', async () => {
    const { origins, ...settings } = await settingsOf({
      CYODA_URL: 'grpcs://cyoda.example.com:9443',
      CYODA_TOKEN: 's3cr3t-token',
      CYODA_TAGS: 'retry, submission',
      CYODA_LEGAL_ENTITY: 'acme',
    });
    expect(settings).toMatchObject({
      cyodaUrl: 'grpcs://cyoda.example.com:9443',
      cyodaToken: 's3cr3t-token',
      cyodaTags: ['retry', 'submission'],
      cyodaLegalEntity: 'acme',
      warnings: [],
    });
    expect(JSON.stringify(origins)).not.toContain('s3cr3t');
  });

  it('take the tags of the criteria, and a token file relative to the folder', async () => {
    const settings = await settingsOf({
      CYODA_URL: 'grpc://localhost:9090',
      CYODA_TOKEN_FILE: 'token',
      CRITERION_CALCULATION_NODES_TAGS: 'a, b,',
    });
    expect(settings.cyodaTags).toEqual(['a', 'b']);
    expect(settings.cyodaTokenFile).toBe(join(cwd, 'token'));
    expect(settings.warnings).toEqual([]);
  });

  it.each([
    ['http://host:9090', /is not a URL with grpc:\/\/ or grpcs:\/\//],
    ['grpcs//host', /is not a URL/],
    ['grpx://host', /Did you mean grpc:\/\/\?/],
    ['host:9090', /^'host:9090' is not a URL/],
    ['grpc://host:99999', /is not a URL/],
    ['grpc://:9090', /is not a URL|names no host/],
    ['grpc://host:9090/service', /more than a host and a port/],
    ['grpc://host:9090?x=1', /more than a host and a port/],
    ['grpc://user:secret@host:9090', /a user or a password/],
  ])('refuse the URL %s', async (url, message) => {
    const { CYODA_URL } = await faultsOf({ CYODA_URL: url });
    expect(CYODA_URL).toMatch(message);
    expect(CYODA_URL).not.toContain('secret');
  });

  it('refuse two tokens, and tags that nobody could name', async () => {
    const faults = await faultsOf({
      CYODA_URL: 'grpcs://host',
      CYODA_TOKEN: 'a',
      CYODA_TOKEN_FILE: 'b',
      CYODA_TAGS: 'has space',
    });
    expect(Object.keys(faults)).toEqual(['CYODA_TOKEN', 'CYODA_TAGS']);
  });

  it('name a value by its flag where it came by one', async () => {
    const flags = { cyodaUrl: 'grpc://host/x', cyodaTags: 'has space' };
    const reading = await readSettings({ env: {}, cwd, flags });
    const names = reading.ok ? [] : reading.faults.map(({ name }) => name);
    expect(names).toEqual(['--cyoda-tags', '--cyoda-url']);
  });

  it('tell of a slip in a name, and leave alone what others call CYODA_', async () => {
    const { warnings } = await settingsOf({ CYODA_TAG: 'retry', CYODA_CLIENT_REGION: 'eu' });
    expect(warnings).toEqual([
      'CYODA_TAG is not a setting of Redrive, and is ignored. Did you mean CYODA_TAGS?',
    ]);
  });

  it('do not show a token that is faulty', async () => {
    const { CYODA_TOKEN } = await faultsOf({ CYODA_TOKEN: 'secret\ttoken' });
    expect(CYODA_TOKEN).toBe(
      'a text of 12 characters is not a text of 1 to 65536 bytes without control characters.',
    );
  });

  it.each(['t\u00f6ken', 'a\u2013b', 'two words', ' padded'])(
    'refuse a token that no header can carry: %j',
    async (token) => {
      const { CYODA_TOKEN } = await faultsOf({ CYODA_URL: 'grpcs://host', CYODA_TOKEN: token });
      expect(CYODA_TOKEN).toMatch(/is not a token of visible ASCII characters/);
      expect(CYODA_TOKEN).not.toContain(token);
    },
  );

  it.each([
    ['grpc://cyoda.example.com', 1],
    ['grpcs://cyoda.example.com', 0],
    ['grpc://127.0.0.1:9090', 0],
    ['grpc://[::1]:9090', 0],
  ])('warn of a token without encryption: %s', async (url, count) => {
    const { warnings } = await settingsOf({ CYODA_URL: url, CYODA_TOKEN: 't' });
    expect(warnings).toHaveLength(count);
  });

  it('warn of what has no effect without the URL', async () => {
    const { warnings } = await settingsOf({ CYODA_TOKEN: 't', CYODA_LEGAL_ENTITY: 'x' });
    expect(warnings).toEqual(['CYODA_TOKEN, CYODA_LEGAL_ENTITY: has no effect without CYODA_URL.']);
  });
});
