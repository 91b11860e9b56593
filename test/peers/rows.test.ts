/** What the tables of the guide tell to write, compiled: a row that does not compile helps nobody. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';

const checkout = join(import.meta.dirname, '..', '..');
const folder = mkdtempSync(join(tmpdir(), 'redrive-rows-'));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const known = `
import { createBreaker, createBulkhead, type Breaker, type Bulkhead, isRetryError, type Policy, retrier, retry, retryable, type Runtime } from 'redrive';
class StopError extends Error {}
class NetworkError extends Error {}
declare const policy: Policy;
declare const breaker: Breaker;
declare const bulkhead: Bulkhead;
declare const work: (given?: object) => Promise<string>;
declare const wait: () => void;
declare const giveUp: () => void;
declare const fn: () => Promise<string>;
declare const value: string;
declare const error: unknown;
declare const attempt: { signal: AbortSignal };
declare const stop: AbortController;
`;

/** The code in the last column of every table of a page. */
function codeIn(markdown: string): string[] {
  const rows = markdown.split('\n').filter((line) => line.startsWith('| '));
  return rows.flatMap((row) => {
    const cell = row.split(' | ').at(-1) ?? '';
    return [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);
  });
}

/** A statement that compiles where the code does; undefined for a mere name or value. */
function statementOf(code: string): string | undefined {
  if (/^\w+: /.test(code)) return `({ ${code} }) satisfies Policy & Runtime<string>;`;
  if (code.startsWith('catch (')) return `async () => { try { return await work(); } ${code} };`;
  if (code.startsWith('throw ')) return `() => { ${code} };`;
  if (/^\w[\w.]*\(.*\)/.test(code) && !code.includes('...')) return `(${code});`;
  return undefined;
}

it('the rows of the guide compile', () => {
  const page = join(checkout, 'docs', 'guides', 'coming-from-p-retry-or-cockatiel.md');
  const statements = codeIn(readFileSync(page, 'utf8')).flatMap((code) => statementOf(code) ?? []);
  expect(statements.length).toBeGreaterThan(60);
  writeFileSync(join(folder, 'rows.ts'), [known, ...statements].join('\n'));
  const compilerOptions = {
    module: 'nodenext',
    target: 'es2023',
    lib: ['es2023', 'esnext.disposable', 'dom'],
    types: [],
    strict: true,
    noEmit: true,
    allowImportingTsExtensions: true,
    paths: { redrive: [join(checkout, 'packages/core/src/index.ts')] },
  };
  const config = { compilerOptions, files: ['rows.ts'] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
  expect(compiled()).toBe('');
}, 60_000);

function compiled(): string {
  const tsc = join(checkout, 'node_modules', 'typescript', 'bin', 'tsc');
  try {
    return execFileSync(process.execPath, [tsc, '-p', folder], { encoding: 'utf8' });
  } catch (error) {
    return `${(error as { stdout: string }).stdout}\n${readFileSync(join(folder, 'rows.ts'), 'utf8')}`;
  }
}
