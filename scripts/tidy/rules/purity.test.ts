import { describe, expect, it } from 'vitest';
import { madeUpTree } from '../tree.ts';
import { purity } from './purity.ts';

function found(text: string, path = 'packages/core/src/x.ts'): string[] {
  return purity(madeUpTree({ [path]: text })).map(({ line, message }) => `${line} ${message}`);
}

describe('purity of core', () => {
  it.each([
    ['Date.now', 'const now = Date.now();'],
    ['Date.now', 'const clock = { now: Date.now };'],
    ['Math.random', 'const n = Math.random();'],
    ['performance.now', 'const t = performance.now();'],
    ['setTimeout()', 'setTimeout(() => {}, 1);'],
    ['setInterval()', 'setInterval(() => {}, 1);'],
    ['globalThis.setTimeout', 'globalThis.setTimeout(() => {}, 1);'],
    ['new Date()', 'const d = new Date();'],
    ['Date()', 'const d = Date();'],
    ['console.log', "console.log('x');"],
    ['crypto.randomUUID', 'const id = crypto.randomUUID();'],
  ])('finds %s in: %s', (used, text) => {
    expect(found(`\n\n${text}`)).toEqual([
      `3 ${used} touches the host: take it through a port, or put it into system.ts`,
    ]);
  });

  it('leaves dates made from data, comments and texts alone', () => {
    const text = `
      // Date.now() would be wrong here
      export const at = (ms: number) => new Date(ms).toISOString();
      export const hint = 'use Date.now()';
      export const Web = globalThis.Response;
      export const floor = Math.floor(1.5);
      export const timer = (clock: { setTimeout(): void }) => clock.setTimeout();
    `;
    expect(found(text)).toEqual([]);
  });

  it.each([
    'packages/core/src/system.ts',
    'packages/core/src/x.test.ts',
    'packages/engine/src/x.ts',
    'scripts/x.ts',
  ])('does not look at %s', (path) => {
    expect(found('Date.now();', path)).toEqual([]);
  });
});
