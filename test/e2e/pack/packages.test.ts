/** All packages as users get them: what is in them, on a Node that is too old, and with the types of an older Node. */
import { cpSync, readdirSync, readFileSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { entriesOf, type Manifest } from '../../../scripts/pack.ts';
import { reached } from '../../../scripts/pack-files.ts';
import {
  attempt,
  checkout,
  copyWorkspace,
  isOlder,
  machineNode,
  pack,
  projectWith,
  scratchFolder,
} from './project.ts';

const scratch = scratchFolder();
const names = {
  redrive: 'core',
  '@redrive/engine': 'engine',
  '@redrive/notifications': 'notifications',
  '@redrive/server': 'server',
};
let project = '';

beforeAll(() => {
  copyWorkspace(scratch, Object.values(names));
  const tarballs = Object.entries(names).map(([name, folder]) => [name, pack(scratch, folder)]);
  project = projectWith(scratch, Object.fromEntries(tarballs) as Record<string, string>);
  writeFileSync(join(project, 'package.json'), '{ "private": true, "type": "module" }');
}, 300_000);

afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const installed = (name: string) => join(project, 'node_modules', name);

function filesOf(name: string): string[] {
  const all = readdirSync(installed(name), { recursive: true, withFileTypes: true });
  const start = installed(name).length + 1;
  return all
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(start).replaceAll('\\', '/'));
}

describe.each(Object.entries(names))('the package %s', (name, folder) => {
  it('holds only what its entries reach, without sources and maps', () => {
    const files = filesOf(name);
    const dist = files.filter((path) => path.startsWith('dist/'));
    expect(dist.filter((path) => !/\.(?:js|d\.ts)$/.test(path))).toEqual([]);
    const manifest = JSON.parse(
      readFileSync(join(checkout, 'packages', folder, 'package.json'), 'utf8'),
    ) as Manifest;
    const read = (path: string) => readFileSync(join(installed(name), path), 'utf8');
    const { exported, ran } = entriesOf(manifest, read);
    const build = join(installed(name), 'dist');
    const wanted = [
      ...reached(build, [...exported, ...ran], '.js'),
      ...reached(build, exported, '.d.ts'),
    ];
    expect(dist.map((path) => path.slice('dist/'.length)).toSorted()).toEqual(wanted.toSorted());
    const others = files.filter((path) => !path.startsWith('dist/'));
    const known =
      /^(?:LICENSE|README\.md|package\.json|\.env\.example|bin\/|proto\/|[\w-]+\.schema\.json)/;
    expect(others.filter((path) => !known.test(path))).toEqual([]);
  });

  it('names no map that is not there', () => {
    const naming = filesOf(name).filter(
      (path) =>
        /\.(?:js|d\.ts)$/.test(path) &&
        readFileSync(join(installed(name), path), 'utf8').includes('sourceMappingURL'),
    );
    expect(naming).toEqual([]);
  });
});

describe('on the pinned Node', () => {
  it('a store on SQLite takes work, and the suites for stores of others are there', () => {
    const program = `
      import { createEngine } from '@redrive/engine';
      import { sqlite } from '@redrive/engine/sqlite';
      import { inboxSuite, scheduleSuite } from '@redrive/engine/testing';
      const engine = createEngine({ store: sqlite('tasks.db') });
      const { status } = await engine.submit('a', 1);
      console.log(status, typeof scheduleSuite, typeof inboxSuite);
      await engine.stop();`;
    expect(play(process.execPath, program)).toMatchObject({
      code: 0,
      out: 'accepted function function\n',
    });
  });

  it('the command line runs', () => {
    const { code, out, err } = redrive(process.execPath, '--version');
    expect([code, err]).toEqual([0, '']);
    expect(out).toContain('0.1.0');
  });
});

