import { describe, expect, it } from 'vitest';
import { madeUpTree } from '../tree.ts';
import { errorCodes } from './error-codes.ts';

const agreeing = {
  'packages/core/src/errors.ts': `export const errorCodes = {
    EXHAUSTED: 'Every attempt failed.',
    ABORTED: 'The caller aborted.',
  } as const satisfies Record<string, string>;`,
  'packages/core/src/retry.ts': "fail('EXHAUSTED'); const by = { ABORTED: 'abort' };",
  'docs/reference/errors.md':
    '| code | meaning |\n|---|---|\n| `EXHAUSTED` | a |\n| `ABORTED` | b |\n',
};

function findings(changes: Record<string, string>): string[] {
  return errorCodes(madeUpTree({ ...agreeing, ...changes })).map(
    ({ path, line, message }) => `${path}:${line} ${message}`,
  );
}

describe('error codes', () => {
  it('are fine when list, reference and use agree', () => {
    expect(findings({})).toEqual([]);
  });

  it('need a row in the reference', () => {
    expect(findings({ 'docs/reference/errors.md': '| `EXHAUSTED` | a |' })).toEqual([
      expect.stringMatching(/^packages\/core\/src\/errors\.ts:3 ABORTED is not documented/),
    ]);
  });

  it('need a reference at all', () => {
    const { 'docs/reference/errors.md': _, ...rest } = agreeing;
    expect(errorCodes(madeUpTree(rest))).toHaveLength(2);
  });

  it('in the reference must exist', () => {
    const text = `${agreeing['docs/reference/errors.md']}| \`GONE\` | c |\n`;
    expect(findings({ 'docs/reference/errors.md': text })).toEqual([
      expect.stringMatching(/^docs\/reference\/errors\.md:5 no errorCodes lists GONE/),
    ]);
  });

  it('must be used by some code, not only by tests', () => {
    const changes = {
      'packages/core/src/retry.ts': "fail('EXHAUSTED');",
      'packages/core/src/retry.test.ts': "expectCode('ABORTED');",
    };
    expect(findings(changes)).toEqual([
      'packages/core/src/errors.ts:3 no code uses ABORTED: drop it, or throw it',
    ]);
  });
});
