import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { published, restore } from './pack.ts';

describe('the published package.json', () => {
  it('names what was built in place of TypeScript, at any depth', () => {
    const exports = {
      '.': './src/index.ts',
      './adapters/*': { node: './src/adapters/*/index.ts' },
      './schema.json': './schema.json',
      './secret/*': null,
    };
    expect(published({ exports, bin: { redrive: './src/cli/main.ts' } })).toEqual({
      exports: {
        '.': { types: './dist/index.d.ts', default: './dist/index.js' },
        './adapters/*': {
          node: { types: './dist/adapters/*/index.d.ts', default: './dist/adapters/*/index.js' },
        },
        './schema.json': './schema.json',
        './secret/*': null,
      },
      bin: { redrive: './dist/cli/main.js' },
    });
  });

  it('keeps every other field, and every script but those of packing', () => {
    const scripts = { prepack: 'a', postpack: 'b', postinstall: 'c' };
    expect(published({ name: 'x', scripts })).toEqual({
      name: 'x',
      scripts: { postinstall: 'c' },
    });
  });
});

describe('putting a package back', () => {
  let folder = '';
  const path = (name: string) => join(folder, name);
  const read = (name: string) => readFileSync(path(name), 'utf8');

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'redrive-restore-'));
    const backup = { original: 'original', packed: 'packed', lent: ['LICENSE'] };
    writeFileSync(path('.pack.json'), JSON.stringify(backup));
    writeFileSync(path('README.md'), 'its own');
  });

  afterEach(() => rmSync(folder, { recursive: true }));

  it('undoes every change, and only once', () => {
    writeFileSync(path('package.json'), 'packed');
    writeFileSync(path('LICENSE'), 'lent');
    restore(folder);
    expect(read('package.json')).toBe('original');
    expect(existsSync(path('LICENSE'))).toBe(false);
    expect(read('README.md')).toBe('its own');

    writeFileSync(path('package.json'), 'edited later');
    restore(folder);
    expect(read('package.json')).toBe('edited later');
  });

  it('copes with a run that was cut off before it changed anything', () => {
    writeFileSync(path('package.json'), 'original');
    restore(folder);
    expect(read('package.json')).toBe('original');
    expect(existsSync(path('.pack.json'))).toBe(false);
  });

  it('refuses to throw away what was edited in between', () => {
    writeFileSync(path('package.json'), 'edited');
    expect(() => restore(folder)).toThrow('package.json was edited while it was packed');
    expect(read('package.json')).toBe('edited');
    expect(existsSync(path('.pack.json'))).toBe(true);
  });
});
