/** Getting the jars of a server from Maven Central. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findProgram, type Program } from './find.ts';
import type { GetKit } from './service.ts';

export interface Artifact {
  readonly group: string;
  readonly name: string;
  readonly version: string;
}

const MAVEN_FOLDERS = ['/usr/bin', '/opt/homebrew/bin'];
const LIMIT_MS = 10 * 60_000;

/** The first Java of at least this version. */
export function findJava(atLeast: number): Program | undefined {
  const isWanted = (version: string) => Number.parseInt(version, 10) >= atLeast;
  return findProgram('java', ['/usr/bin', '/opt/homebrew/opt/openjdk/bin'], isWanted, [
    '--version',
  ]);
}

/** Copies jars, and the jars that they need, into a folder. Says what went wrong, and throws nothing. */
export function copyJars(artifacts: readonly Artifact[], folder: string, { say }: GetKit): void {
  const maven = findProgram('mvn', MAVEN_FOLDERS);
  if (!maven) {
    say(`cannot get ${nameOf(artifacts)}: there is no mvn on this machine`);
    return;
  }
  say(`mvn dependency:copy-dependencies of ${nameOf(artifacts)}`);
  mkdirSync(dirname(folder), { recursive: true });
  // Renamed when it is whole: a folder that is there has all jars.
  const unfinished = mkdtempSync(`${folder}-`);
  const pom = join(unfinished, 'pom.xml');
  writeFileSync(pom, pomOf(artifacts));
  const args = ['-q', '-B', '-f', pom, 'dependency:copy-dependencies', '-DoutputDirectory=jars'];
  const { status, stdout, error } = spawnSync(maven.path, args, {
    encoding: 'utf8',
    timeout: LIMIT_MS,
  });
  if (status === 0) {
    rmSync(folder, { recursive: true, force: true });
    renameSync(join(unfinished, 'jars'), folder);
  } else {
    say(error ? error.message : stdout.trimEnd().split('\n').slice(-10).join('\n'));
  }
  rmSync(unfinished, { recursive: true, force: true });
}

/** How a person gets such jars here. */
export function wayOut(artifacts: readonly Artifact[], java: number): string {
  return `install Java ${java} or later and Maven, then scripts/services get, which downloads ${nameOf(artifacts)}`;
}

function nameOf(artifacts: readonly Artifact[]): string {
  return artifacts.map(({ name, version }) => `${name} ${version}`).join(' and ');
}

function pomOf(artifacts: readonly Artifact[]): string {
  const dependencies = artifacts.map(
    ({ group, name, version }) =>
      `<dependency><groupId>${group}</groupId><artifactId>${name}</artifactId><version>${version}</version></dependency>`,
  );
  return `<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>redrive</groupId><artifactId>services</artifactId><version>1</version>
<dependencies>${dependencies.join('')}</dependencies>
</project>
`;
}
