/** Packs what is published, on a copy of the workspace, and makes projects that use it. */
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

export const checkout = join(import.meta.dirname, '..', '..', '..');

export function scratchFolder(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), 'redrive-pack-')));
}

/** Packing changes package.json for a moment: on a copy, it disturbs no test beside this one. */
export function copyWorkspace(scratch: string, packages: readonly string[]): string {
  const workspace = join(scratch, 'workspace');
  const root = ['LICENSE', 'README.md', 'package.json', 'tsconfig.base.json'];
  const scripts = ['scripts/pack.ts', 'scripts/pack-files.ts'];
  const folders = packages.map((name) => `packages/${name}`);
  for (const path of [...root, ...scripts, ...folders]) {
    cpSync(join(checkout, path), join(workspace, path), {
      recursive: true,
      filter: (source) => !/[\\/](?:node_modules|dist)$/.test(source),
    });
  }
  linkModules(workspace, join(workspace, 'packages'));
  return workspace;
}

/** The tarball of a package of the copy. */
export function pack(scratch: string, name: string): string {
  const before = new Set(readdirSync(scratch));
  npm(scratch, join(scratch, 'workspace', 'packages', name), 'pack', '--pack-destination', scratch);
  const tarball = readdirSync(scratch).find((file) => file.endsWith('.tgz') && !before.has(file));
  if (tarball === undefined) throw new Error(`${name} was not packed`);
  return join(scratch, tarball);
}

/** Everything that the checkout has installed, but for our own packages, which come from `own`. */
function linkModules(folder: string, own?: string): void {
  const from = join(checkout, 'node_modules');
  const to = join(folder, 'node_modules');
  mkdirSync(join(to, '@redrive'), { recursive: true });
  for (const name of readdirSync(from)) {
    if (name === '@redrive' || name === 'redrive' || name === '.bin') continue;
    symlinkSync(join(from, name), join(to, name), 'junction');
  }
  if (own === undefined) return;
  symlinkSync(join(own, 'core'), join(to, 'redrive'), 'junction');
  for (const name of ['engine', 'notifications', 'server']) {
    if (existsSync(join(own, name))) {
      symlinkSync(join(own, name), join(to, '@redrive', name), 'junction');
    }
  }
}

export function npm(scratch: string, folder: string, ...words: string[]): void {
  const cache = ['--cache', join(scratch, 'cache'), '--loglevel', 'error'];
  run('npm', [...words, ...cache], folder);
}

export interface Ran {
  code: number | null;
  out: string;
  err: string;
}

/** Runs a program to its end, whatever it ends with. */
export function attempt(command: string, words: readonly string[], cwd: string): Ran {
  // The npm that runs the tests hands its own settings down, and they point at the checkout.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(
      ([key]) => !/^npm_|^NODE_OPTIONS$|^VITEST|^NODE_ENV$/i.test(key),
    ),
  );
  const { status, stdout, stderr } = spawnSync(command, words, { cwd, env, encoding: 'utf8' });
  return { code: status, out: stdout, err: stderr };
}

export function run(command: string, words: readonly string[], cwd: string): string {
  const { code, out, err } = attempt(command, words, cwd);
  if (code !== 0) throw new Error(`${command} ${words.join(' ')}\n${out}${err}`);
  return out;
}

/** The Node that this machine came with; undefined: none but the pinned one. */
export function machineNode(): { node: string; version: string } | undefined {
  const name = process.platform === 'win32' ? 'node.exe' : 'node';
  const node = (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '' && !folder.includes('node_modules'))
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path));
  if (node === undefined) return undefined;
  return { node, version: run(node, ['-p', 'process.versions.node'], tmpdir()).trim() };
}

export function isOlder(version: string, than: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [thanMajor = 0, thanMinor = 0] = than.split('.').map(Number);
  return major < thanMajor || (major === thanMajor && minor < thanMinor);
}

/** A project whose `node_modules` has these tarballs, and the checkout's for everything else. */
export function projectWith(scratch: string, tarballs: Readonly<Record<string, string>>): string {
  const project = join(scratch, 'project-of-all');
  linkModules(project);
  for (const [name, tarball] of Object.entries(tarballs)) {
    const folder = join(project, 'node_modules', name);
    mkdirSync(folder, { recursive: true });
    run('tar', ['-xzf', tarball, '-C', folder, '--strip-components=1'], scratch);
  }
  return project;
}
