/**
 * The `prepack` and `postpack` of every published package, run in the package's folder.
 *
 * In the checkout `exports` and `bin` name TypeScript, so that nothing needs a build. A tarball
 * carries what `tsc` made of it: `prepare` builds, and points package.json at `dist`; `restore` puts
 * everything back, byte by byte, also after a run that was cut off.
 *
 * Publish the tarball: `npm pack`, then `npm publish <tarball>`. Given the folder, npm reads
 * package.json again after `postpack`, and would tell the registry about `src`.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Entries, prune } from './pack-files.ts';

/** What `prepare` changed, kept beside package.json until `restore` has undone it. */
interface Backup {
  original: string;
  packed: string;
  lent: string[];
}

/** Files that a package takes from the workspace's root unless it has its own. */
const LENDABLE = ['LICENSE', 'README.md'];

export interface Manifest {
  exports?: unknown;
  bin?: unknown;
  scripts?: Record<string, string>;
  [field: string]: unknown;
}

/** Builds a package and makes its package.json the one to publish. */
export function prepare(folder: string, root: string): void {
  restore(folder);
  rmSync(join(folder, 'dist'), { recursive: true, force: true });
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  // Sources are not published, so there is nothing that maps could lead to.
  const options = ['--sourceMap', 'false', '--declarationMap', 'false'];
  const build = spawnSync(process.execPath, [tsc, '-b', folder, ...options], { stdio: 'inherit' });
  if (build.status !== 0) throw new Error('tsc failed: nothing was packed');

  const original = readFileSync(join(folder, 'package.json'), 'utf8');
  const manifest = JSON.parse(original) as Manifest;
  const packed = `${JSON.stringify(published(manifest), null, 2)}\n`;
  const lent = LENDABLE.filter(
    (name) => existsSync(join(root, name)) && !existsSync(join(folder, name)),
  );
  // The backup is there before the first change, so that a cut at any point can be undone.
  write(folder, '.pack.json', JSON.stringify({ original, packed, lent } satisfies Backup));
  for (const name of lent) copyFileSync(join(root, name), join(folder, name));
  write(folder, 'package.json', packed);
  const read = (path: string) => readFileSync(join(folder, path), 'utf8');
  prune(join(folder, 'dist'), entriesOf(manifest, read));
}

/** Undoes `prepare`; does nothing where there is nothing to undo. */
export function restore(folder: string): void {
  const backupPath = join(folder, '.pack.json');
  if (!existsSync(backupPath)) return;
  const { original, packed, lent } = JSON.parse(readFileSync(backupPath, 'utf8')) as Backup;
  const current = readFileSync(join(folder, 'package.json'), 'utf8');
  if (current !== packed && current !== original) {
    throw new Error(
      'package.json was edited while it was packed: ' +
        `point its exports back to src by hand, then delete ${backupPath}`,
    );
  }
  if (current === packed) write(folder, 'package.json', original);
  for (const name of lent) rmSync(join(folder, name), { force: true });
  // Much of the build is missing by now: whoever needs it builds it again.
  rmSync(join(folder, 'dist'), { recursive: true, force: true });
  rmSync(backupPath);
}

/** The package.json of the tarball: `./src/x.ts` becomes what was built from it. */
export function published(manifest: Manifest): Manifest {
  const { exports, bin, scripts, ...rest } = manifest;
  const { prepack: _, postpack: __, ...others } = scripts ?? {};
  return {
    ...rest,
    ...(exports !== undefined && { exports: built(exports, withTypes) }),
    ...(bin !== undefined && { bin: built(bin, (stem) => `./dist/${stem}.js`) }),
    ...(Object.keys(others).length > 0 && { scripts: others }),
  };
}

/** What a package exports, and what it runs, as stems of files of its build: `index`, `cli/main`. */
export function entriesOf({ exports, bin }: Manifest, read: (path: string) => string): Entries {
  const exported: string[] = [];
  const ran: string[] = [];
  built(exports, (stem) => exported.push(stem));
  built(bin, (stem) => ran.push(stem));
  // A file that runs as it is names what it loads.
  for (const path of Object.values(Object(bin) as Record<string, string>)) {
    if (path.startsWith('./src/')) continue;
    for (const [, stem] of read(path).matchAll(/'\.\.\/dist\/(.+?)\.js'/g)) ran.push(stem!);
  }
  return { exported, ran };
}

function withTypes(stem: string): unknown {
  return { types: `./dist/${stem}.d.ts`, default: `./dist/${stem}.js` };
}

function built(value: unknown, toTarget: (stem: string) => unknown): unknown {
  if (typeof value === 'string') {
    const stem = /^\.\/src\/(.+)\.ts$/.exec(value)?.[1];
    return stem === undefined ? value : toTarget(stem);
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, built(inner, toTarget)]),
  );
}

/** All of the new text or all of the old, whatever happens in between. */
function write(folder: string, name: string, text: string): void {
  const temporary = join(folder, `${name}.new`);
  writeFileSync(temporary, text);
  renameSync(temporary, join(folder, name));
}

if (import.meta.main) {
  const [command] = process.argv.slice(2);
  try {
    if (command === 'prepare') prepare(process.cwd(), join(import.meta.dirname, '..'));
    else if (command === 'restore') restore(process.cwd());
    else throw new Error('usage: node scripts/pack.ts prepare | restore, in a package folder');
  } catch (error) {
    console.error(`pack: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}
