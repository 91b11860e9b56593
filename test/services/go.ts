/** Getting a server from the Go module proxy. */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { findProgram } from './find.ts';
import type { GetKit } from './service.ts';

const GO_FOLDERS = ['/usr/local/go/bin', '/usr/bin', '/opt/homebrew/bin'];
const BUILD_LIMIT_MS = 10 * 60_000;

/** Builds the program of a module into a folder; what went wrong is said, not thrown. */
export function build(module: string, folder: string, { say }: GetKit): void {
  const go = findProgram('go', GO_FOLDERS, () => true, ['version']);
  if (!go) {
    say(`cannot build ${module}: there is no go on this machine`);
    return;
  }
  say(`go install ${module}`);
  mkdirSync(folder, { recursive: true });
  const { status, stderr, error } = spawnSync(go.path, ['install', module], {
    encoding: 'utf8',
    timeout: BUILD_LIMIT_MS,
    env: { ...process.env, GOBIN: folder, GOFLAGS: '-trimpath' },
  });
  if (status !== 0) say(error ? error.message : stderr.trimEnd().split('\n').slice(-10).join('\n'));
}

/** How a person gets such a program here. */
export function wayOut(module: string): string {
  return `install Go 1.24 or later, then scripts/services get, which builds ${module}`;
}
