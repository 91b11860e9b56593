import { describe, expect, it } from 'vitest';
import { madeUpTree } from '../tree.ts';
import { fileLength, lockfileHosts, machinePaths, markers } from './leftovers.ts';

describe('file length', () => {
  it('allows 400 lines of source and not one more', () => {
    const lines = (count: number) => madeUpTree({ 'scripts/x.ts': 'void 0;\n'.repeat(count) });
    expect(fileLength(lines(400))).toEqual([]);
    expect(fileLength(lines(401))).toMatchObject([
      { path: 'scripts/x.ts', line: 401, message: expect.stringContaining('401 lines') },
    ]);
  });

  it('leaves tests and data alone', () => {
    const long = 'x\n'.repeat(1000);
    expect(fileLength(madeUpTree({ 'a.test.ts': long, 'a.json': long, 'a.md': long }))).toEqual([]);
  });
});

describe('markers', () => {
  it.each(['TODO', 'FIXME', 'XXX', 'HACK'])('finds %s in code, docs and scripts', (word) => {
    const text = `\n// ${word}: later`;
    const tree = madeUpTree({ 'a.ts': text, 'docs/b.md': text, '.ci/run': text });
    expect(markers(tree).map(({ path, line }) => `${path}:${line}`)).toEqual([
      '.ci/run:2',
      'a.ts:2',
      'docs/b.md:2',
    ]);
  });

  it('leaves other words and the lockfile alone', () => {
    const tree = madeUpTree({
      'a.ts': "mkdtemp('x-XXXXXX'); const todo = 'hacking';",
      'package-lock.json': '"integrity": "sha512-a+XXX/TODO="',
    });
    expect(markers(tree)).toEqual([]);
  });
});

describe('machine paths', () => {
  it.each(['/home/ann/x', '/root/.npmrc', '/Users/ann', '/work/main', 'file:///home/ann'])(
    'finds %s',
    (path) => {
      expect(machinePaths(madeUpTree({ 'a.ts': `read('${path}');` }))).toHaveLength(1);
      expect(machinePaths(madeUpTree({ 'a.md': `see ${path}` }))).toHaveLength(1);
    },
  );

  it('leaves relative paths, addresses and other folders alone', () => {
    const text = "a('./work/x', '../root/x', 'https://a.example/home/x', '/tmp/x', '/rooted/x')";
    expect(machinePaths(madeUpTree({ 'a.ts': text }))).toEqual([]);
  });
});

describe('download hosts', () => {
  it('are found in the lockfile', () => {
    const text = '{\n"resolved": "packages/core",\n"resolved": "https://registry.example/x.tgz"\n}';
    expect(lockfileHosts(madeUpTree({ 'package-lock.json': text }))).toMatchObject([{ line: 3 }]);
    expect(lockfileHosts(madeUpTree({}))).toEqual([]);
  });
});
