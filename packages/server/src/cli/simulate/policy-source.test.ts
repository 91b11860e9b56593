import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { presets } from 'redrive';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readPolicy } from './policy-source.ts';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'simulate-'));
  writeFileSync(join(folder, 'good.json'), '\uFEFF{ "maxAttempts": 7 }');
  writeFileSync(join(folder, 'comma.json'), '{ "maxAttempts": 7, }');
  writeFileSync(join(folder, 'faults.json'), '{ "maxAttempts": 0, "bse": 1 }');
  writeFileSync(join(folder, 'list.json'), '[]');
});

afterAll(() => rmSync(folder, { recursive: true }));

describe('a policy comes', () => {
  it('from a file, from where the user stands', () => {
    const { name, policy } = readPolicy('good.json', folder);
    expect(name).toBe('good.json');
    expect(policy.maxAttempts).toBe(7);
  });

  it('from the command line, as JSON', () => {
    expect(readPolicy(' { "base": "1s" }', folder).policy.base).toBe(1000);
  });

  it('from a preset, by name', () => {
    expect(readPolicy('notification.high', folder).policy).toBe(presets['notification.high']);
    expect(readPolicy('API_REQUEST', folder).policy).toBe(presets.categories.API_REQUEST);
  });

  it('from nowhere: then it is the default, and says so', () => {
    const { name, policy } = readPolicy(undefined, folder);
    expect(name).toContain('no file was given');
    expect(policy).toBe(presets.default);
  });
});

describe('a policy that cannot be had is explained', () => {
  it.each([
    ['nowhere.json', /There is no file nowhere\.json.*\nWrite a policy into it, for example: \{/],
    ['schedulr', /Did you mean the preset scheduler\?/],
    ['.', /it is a folder\. Name a file/],
    ['comma.json', /^comma\.json is not JSON: .*\nNames and texts stand in double quotes/],
    ['{ "base" }', /^The policy given is not JSON/],
    ['faults.json', /has faults:\n {2}maxAttempts: .*\n {2}bse: .*Did you mean 'base'\?$/],
    ['list.json', /has faults:\n {2}policy: /],
  ])('%s', (source, message) => {
    expect(() => readPolicy(source, folder)).toThrow(message);
  });
});
