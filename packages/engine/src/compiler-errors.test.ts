/** What the compiler says of a wrong argument: it has to name that argument, and not another one that was right. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';

const root = join(import.meta.dirname, '..', '..', '..');

const preamble = `
import { createEngine } from '@redrive/engine';
import { memory } from '@redrive/engine/memory';
const engine = createEngine<object>({ store: memory() })
  .handle('invoice', (invoice: { id: number; lines?: string[] }) => invoice.id)
  .handle('mail', (text: string) => text);
const told = createEngine<{ resize: { width: number } }>({ store: memory() });
const open = createEngine({ store: memory() }).handle('invoice', (invoice: { id: number }) => invoice.id);
`;

/** A call with one thing wrong, where the compiler points, and what its first line says. */
const calls: [call: string, at: string, says: string][] = [
  ["engine.submit('invoice', { id: 'x' })", 'id', "'string' is not assignable to type 'number'"],
  ["engine.submit('invoice', {})", '{}', "Property 'id' is missing"],
  ["engine.submit('invoice', { id: 7, lnies: [] })", 'lnies', "Did you mean to write 'lines'?"],
  ["engine.submit('mail', 7)", '7', "'number' is not assignable to parameter of type 'string'"],
  [
    "engine.submit('invoice', { id: 7 }, { dedupekey: 'a' })",
    'dedupekey',
    "'dedupekey' does not exist in type 'SubmitOptions & { tx?: TransactionClient | undefined; }'. Did you mean to write 'dedupeKey'?",
  ],
  [
    "engine.submit('invoice', { id: 7 }, { dueAt: 'tomorrow' })",
    'dueAt',
    "Type 'string' is not assignable to type 'number | Date | undefined'",
  ],
  ["engine.submit('mail', 'a', { delay: 'soon' })", 'delay', "'Duration | undefined'"],
  [
    "engine.submit('mail', 'a', { policy: { maxAttempts: 'x' } })",
    'maxAttempts',
    "'string' is not assignable to type 'number'",
  ],
  ["engine.submit('mail', 'a', { tx: 7 })", 'tx', "'TransactionClient'"],
  [
    "engine.submit('https://example.com/', 7, { dedupekey: 'a' })",
    'dedupekey',
    "Did you mean to write 'dedupeKey'?",
  ],
  [
    "engine.submit({ kind: 'queue', adress: 'a' }, 7)",
    'adress',
    "Did you mean to write 'address'?",
  ],
  ["open.submit('invoice', { id: 'x' })", 'id', "'string' is not assignable to type 'number'"],
  [
    "open.submit('other', { id: 7 }, { dueAt: 'tomorrow' })",
    'dueAt',
    "Type 'string' is not assignable to type 'number | Date | undefined'",
  ],
  [
    "engine.submitMany([{ to: 'invoice', payload: { id: 'x' } }])",
    'id',
    "'string' is not assignable to type 'number'",
  ],
  [
    "engine.submitMany([{ to: 'invoice', payload: { id: 7 }, dedupekey: 'a' }])",
    'dedupekey',
    "Did you mean to write 'dedupeKey'?",
  ],
  [
    "engine.submitMany([{ to: 'mail', payload: 'a', dueAt: 'tomorrow' }])",
    'dueAt',
    "Type 'string' is not assignable to type 'number | Date'",
  ],
  [
    "told.handle('resize', (size: { width: string }) => size.width)",
    '(size',
    "'(size: { width: string; }) => string' is not assignable to parameter of type 'Handler<{ width: string; }> & Handler<{ width: number; }>'",
  ],
  ["told.handle('resize', (size) => size.widht)", 'widht', "Did you mean 'width'?"],
  ["engine.submitMany([{ to: 'mail' }])", "{ to: 'mail' }", "Property 'payload' is missing"],
];

/** Here the name itself is wrong, so the list of what it may be is the answer. */
const names: [call: string, at: string, says: string][] = [
  ["engine.submit('invocie', { id: 7 })", "'invocie'", '\'"invoice" | "mail" | Elsewhere\''],
  [
    "engine.submitMany([{ to: 'invocie', payload: { id: 7 } }])",
    'to',
    'Did you mean \'"invoice"\'?',
  ],
];

it('names the argument that is wrong, and where it is', () => {
  const lines = [...calls, ...names].map(([call]) => `void ${call};`);
  const said = compile(`${preamble}${lines.join('\n')}\n`);
  const first = preamble.split('\n').length;
  for (const [i, [call, at, says]] of [...calls, ...names].entries()) {
    const errors = said.filter(({ line }) => line === first + i);
    expect(errors, call).toHaveLength(1);
    const [error] = errors;
    expect(error!.message, call).toContain(says);
    expect(lines[i]!.slice(error!.column - 1), call).toMatch(startingWith(at));
  }
  const aboutCalls = said.filter(({ line }) => line < first + calls.length);
  expect(aboutCalls.filter(({ message }) => message.includes('Elsewhere'))).toEqual([]);
  expect(said).toHaveLength(calls.length + names.length);
});

interface Said {
  line: number;
  column: number;
  /** The first line of it. */
  message: string;
}

function compile(program: string): Said[] {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-compiler-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction');
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(folder, 'program.ts'), program);
  const compilerOptions = { noEmit: true, allowImportingTsExtensions: true, types: ['node'] };
  const base = join(root, 'tsconfig.base.json');
  const config = { extends: base, compilerOptions, files: ['program.ts'] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const { stdout } = spawnSync(process.execPath, [tsc, '-p', folder, '--pretty', 'false'], {
    cwd: folder,
    encoding: 'utf8',
  });
  return stdout.split('\n').flatMap((text) => {
    const [, line, column, message] = /^program\.ts\((\d+),(\d+)\): error (.*)$/.exec(text) ?? [];
    return message === undefined ? [] : [{ line: Number(line), column: Number(column), message }];
  });
}

function startingWith(text: string): RegExp {
  return new RegExp(`^${text.replace(/[{}[\]().*+?]/g, '\\$&')}`);
}
