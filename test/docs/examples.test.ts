import { execFile } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { examplesIn, findExamples, isPrinted } from './examples.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));
const folder = join(root, 'test/docs/.examples');
const examples = findExamples(root).map((example, i) => ({
  ...example,
  file: join(folder, `example-${i}.ts`),
}));

describe('examples in the documentation', () => {
  beforeAll(() => {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    // `export {}` makes a module of an example without imports.
    for (const { file, code } of examples) writeFileSync(file, `${code}\nexport {};\n`);
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({
        extends: join(root, 'tsconfig.base.json'),
        compilerOptions: {
          composite: false,
          allowImportingTsExtensions: true,
          noEmit: true,
          noUnusedLocals: false,
          types: ['node'],
          typeRoots: [join(root, 'node_modules/@types')],
          lib: ['es2023', 'esnext.disposable', 'dom'],
        },
        include: ['*.ts'],
      }),
    );
  });

  it('compile under the strictest settings', { timeout: 60_000 }, async () => {
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const { stdout } = await run(process.execPath, [tsc, '-p', folder]).catch(
      (error: unknown) => error as { stdout: string },
    );
    expect(namePages(stdout)).toBe('');
  });

  it.for(examples)('$at runs and prints what it says', { timeout: 20_000 }, async (example) => {
    const { stdout } = await run(process.execPath, [example.file], { timeout: 15_000 });
    for (const promise of example.prints) {
      expect(
        isPrinted(promise, stdout),
        `${promise}\nwas promised, but printed was\n${stdout}`,
      ).toBe(true);
    }
  });
});

describe('reading examples', () => {
  const markdown = 'text\n```ts\nconsole.log(a); // 1\nb();\nconsole.log(\n```\n```js\nno\n```\n';

  it('finds the blocks with their lines and what they promise to print', () => {
    expect(examplesIn('x.md', markdown)).toEqual([
      { at: 'x.md:2', code: 'console.log(a); // 1\nb();\nconsole.log(\n', prints: ['1'] },
    ]);
  });

  it('tells a kept promise from a broken one', () => {
    expect(isPrinted('a ... (c)', 'x\na bb (c)\n')).toBe(true);
    expect(isPrinted('a ... (c)', 'x\nb bb (c)\n')).toBe(false);
  });
});

/** The compiler speaks of the copies; a reader wants the page. */
function namePages(output: string): string {
  return output.replaceAll(/\S*example-(\d+)\.ts/g, (_, i) => examples[Number(i)]?.at ?? '');
}
