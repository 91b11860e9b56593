/**
 * What a user gets: the library packed as for the registry, installed into an empty project, and
 * used there from ES modules, from CommonJS and from TypeScript.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  checkout,
  copyWorkspace,
  isOlder,
  machineNode,
  npm,
  pack,
  run,
  scratchFolder,
} from './project.ts';

const scratch = scratchFolder();
const packageFolder = join(scratch, 'workspace', 'packages', 'core');
const project = join(scratch, 'project');
let manifestBefore = '';

beforeAll(() => {
  copyWorkspace(scratch, ['core']);
  manifestBefore = readFileSync(join(packageFolder, 'package.json'), 'utf8');
  const tarball = pack(scratch, 'core');
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{ "private": true }');
  npm(scratch, project, 'install', '--offline', '--no-audit', '--no-fund', tarball);
}, 120_000);

afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe('the packed library', () => {
  it('holds what was built, the schemas, README and licence, and nothing else', () => {
    const files = readdirSync(installed(), { recursive: true, encoding: 'utf8' });
    const promised = [
      'LICENSE',
      'README.md',
      'dist/index.d.ts',
      'dist/index.js',
      'dist/small.js',
      'dist/testing.js',
      'audit-event.schema.json',
      'policy.schema.json',
      'retry-policy.schema.json',
    ];
    expect(promised.filter((name) => !files.includes(name))).toEqual([]);
    const others = files.filter((name) => !promised.includes(name) && name !== 'package.json');
    expect(others.filter((name) => !/^dist(?:$|[\\/])/.test(name))).toEqual([]);
    expect(others.filter((name) => /\.(?:test\..*|map|tsbuildinfo)$/.test(name))).toEqual([]);
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
    expect(run(process.execPath, [tsc, '-p', project], project)).toBe('');
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

/** The pinned Node, and the one this machine came with. */
function runtimes(): { title: string; node: string; reason: boolean }[] {
  const pinned = { title: `Node ${process.versions.node}`, node: process.execPath, reason: false };
  const other = machineNode();
  if (other === undefined) {
    return [pinned, { title: 'no other Node (none on PATH: skipped)', node: '', reason: true }];
  }
  const { node, version } = other;
  const why =
    version === process.versions.node
      ? 'the same again'
      : isOlder(version, '20.19')
        ? 'older than 20.19'
        : '';
  const title = `the machine's Node ${version}${why && ` (${why}: skipped)`}`;
  return [pinned, { title, node, reason: why !== '' }];
}

function installed(): string {
  return join(project, 'node_modules', 'redrive');
}
