/** Core asks its ports for time and chance: only `system.ts` touches the host. */
import { type Node, parse, walk } from '../modules.ts';
import { type Finding, isPublished, lineAt, type Tree } from '../tree.ts';

const HOST_MEMBERS = new Set(['Date.now', 'Math.random', 'performance.now']);
const HOST_OBJECTS = new Set(['console', 'crypto']);
const HOST_FUNCTIONS = new Set([
  'Date',
  'setTimeout',
  'setInterval',
  'setImmediate',
  'clearTimeout',
  'clearInterval',
]);

export function purity(tree: Tree): Finding[] {
  return tree.paths
    .filter((path) => path.startsWith('packages/core/') && isPublished(path))
    .filter((path) => path !== 'packages/core/src/system.ts')
    .flatMap((path) => {
      const findings: Finding[] = [];
      walk(parse(tree, path).program, (node) => {
        const used = hostUse(node);
        if (!used) return;
        findings.push({
          path,
          line: lineAt(tree.read(path), node.start),
          rule: 'purity',
          message: `${used} touches the host: take it through a port, or put it into system.ts`,
        });
      });
      return findings;
    });
}

function hostUse(node: Node): string | undefined {
  if (node.type === 'MemberExpression') {
    const object = name(node['object']) ?? '';
    const property = name(node['property']) ?? '';
    const touches =
      HOST_OBJECTS.has(object) ||
      HOST_MEMBERS.has(`${object}.${property}`) ||
      (object === 'globalThis' && (HOST_OBJECTS.has(property) || HOST_FUNCTIONS.has(property)));
    return touches ? `${object}.${property}` : undefined;
  }
  const callee = name(node['callee']);
  if (callee === undefined || !HOST_FUNCTIONS.has(callee)) return undefined;
  if (node.type === 'CallExpression') return `${callee}()`;
  const withArguments = (node['arguments'] as unknown[]).length > 0;
  return node.type === 'NewExpression' && callee === 'Date' && !withArguments
    ? 'new Date()'
    : undefined;
}

function name(node: unknown): string | undefined {
  const { type, name: text } = (node ?? {}) as { type?: string; name?: string };
  return type === 'Identifier' ? text : undefined;
}
