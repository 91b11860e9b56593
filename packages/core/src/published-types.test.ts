/** The declarations as they are published, in projects that check them too (`skipLibCheck: false`). */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const checkout = join(import.meta.dirname, '..', '..', '..');
const folder = mkdtempSync(join(tmpdir(), 'redrive-types-'));
let built: string;

beforeAll(() => {
  const project = join(checkout, 'packages', 'core', 'tsconfig.json');
  const buildInfo = join(folder, 'build.tsbuildinfo');
  const out = ['--outDir', join(folder, 'dist'), '--tsBuildInfoFile', buildInfo];
  built = tsc('-p', project, '--emitDeclarationOnly', '--declarationMap', 'false', ...out);
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the published types', () => {
  it.each(['dom', 'webworker'])(
    'compile without those of Node, with es2022 and %s',
    (lib) => {
      const compilerOptions = {
        module: 'esnext',
        moduleResolution: 'bundler',
        target: 'es2022',
        lib: ['es2022', lib],
        types: [],
        strict: true,
        noEmit: true,
        skipLibCheck: false,
      };
      const files = ['index', 'small', 'testing'].map((name) => `dist/${name}.d.ts`);
      writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
      expect([built, tsc('-p', folder)]).toEqual(['', '']);
    },
    60_000,
  );
});

/** What the compiler has to say. */
function tsc(...words: string[]): string {
  const program = join(checkout, 'node_modules', 'typescript', 'bin', 'tsc');
  try {
    return execFileSync(process.execPath, [program, ...words], { encoding: 'utf8' });
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}
