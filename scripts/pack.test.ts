import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { entriesOf, published, restore } from './pack.ts';
import { prune } from './pack-files.ts';

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

describe('what is published of a build', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'redrive-prune-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const fill = (files: Record<string, string>) => {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
  };
  const left = () =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.\w+$/.test(name))
      .map((name) => name.replaceAll('\\', '/'))
      .toSorted();

  it('are the files that its entries reach, and the types of what it exports', () => {
    fill({
      'index.js': "export { a } from './lib/a.js';\nconst b = () => import('./b.js');",
      'index.d.ts': "import type { A } from './lib/a.ts';\nexport type B = import('./types.ts').B;",
      'lib/a.js': "import '../c.js';",
      'lib/a.d.ts': 'export {};',
      'b.js': '',
      'b.d.ts': '',
      'c.js': '',
      'c.d.ts': '',
      'types.js': '',
      'types.d.ts': '',
      'cli/main.js': "import '../tool.js'",
      'cli/main.d.ts': '',
      'tool.js': '',
      'testing/unused.js': '',
      'index.js.map': '',
    });
    prune(folder, { exported: ['index'], ran: ['cli/main'] });
    expect(left()).toEqual([
      'b.js',
      'c.js',
      'cli/main.js',
      'index.d.ts',
      'index.js',
      'lib/a.d.ts',
      'lib/a.js',
      'tool.js',
      'types.d.ts',
    ]);
  });

  it('must have been built', () => {
    fill({ 'index.js': "import './gone.js';", 'index.d.ts': '' });
    expect(() => prune(folder, { exported: ['index'], ran: [] })).toThrow(
      'gone.js is imported and was not built',
    );
  });

  it('begins with what package.json exports, and with what its programs load', () => {
    const exports = { '.': './src/index.ts', './x': './src/x/index.ts', './a.json': './a.json' };
    const bin = { one: './src/cli/main.ts', two: './bin/two.cjs' };
    const read = (path: string) => (path === './bin/two.cjs' ? "import('../dist/two/run.js')" : '');
    expect(entriesOf({ exports, bin }, read)).toEqual({
      exported: ['index', 'x/index'],
      ran: ['cli/main', 'two/run'],
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
    mkdirSync(path('dist'));
    restore(folder);
    // It has only what is published.
    expect(existsSync(path('dist'))).toBe(false);
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
