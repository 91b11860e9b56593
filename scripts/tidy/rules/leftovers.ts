/** Not to be left behind: markers, paths of one machine, download hosts, files grown too long. */
import { findMatches, type Finding, isCode, isTest, type Tree } from '../tree.ts';

const MAX_LINES = 400;
const MARKERS = /\b(?:TODO|FIXME|XXX|HACK)\b/g;
const MACHINE_PATHS = /(?<![\w.~*}-])\/(?:home|root|Users|work)\/[\w.-]+/g;
const LOCKFILE = 'package-lock.json';

/** Tests have no limit: a table of cases is as long as it is. */
export function fileLength(tree: Tree): Finding[] {
  return tree.paths
    .filter((path) => isCode(path) && !isTest(path))
    .flatMap((path) => {
      const lines = tree.read(path).trimEnd().split('\n').length;
      if (lines <= MAX_LINES) return [];
      const message = `${lines} lines, ${MAX_LINES} at most: look for two subjects`;
      return [{ path, line: MAX_LINES + 1, rule: 'file-length', message }];
    });
}

export function markers(tree: Tree): Finding[] {
  return texts(tree).flatMap((path) =>
    findMatches(tree, path, MARKERS, (marker) => ({
      rule: 'markers',
      message: `${marker}: do it now, or open an issue and drop the marker`,
    })),
  );
}

export function machinePaths(tree: Tree): Finding[] {
  return texts(tree).flatMap((path) =>
    findMatches(tree, path, MACHINE_PATHS, (found) => ({
      rule: 'machine-paths',
      message: `${found} exists on one machine only: use a relative path or the temporary folder`,
    })),
  );
}

export function lockfileHosts(tree: Tree): Finding[] {
  if (!tree.has(LOCKFILE)) return [];
  return findMatches(tree, LOCKFILE, /"resolved": "http[^"]*"/g, () => ({
    rule: 'lockfile-hosts',
    message:
      'names a download host: run npm install with the omit-lockfile-registry-resolved of .npmrc',
  }));
}

/** Not the lockfile, whose hashes may spell anything, nor this rule and its test. */
function texts(tree: Tree): string[] {
  return tree.paths.filter(
    (path) =>
      /\.(?:[cm]?[jt]sx?|json|md|ya?ml|sh|html|css|sql|proto|toml)$|(?:^|\/)[^./]+$/.test(path) &&
      path !== LOCKFILE &&
      !path.startsWith('scripts/tidy/rules/leftovers.'),
  );
}
