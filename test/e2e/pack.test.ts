/**
 * What a user gets: the library packed as for the registry, installed into an empty project, and
 * used there from ES modules, from CommonJS and from TypeScript.
 */
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const checkout = join(import.meta.dirname, '..', '..');
const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'redrive-pack-')));
const workspace = join(scratch, 'workspace');
const packageFolder = join(workspace, 'packages', 'core');
const project = join(scratch, 'project');
let manifestBefore = '';

beforeAll(() => {
  copyWorkspace();
  manifestBefore = readFileSync(join(packageFolder, 'package.json'), 'utf8');
  npm(packageFolder, 'pack', '--pack-destination', scratch);
  const tarball = readdirSync(scratch).find((name) => name.endsWith('.tgz')) ?? 'no tarball';
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{ "private": true }');
  npm(project, 'install', '--offline', '--no-audit', '--no-fund', join(scratch, tarball));
}, 120_000);

afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe('the packed library', () => {
  it('holds what was built, its sources, the schema, README and licence, and no tests', () => {
    const files = readdirSync(installed(), { recursive: true, encoding: 'utf8' });
    const promised = [
      'LICENSE',
      'README.md',
      'dist/index.d.ts',
      'dist/index.d.ts.map',
      'dist/index.js',
      'dist/index.js.map',
      'dist/small.js',
      'dist/testing.js',
      'audit-event.schema.json',
      'policy.schema.json',
      'retry-policy.schema.json',
      'src/index.ts',
    ];
    expect(promised.filter((name) => !files.includes(name))).toEqual([]);
    expect(files.filter((name) => /\.test\.|tsbuildinfo|tsconfig|\.pack\.json/.test(name))).toEqual(
      [],
    );
  });

  it('points at what was built and depends on nothing', () => {
    const manifest = JSON.parse(readFileSync(join(installed(), 'package.json'), 'utf8')) as object;
    expect(manifest).toMatchObject({
      exports: {
        '.': { types: './dist/index.d.ts', default: './dist/index.js' },
        './testing': { types: './dist/testing.d.ts', default: './dist/testing.js' },
        './audit-event.schema.json': './audit-event.schema.json',
        './policy.schema.json': './policy.schema.json',
        './retry-policy.schema.json': './retry-policy.schema.json',
      },
    });
    expect(manifest).not.toHaveProperty('dependencies');
    expect(manifest).not.toHaveProperty('scripts');
  });

  it('leaves the package as it was before', () => {
    expect(readFileSync(join(packageFolder, 'package.json'), 'utf8')).toBe(manifestBefore);
    expect(existsSync(join(packageFolder, '.pack.json'))).toBe(false);
  });

  it('has types for ES modules and for CommonJS', () => {
    const use = `
      const text: string = await retry(async ({ attempt }) => String(attempt), { maxAttempts: 2 });
      // @ts-expect-error the result is a string, so the types did arrive
      const number: number = await retry(async () => text);
      export const all = [number, virtualClock];`;
    writeFileSync(
      join(project, 'consumer.mts'),
      `import { retry } from 'redrive';\nimport { virtualClock } from 'redrive/testing';\n${use}`,
    );
    writeFileSync(
      join(project, 'consumer.cts'),
      `import redrive = require('redrive');\nimport testing = require('redrive/testing');
      async function main() {
        const { retry } = redrive;
        const { virtualClock } = testing;
        ${use.replace('export const all =', 'return')}
      }
      export = main;`,
    );
    const options = {
      module: 'nodenext',
      target: 'es2023',
      lib: ['es2023', 'esnext.disposable', 'dom'],
      types: [],
      strict: true,
      noEmit: true,
      skipLibCheck: false,
    };
    const files = ['consumer.mts', 'consumer.cts'];
    writeFileSync(
      join(project, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: options, files }),
    );
    const tsc = join(checkout, 'node_modules', 'typescript', 'bin', 'tsc');
    expect(run(process.execPath, [tsc, '-p', project])).toBe('');
  });
});

describe.each(runtimes())('on $title', ({ node, reason }) => {
  const programs = {
    'esm.mjs': `
      import { retry } from 'redrive';
      import { virtualClock } from 'redrive/testing';
      console.log(await retry(({ attempt }) => 'attempt ' + attempt), typeof virtualClock);`,
    'common.cjs': `
      const { retry } = require('redrive');
      const { virtualClock } = require('redrive/testing');
      retry(({ attempt }) => 'attempt ' + attempt)
        .then((text) => console.log(text, typeof virtualClock));`,
  };

  it.skipIf(reason)('works with import', () => {
    expect(play('esm.mjs')).toBe('attempt 1 function\n');
  });

  it.skipIf(reason)('works with require', () => {
    expect(play('common.cjs')).toBe('attempt 1 function\n');
  });

  function play(name: keyof typeof programs): string {
    writeFileSync(join(project, name), programs[name]);
    return run(node, [name], project);
  }
});

/** Packing changes package.json for a moment: on a copy, it disturbs no test beside this one. */
function copyWorkspace(): void {
  const copied = ['LICENSE', 'README.md', 'package.json', 'tsconfig.base.json', 'scripts/pack.ts'];
  for (const path of [...copied, 'packages/core']) {
    if (!existsSync(join(checkout, path))) continue;
    cpSync(join(checkout, path), join(workspace, path), {
      recursive: true,
      filter: (source) => !/[\\/](?:node_modules|dist)$/.test(source),
    });
  }
  symlinkSync(join(checkout, 'node_modules'), join(workspace, 'node_modules'), 'junction');
}

/** The pinned Node, and the one this machine came with. */
function runtimes(): { title: string; node: string; reason: boolean }[] {
  const pinned = { title: `Node ${process.versions.node}`, node: process.execPath, reason: false };
  const node = machineNode();
  if (node === undefined) {
    return [pinned, { title: 'no other Node (none on PATH: skipped)', node: '', reason: true }];
  }
  const version = run(node, ['-p', 'process.versions.node']).trim();
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const why =
    version === process.versions.node
      ? 'the same again'
      : major < 20 || (major === 20 && minor < 19)
        ? 'older than 20.19'
        : '';
  const title = `the machine's Node ${version}${why && ` (${why}: skipped)`}`;
  return [pinned, { title, node, reason: why !== '' }];
}

function machineNode(): string | undefined {
  const name = process.platform === 'win32' ? 'node.exe' : 'node';
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '' && !folder.includes('node_modules'))
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path));
}

function npm(folder: string, ...words: string[]): void {
  run('npm', [...words, '--cache', join(scratch, 'cache'), '--loglevel', 'error'], folder);
}

function run(command: string, words: string[], cwd = scratch): string {
  // The npm that runs the tests hands its own settings down, and they point at the checkout.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(
      ([key]) => !/^npm_|^NODE_OPTIONS$|^VITEST|^NODE_ENV$/i.test(key),
    ),
  );
  const result = spawnSync(command, words, { cwd, env, encoding: 'utf8' });
  if (result.status !== 0) {
    throw new Error(`${command} ${words.join(' ')}
${result.stdout}${result.stderr}`);
  }
  return result.stdout;
}

function installed(): string {
  return join(project, 'node_modules', 'redrive');
}
