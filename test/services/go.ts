/** Getting a server from the Go module proxy. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram } from './find.ts';
import type { GetKit } from './service.ts';

const GO_FOLDERS = ['/usr/local/go/bin', '/usr/bin', '/opt/homebrew/bin'];
const BUILD_LIMIT_MS = 10 * 60_000;

/** Builds the program of a module into a folder; what went wrong is said, not thrown. */
export function build(module: string, folder: string, kit: GetKit): void {
  mkdirSync(folder, { recursive: true });
  run(['install', module], folder, { GOBIN: folder, GOFLAGS: '-trimpath' }, kit);
}

export interface GoProgram {
  readonly name: string;
  /** The module that it is made of, as go.mod has it. */
  readonly require: string;
  /** main.go. */
  readonly main: string;
}

/** Builds a program of one's own, for a module that has none that can be installed by itself. */
export function buildModule({ name, require, main }: GoProgram, folder: string, kit: GetKit): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'go.mod'), `module redrive/${name}\n\nrequire ${require}\n`);
  writeFileSync(join(folder, 'main.go'), main);
  // It writes the rest of go.mod by itself, without what only the module's own tests need.
  run(['build', '-mod=mod', '-trimpath', '-o', name, '.'], folder, {}, kit);
}

function run(
  args: readonly string[],
  folder: string,
  env: Readonly<Record<string, string>>,
  { say }: GetKit,
): void {
  const go = findProgram('go', GO_FOLDERS, () => true, ['version']);
  if (!go) {
    say(`cannot build ${folder}: there is no go on this machine`);
    return;
  }
  say(`go ${args.join(' ')}`);
  const { status, stderr, error } = spawnSync(go.path, args, {
    cwd: folder,
    encoding: 'utf8',
    timeout: BUILD_LIMIT_MS,
    env: { ...process.env, ...env },
  });
  if (status !== 0) say(error ? error.message : stderr.trimEnd().split('\n').slice(-10).join('\n'));
}

/** How a person gets such a program here. */
export function wayOut(module: string): string {
  return `install Go 1.24 or later, then scripts/services get, which builds ${module}`;
}
