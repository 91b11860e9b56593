/**
 * Who may import whom: console -> server -> notifications -> engine -> core, and core nothing.
 * An adapter stands on its own, of whichever package it is; only the server's wiring knows adapters.
 */
import { type Package, readModule, readPackages, resolve } from '../modules.ts';
import { type Finding, isCode, isTest, type Tree } from '../tree.ts';

/** Lowest first: a package imports only what stands before it. */
const LAYERS = ['core', 'engine', 'notifications', 'server', 'console'];

export function layering(tree: Tree): Finding[] {
  const packages = readPackages(tree);
  return tree.paths
    .filter((path) => isCode(path) && path.startsWith('packages/'))
    .flatMap((path) => {
      const { imports, reExports } = readModule(tree, path);
      return [...imports, ...reExports].flatMap((one) => {
        const message = judge(packages, path, one.specifier);
        return message ? [{ path, line: one.line, rule: 'layering', message }] : [];
      });
    });
}

function judge(packages: Package[], from: string, specifier: string): string | undefined {
  const own = packages.find(({ folder }) => from.startsWith(`${folder}/`));
  if (!own) return 'this package has no package.json';
  const target = resolve(packages, from, specifier);
  if (specifier.startsWith('.') && !target?.startsWith(`${own.folder}/`)) {
    return `${specifier} leaves the package: import other packages by name`;
  }
  const other = packages.find(({ name }) => specifier === name || specifier.startsWith(`${name}/`));
  const direction = other && judgeDirection(own, other);
  // A test may use development dependencies, and an adapter to test against.
  if (direction !== undefined || isTest(from)) return direction;
  return judgeDependency(own, specifier) ?? (target && judgeAdapters(from, target));
}

function judgeDirection(own: Package, other: Package): string | undefined {
  if (own === other) return undefined;
  const from = LAYERS.indexOf(layer(own));
  const to = LAYERS.indexOf(layer(other));
  if (from === -1 || to === -1) {
    const lost = layer(from === -1 ? own : other);
    return `give ${lost} its place in LAYERS (scripts/tidy/rules/layering.ts)`;
  }
  return to < from
    ? undefined
    : `${layer(own)} must not import ${layer(other)}: move the code down`;
}

function judgeDependency(own: Package, specifier: string): string | undefined {
  if (specifier.startsWith('.')) return undefined;
  if (layer(own) === 'core') return `core imports nothing outside itself, not ${specifier}`;
  if (specifier.startsWith('node:')) return undefined;
  const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
  if (name === own.name || own.dependencies.has(name)) return undefined;
  return `declare ${name} under dependencies or peerDependencies of ${own.folder}/package.json`;
}

function judgeAdapters(from: string, target: string): string | undefined {
  const other = adapter(target);
  if (!other || from.startsWith('packages/server/')) return undefined;
  const own = adapter(from);
  // One technology, perhaps in two packages: they share the connection to it.
  if (own?.technology === other.technology) return undefined;
  // What is offered for tests runs on the memory store.
  const testing = `packages/${other.package}/src/testing/`;
  if (other.technology === 'memory' && from.startsWith(testing)) return undefined;
  return own
    ? `adapter ${own.technology} must not import adapter ${other.technology}: share through the ports`
    : `only the server's wiring imports an adapter, not this: take the port as a parameter`;
}

function layer(one: Package): string {
  return one.folder.slice('packages/'.length);
}

interface Adapter {
  package: string;
  technology: string;
}

function adapter(path: string): Adapter | undefined {
  const [, name, technology] = /^packages\/([^/]+)\/src\/adapters\/([^/]+)\//.exec(path) ?? [];
  return name === undefined || technology === undefined ? undefined : { package: name, technology };
}
