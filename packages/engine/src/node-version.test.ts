import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { checkNode } from './node-version.ts';

it('the Node that is needed is the one that package.json says', () => {
  const { engines } = JSON.parse(
    readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
  ) as { engines: { node: string } };
  const node = process.versions.node;
  const at = (version: string) => {
    Object.defineProperty(process.versions, 'node', { value: version, configurable: true });
    try {
      checkNode('This');
      return 'fine';
    } catch (error) {
      return (error as { code: string }).code;
    } finally {
      Object.defineProperty(process.versions, 'node', { value: node, configurable: true });
    }
  };
  const [major, minor] = engines.node.replace('>=', '').split('.').map(Number);
  expect(at(`${major}.${minor}.0`)).toBe('fine');
  expect(at(`${major}.${minor! - 1}.9`)).toBe('NODE_TOO_OLD');
});
