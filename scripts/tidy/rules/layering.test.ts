import { describe, expect, it } from 'vitest';
import { madeUpTree } from '../tree.ts';
import { layering } from './layering.ts';

const manifests = {
  'packages/core/package.json': '{ "name": "redrive", "exports": { ".": "./src/index.ts" } }',
  'packages/engine/package.json': JSON.stringify({
    name: '@redrive/engine',
    exports: { '.': './src/engine.ts', './adapters/*': './src/adapters/*/index.ts' },
    dependencies: { redrive: '*' },
    peerDependencies: { pg: '*' },
  }),
  'packages/server/package.json': JSON.stringify({
    name: '@redrive/server',
    dependencies: { '@redrive/engine': '*', '@redrive/notifications': '*', redrive: '*' },
  }),
  'packages/notifications/package.json': JSON.stringify({
    name: '@redrive/notifications',
    exports: { './adapters/*': './src/adapters/*/index.ts' },
    dependencies: { '@redrive/engine': '*', redrive: '*' },
  }),
  'packages/engine/src/adapters/redis/index.ts': '',
  'packages/notifications/src/adapters/mongodb/index.ts': '',
  'packages/notifications/src/adapters/memory/index.ts': '',
};

function verdicts(path: string, text: string): string[] {
  return layering(madeUpTree({ ...manifests, [path]: text })).map(
    (finding) => `${finding.path}:${finding.line} ${finding.message}`,
  );
}

describe('layering', () => {
  it.each([
    ['a dependency', "import pg from 'pg';"],
    ['a Node module', "import { readFile } from 'node:fs';"],
    ['a dependency, as a type', "export type P = import('pg').Pool;"],
    ['a dependency, lazily', "export const p = () => import('pg');"],
    ['a dependency, passed on', "export * from 'pg';"],
    ['its own published name', "import { retry } from 'redrive';"],
  ])('refuses %s in core', (_, text) => {
    expect(verdicts('packages/core/src/x.ts', `\n${text}`)).toEqual([
      expect.stringMatching(/^packages\/core\/src\/x\.ts:2 core imports nothing outside itself/),
    ]);
  });

  it('lets core import its own files, and its tests what they need', () => {
    expect(verdicts('packages/core/src/x.ts', "import { y } from './y.ts';")).toEqual([]);
    expect(verdicts('packages/core/src/x.test.ts', "import { it } from 'vitest';")).toEqual([]);
  });

  it('refuses a relative path out of the package, in tests too', () => {
    for (const name of ['x.ts', 'x.test.ts']) {
      expect(verdicts(`packages/core/src/${name}`, "import '../../engine/src/y.ts';")).toEqual([
        `packages/core/src/${name}:1 ../../engine/src/y.ts leaves the package: import other packages by name`,
      ]);
    }
  });

  it('lets imports go down and not up', () => {
    const down = "import '@redrive/engine'; import 'redrive';";
    expect(verdicts('packages/server/src/x.ts', down)).toEqual([]);
    expect(verdicts('packages/engine/src/x.ts', "import '@redrive/server';")).toEqual([
      expect.stringContaining('engine must not import server'),
    ]);
    expect(verdicts('packages/core/src/x.test.ts', "import '@redrive/engine';")).toEqual([
      expect.stringContaining('core must not import engine'),
    ]);
  });

  it('asks for a place in the order when a package has none', () => {
    const tree = madeUpTree({
      ...manifests,
      'packages/new/package.json': '{ "name": "@redrive/new" }',
      'packages/new/src/x.ts': "import 'redrive';",
    });
    expect(layering(tree)).toMatchObject([
      { message: expect.stringContaining('give new its place') },
    ]);
  });

  it('refuses a dependency that the package does not declare', () => {
    expect(verdicts('packages/engine/src/x.ts', "import 'node:fs'; import 'pg/lib';")).toEqual([]);
    expect(verdicts('packages/engine/src/x.ts', "import '@nats-io/kv/a';")).toEqual([
      expect.stringContaining('declare @nats-io/kv under dependencies'),
    ]);
  });

  it('lets what is offered for tests run on the memory store, and on no other', () => {
    const from = 'packages/engine/src/testing/x.ts';
    expect(verdicts(from, "import '../adapters/memory/index.ts';")).toEqual([]);
    expect(verdicts(from, "import '../adapters/redis/index.ts';")).toEqual([
      expect.stringContaining("only the server's wiring imports an adapter"),
    ]);
  });

  it('keeps adapters apart from each other and from the engine', () => {
    const own = "import './client.ts';";
    expect(verdicts('packages/engine/src/adapters/redis/x.ts', own)).toEqual([]);
    const sibling = "import '../redis/index.ts';";
    expect(verdicts('packages/engine/src/adapters/postgres/x.ts', sibling)).toEqual([
      expect.stringContaining('adapter postgres must not import adapter redis'),
    ]);
    const direct = "import './adapters/redis/index.ts';";
    expect(verdicts('packages/engine/src/x.ts', direct)).toEqual([
      expect.stringContaining("only the server's wiring"),
    ]);
    expect(verdicts('packages/engine/src/x.test.ts', direct)).toEqual([]);
  });

  it('keeps the adapters of notifications apart in the same way', () => {
    const folder = 'packages/notifications/src';
    const sibling = "import '../mongodb/index.ts';";
    expect(verdicts(`${folder}/adapters/postgres/x.ts`, sibling)).toEqual([
      expect.stringContaining('adapter postgres must not import adapter mongodb'),
    ]);
    expect(verdicts(`${folder}/adapters/mongodb/x.ts`, "import './client.ts';")).toEqual([]);
    expect(verdicts(`${folder}/x.ts`, "import './adapters/mongodb/index.ts';")).toEqual([
      expect.stringContaining("only the server's wiring"),
    ]);
    expect(verdicts(`${folder}/testing/x.ts`, "import '../adapters/memory/index.ts';")).toEqual([]);
    const published = "import '@redrive/notifications/adapters/mongodb';";
    expect(verdicts('packages/server/src/x.ts', published)).toEqual([]);
  });

  it('lets two adapters of one technology share its connection, across packages', () => {
    const engine = "import '@redrive/engine/adapters/redis';";
    const folder = 'packages/notifications/src';
    expect(verdicts(`${folder}/adapters/redis/x.ts`, engine)).toEqual([]);
    expect(verdicts(`${folder}/adapters/mongodb/x.ts`, engine)).toEqual([
      expect.stringContaining('adapter mongodb must not import adapter redis'),
    ]);
    expect(verdicts(`${folder}/x.ts`, engine)).toEqual([
      expect.stringContaining("only the server's wiring"),
    ]);
  });

  it('lets the server wire adapters, by their published names', () => {
    const text = "import '@redrive/engine/adapters/redis';";
    expect(verdicts('packages/server/src/x.ts', text)).toEqual([]);
    expect(verdicts('packages/engine/src/x.ts', text)).toEqual([
      expect.stringContaining("only the server's wiring"),
    ]);
  });
});
