import { describe, expect, it } from 'vitest';
import { madeUpTree } from '../tree.ts';
import { deadExports } from './dead-exports.ts';

function dead(files: Record<string, string>): string[] {
  const tree = madeUpTree({
    'packages/core/package.json': JSON.stringify({
      name: 'redrive',
      exports: { '.': './src/index.ts', './schema.json': './schema.json' },
    }),
    ...files,
  });
  return deadExports(tree).map(
    ({ path, line, message }) => `${path}:${line} ${message.split(':')[0]}`,
  );
}

const a = 'packages/core/src/a.ts';

describe('dead exports', () => {
  it('finds values, types and defaults that nothing imports', () => {
    const text = `export const one = 1;
      export type Two = 2;
      export interface Three {}
      const four = 4, five = 5;
      export { four, five as six };
      export default four;`;
    expect(dead({ [a]: text })).toEqual([
      `${a}:1 nothing imports one`,
      `${a}:2 nothing imports Two`,
      `${a}:3 nothing imports Three`,
      `${a}:5 nothing imports four`,
      `${a}:5 nothing imports six`,
      `${a}:6 nothing imports default`,
    ]);
  });

  it('counts what an entry file gives away as used', () => {
    const files = {
      [a]: 'export const one = 1; export const two = 2;',
      'packages/core/src/b.ts': 'export const three = 3;',
      'packages/core/src/index.ts':
        "export { one } from './a.ts'; export * from './b.ts'; export const own = 1;",
    };
    expect(dead(files)).toEqual([`${a}:1 nothing imports two`]);
  });

  it('follows a name through files that pass it on', () => {
    const files = {
      [a]: 'export const one = 1; export const two = 2;',
      'packages/core/src/all.ts': "export * from './a.ts'; export * as every from './a.ts';",
      'packages/core/src/b.ts': "import { one } from './all.ts';",
    };
    expect(dead(files)).toEqual([
      `${a}:1 nothing imports two`,
      'packages/core/src/all.ts:1 nothing imports every',
    ]);
  });

  it.each([
    ['a name', "import { one as uno } from './a.ts';"],
    ['a type', "import type { one } from './a.ts';"],
    ['everything', "import * as a from './a.ts';"],
    ['a lazy import', "void import('./a.ts');"],
    ['a type expression', "let x: typeof import('./a.ts').one;"],
  ])('counts an import of %s as a use', (_, text) => {
    expect(dead({ [a]: 'export const one = 1;', 'packages/core/src/b.ts': text })).toEqual([]);
  });

  it('does not ask who imports the list of error codes', () => {
    expect(dead({ 'packages/core/src/errors.ts': 'export const errorCodes = {};' })).toEqual([]);
  });

  it('does not ask who imports what a program wrote', () => {
    expect(dead({ 'packages/core/src/gen/a.ts': 'export const one = 1;' })).toEqual([]);
  });

  it('counts scripts as users and tests as none', () => {
    const files = { [a]: 'export const one = 1;' };
    const use = (path: string) => `import { one } from '${path}';`;
    expect(dead({ ...files, 'scripts/x.ts': use('../packages/core/src/a.ts') })).toEqual([]);
    expect(dead({ ...files, 'packages/core/src/a.test.ts': use('./a.ts') })).toEqual([
      `${a}:1 nothing imports one`,
    ]);
  });
});
