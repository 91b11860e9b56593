import { describe, expect, it } from 'vitest';
import { madeUpTree } from '../tree.ts';
import { focusedTests } from './focused-tests.ts';

function found(text: string, path = 'packages/core/src/x.test.ts'): string[] {
  return focusedTests(madeUpTree({ [path]: text })).map(
    ({ line, message }) => `${line} ${message.split(':')[0]}`,
  );
}

describe('tests that do not run', () => {
  it.each([
    ["it.only('x', f);", '.only'],
    ["test.todo('x');", '.todo'],
    ["describe.skip('x', f);", '.skip'],
    ["it.concurrent.only('x', f);", '.only'],
    ["it.only.each([1])('x', f);", '.only'],
    ["it('x', { skip: true }, f);", '{ skip }'],
    ["it('x', (context) => { context.skip(); });", '.skip()'],
  ])('are found in: %s', (text, used) => {
    expect(found(`\n${text}`)).toEqual([`2 ${used}`]);
  });

  it('leaves conditions, reasons and other words alone', () => {
    const text = `it.skipIf(true)('x', f); it.runIf(false)('y', f);
      it('z', ({ skip }) => skip('no server'));
      it('.only(', f); list.only(); it('x', { timeout: 1 }, f);`;
    expect(found(text)).toEqual([]);
  });

  it('does not look at source', () => {
    expect(found("it.only('x', f);", 'packages/core/src/x.ts')).toEqual([]);
  });
});
