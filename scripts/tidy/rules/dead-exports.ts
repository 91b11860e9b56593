/**
 * An export that nothing imports is clutter, or a promise nobody made. What a package's entry files
 * give away counts as used; what only a test imports does not.
 */
import { type Module, readModule, readPackages, resolve } from '../modules.ts';
import { type Finding, isCode, isGenerated, isPublished, isTest, type Tree } from '../tree.ts';

export function deadExports(tree: Tree): Finding[] {
  const packages = readPackages(tree);
  const modules = new Map(
    tree.paths
      .filter((path) => isCode(path) && !isTest(path))
      .map((path) => [path, readModule(tree, path)]),
  );
  const used = new Set<string>();

  for (const entry of packages.flatMap((one) => [...one.entries.values()])) use(entry, '*');
  for (const [path, { imports }] of modules) {
    for (const { specifier, names } of imports) {
      const target = resolve(packages, path, specifier);
      if (target) for (const name of names) use(target, name);
    }
  }

  return [...modules].flatMap(([path, module]) =>
    isPublished(path) && !isGenerated(path)
      ? module.exports
          // The list of codes is there for the rule that holds it against the reference.
          .filter(({ name }) => !used.has(`${path} ${name}`) && name !== 'errorCodes')
          .map(({ name, line }) => ({
            path,
            line,
            rule: 'dead-exports',
            message: `nothing imports ${name}: drop the export, or the code`,
          }))
      : [],
  );

  /** Marks a name of a file, and follows it to where it is declared. */
  function use(path: string, name: string): void {
    const module = modules.get(path);
    if (!module || used.has(`${path} ${name}`)) return;
    used.add(`${path} ${name}`);
    if (name === '*') for (const one of module.exports) used.add(`${path} ${one.name}`);
    for (const { specifier, taken, given } of module.reExports) {
      const target = resolve(packages, path, specifier);
      if (!target || !passesOn(module, name, given)) continue;
      use(target, given === '*' ? name : taken);
    }
  }
}

function passesOn(module: Module, name: string, given: string): boolean {
  if (name === '*' || given === name) return true;
  return given === '*' && !module.exports.some((one) => one.name === name);
}
