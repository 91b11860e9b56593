import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const page = fileURLToPath(new URL('../../docs/guides/promises.md', import.meta.url));
const proofs = proofsIn(readFileSync(page, 'utf8'));

/** A file that is linked at the beginning of a point, and what is quoted from it. */
interface Proof {
  file: string;
  quote: string;
}

describe('the tests that the promises name', () => {
  it.for(proofs)('$file has “$quote”', ({ file, quote }) => {
    const path = join(dirname(page), file);
    expect(existsSync(path), `there is no ${file}`).toBe(true);
    expect(readFileSync(path, 'utf8')).toContain(quote);
  });

  it('stand under every promise', () => {
    const promises = readFileSync(page, 'utf8').match(/^## \d+\. .*?(?=^## )/gms) ?? [];
    expect(promises).toHaveLength(11);
    expect(promises.filter((text) => proofsIn(text).length < 2)).toEqual([]);
  });
});

describe('the tests that the threat model names', () => {
  const guide = fileURLToPath(new URL('../../docs/guides/security.md', import.meta.url));
  const named = [
    ...readFileSync(guide, 'utf8').matchAll(/\[`[^`]+`\]\(([^)#]+\.ts)\) “([^”]+)”/g),
  ].map(([, file = '', quote = '']) => ({ file, quote }));

  it.for(named)('$file has “$quote”', ({ file, quote }) => {
    expect(readFileSync(join(dirname(guide), file), 'utf8')).toContain(quote);
  });

  it('are many', () => {
    expect(named.length).toBeGreaterThan(25);
  });
});

function proofsIn(markdown: string): Proof[] {
  // A point may go on in the next line.
  const points = markdown.replaceAll(/\n {2}(?=\S)/g, ' ');
  return [...points.matchAll(/^- \[`[^`]+`\]\(([^)#]+)[^)]*\)(.*)$/gm)].flatMap(
    ([, file = '', rest = '']) =>
      [...rest.matchAll(/“([^”]+)”/g)].map(([, quote = '']) => ({ file, quote })),
  );
}
