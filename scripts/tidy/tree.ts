/** The files the rules look at: the repository's, or a made-up set in a test. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

export interface Tree {
  /** Every file, from the root, with forward slashes, sorted. */
  readonly paths: readonly string[];
  has(path: string): boolean;
  read(path: string): string;
}

/** One broken rule at one place, and what to do about it. */
export interface Finding {
  path: string;
  line: number;
  rule: string;
  message: string;
}

export type Rule = (tree: Tree) => Finding[];

const NOT_OURS = new Set([
  'node_modules',
  'dist',
  'coverage',
  'reports',
  '.git',
  '.stryker-tmp',
  '.examples',
  '.mutants',
]);

export function readTree(root: string): Tree {
  const files = new Map<string, string | undefined>(
    walk(root, '').map((path) => [path, undefined]),
  );
  return makeTree(files, (path) => readFileSync(join(root, path), 'utf8'));
}

export function madeUpTree(files: Record<string, string>): Tree {
  return makeTree(new Map(Object.entries(files)), () => '');
}

function makeTree(files: Map<string, string | undefined>, load: (path: string) => string): Tree {
  return {
    paths: [...files.keys()].toSorted(),
    has: (path) => files.has(path),
    read(path) {
      const text = files.get(path) ?? load(path);
      files.set(path, text);
      return text;
    },
  };
}

function walk(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = posix.join(folder, entry.name);
    if (NOT_OURS.has(entry.name)) return [];
    return entry.isDirectory() ? walk(root, path) : entry.isFile() ? [path] : [];
  });
}

export function isCode(path: string): boolean {
  return /\.[cm]?[jt]sx?$/.test(path) && !/\.d\.[cm]?ts$/.test(path);
}

export function isTest(path: string): boolean {
  return isCode(path) && (/\.test\.[cm]?tsx?$/.test(path) || path.startsWith('test/'));
}

/** Source that is published: what stands in a package's `src`, without its tests. */
export function isPublished(path: string): boolean {
  return isCode(path) && /^packages\/[^/]+\/src\//.test(path) && !isTest(path);
}

/** Written by a program, which exports all it knows. */
export function isGenerated(path: string): boolean {
  return path.includes('/gen/');
}

export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let i = text.indexOf('\n'); i !== -1 && i < offset; i = text.indexOf('\n', i + 1)) line++;
  return line;
}

/** Every match of a pattern in a file, as findings. */
export function findMatches(
  tree: Tree,
  path: string,
  pattern: RegExp,
  toFinding: (match: string) => { rule: string; message: string },
): Finding[] {
  const text = tree.read(path);
  return [...text.matchAll(pattern)].map((match) => ({
    path,
    line: lineAt(text, match.index),
    ...toFinding(match[0]),
  }));
}