describe(`on ${oldNode().title}`, () => {
  const { node, isMissing, version } = oldNode();

  it.skipIf(isMissing)('the command line says which Node is needed', () => {
    const { code, out, err } = redrive(node, 'serve');
    expect([code, out]).toEqual([1, '']);
    expect(err).toBe(
      `redrive needs Node 22.18 or later; this is Node ${version}. Install a newer Node, from https://nodejs.org or with a version manager. (NODE_TOO_OLD)\n`,
    );
  });

  it.skipIf(isMissing)('the SQLite store and the engine say so with a code', () => {
    const program = `
      import { createEngine } from '@redrive/engine';
      import { memory } from '@redrive/engine/memory';
      import { examine, sqlite, sqliteIdempotency, sqliteSticky } from '@redrive/engine/sqlite';
      const tries = {
        sqlite: () => sqlite('tasks.db'),
        sqliteIdempotency: () => sqliteIdempotency('keys.db'),
        sqliteSticky: () => sqliteSticky('sessions.db'),
        examine: () => examine('tasks.db'),
        createEngine: () => createEngine({ store: memory() }),
      };
      for (const [name, run] of Object.entries(tries)) {
        try {
          await run();
          console.log(name, 'works');
        } catch (error) {
          console.log(name, error.name, error.code, error.message);
        }
      }`;
    const { code, out, err } = play(node, program);
    expect([code, err]).toEqual([0, '']);
    const lines = out.trim().split('\n');
    expect(lines).toHaveLength(5);
    for (const line of lines) {
      expect(line).toMatch(
        new RegExp(
          `^\\w+ EngineError NODE_TOO_OLD .* needs Node 22\\.16 or later; this is Node ${version}\\.`,
        ),
      );
    }
  });

  it.skipIf(isMissing)('the service as a library says so with a code', () => {
    const program = `
      import { createService, readSettings } from '@redrive/server';
      try {
        const { settings } = await readSettings({ env: {}, cwd: '.' });
        await createService(settings);
        console.log('works');
      } catch (error) {
        console.log(error.code, error.message);
      }`;
    const { out, err } = play(node, program);
    expect(out + err).toMatch(/^NODE_TOO_OLD .* needs Node 22\.18 or later; this is Node /);
  });
});

it('has types that compile with those of Node 20, libraries included', () => {
  // The types of Node 20 in place of the checkout's.
  const types = join(project, 'node_modules', '@types');
  unlinkSync(types);
  cpSync(join(checkout, 'node_modules', 'types-node-20'), join(types, 'node'), { recursive: true });
  cpSync(join(checkout, 'node_modules', '@types', 'pg'), join(types, 'pg'), { recursive: true });
  const program = `
    import { retry } from 'redrive';
    import { createEngine } from '@redrive/engine';
    import { http } from '@redrive/engine/http';
    import * as jsonl from '@redrive/engine/jsonl';
    import { memory } from '@redrive/engine/memory';
    import * as opentelemetry from '@redrive/engine/opentelemetry';
    import { postgres } from '@redrive/engine/postgres';
    import * as fastify from '@redrive/engine/fastify';
    import * as nats from '@redrive/engine/nats';
    import * as pino from '@redrive/engine/pino';
    import * as rabbitmq from '@redrive/engine/rabbitmq';
    import * as redis from '@redrive/engine/redis';
    import { sqlite } from '@redrive/engine/sqlite';
    import { createTestEngine } from '@redrive/engine/testing';
    import { createService, defineConfig } from '@redrive/server';
    const engine = createEngine({ store: sqlite('tasks.db'), deliveries: [http()] });
    // @ts-expect-error a store is no text, so the types did arrive
    createEngine({ store: 'tasks.db' });
    export const all = [retry, engine, jsonl, memory, opentelemetry, postgres, createTestEngine];
    export const peers = [fastify, nats, pino, rabbitmq, redis];
    export const service = [createService, defineConfig({ lanes: { 'queue:a': { rate: 5 } } })];`;
  writeFileSync(join(project, 'consumer.ts'), program);
  const compilerOptions = {
    module: 'nodenext',
    target: 'es2023',
    lib: ['es2023', 'esnext.disposable', 'dom'],
    types: ['node'],
    strict: true,
    noEmit: true,
    skipLibCheck: false,
  };
  const config = { compilerOptions, files: ['consumer.ts'] };
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(config));
  const tsc = join(checkout, 'node_modules', 'typescript', 'bin', 'tsc');
  expect(attempt(process.execPath, [tsc, '-p', project], project)).toMatchObject({
    out: '',
    code: 0,
  });
});

function play(node: string, program: string) {
  writeFileSync(join(project, 'program.mjs'), program);
  return attempt(node, ['--disable-warning=ExperimentalWarning', 'program.mjs'], project);
}

function redrive(node: string, ...words: string[]) {
  return attempt(
    node,
    [join(installed('@redrive/server'), 'bin', 'redrive.cjs'), ...words],
    project,
  );
}

function oldNode(): { title: string; node: string; version: string; isMissing: boolean } {
  const other = machineNode();
  if (other && isOlder(other.version, '22.16')) {
    return { ...other, title: `the machine's Node ${other.version}`, isMissing: false };
  }
  const title = 'a Node before 22.16 (none on PATH: skipped)';
  return { title, node: '', version: '', isMissing: true };
}
