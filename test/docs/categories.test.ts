import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { categoryMatrix } from 'redrive';
import { expect, it } from 'vitest';

it('the page of the categories has the matrix as it is', () => {
  const page = readFileSync(
    join(import.meta.dirname, '../../docs/reference/categories.md'),
    'utf8',
  );
  const rows = Object.entries(categoryMatrix).map(
    ([name, { maxAttempts, base, cap, useCase }]) =>
      `| \`${name}\` | ${maxAttempts} | ${base / 1000} s | ${cap / 1000} s | ${useCase} |`,
  );
  expect(rows).toHaveLength(17);
  expect(page).toContain(rows.join('\n'));
});
