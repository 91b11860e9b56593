import { describe, expect, it } from 'vitest';
import { madeUpTree } from '../tree.ts';
import { brokenLinks, lostPages } from './docs.ts';

function broken(text: string): string[] {
  const tree = madeUpTree({
    'docs/guide.md': text,
    'docs/other.md':
      '# One & two\n\n## `retry()`\n\n## Again\n\n## Again\n\n<a id="by-hand"></a>\n',
    'docs/img/a b.svg': '',
    'README.md': '# Redrive',
  });
  return brokenLinks(tree).map(({ path, line, message }) => `${path}:${line} ${message}`);
}

describe('links', () => {
  it.each([
    '[x](other.md)',
    '[x](./other.md#one--two)',
    '[x](other.md#retry)',
    '[x](other.md#again-1)',
    '[x](other.md#by-hand)',
    '[x](../README.md "title")',
    '[x](/README.md)',
    '[x](img)',
    '![x](img/a%20b.svg)',
    '# Here\n[x](#here)',
    '[x]: other.md',
    '[x](https://redrive.example/nowhere.md)',
    '[x](mailto:a@redrive.example)',
    '`[x](nowhere.md)`',
    '```md\n[x](nowhere.md)\n```',
  ])('are fine: %s', (text) => {
    expect(broken(text)).toEqual([]);
  });

  it.each([
    ['[x](nowhere.md)', '(nowhere.md) leads nowhere: there is no docs/nowhere.md'],
    ['[x](other.md#three)', '(other.md#three) docs/other.md has no heading #three'],
    ['[x](#here)', '(#here) docs/guide.md has no heading #here'],
    ['![x](img/c.svg)', '(img/c.svg) leads nowhere: there is no docs/img/c.svg'],
    ['[x]: ../docs/gone.md', '(../docs/gone.md) leads nowhere: there is no docs/gone.md'],
    ['<a href="gone.md">x</a>', '(gone.md) leads nowhere: there is no docs/gone.md'],
    ['[x](other.md#again-2)', '(other.md#again-2) docs/other.md has no heading #again-2'],
  ])('are broken: %s', (text, fault) => {
    expect(broken(`intro\n\n${text}`)).toEqual([`docs/guide.md:3 ${fault}`]);
  });

  it('does not take a heading inside code for an anchor', () => {
    expect(broken('```sh\n# here\n```\n\n[x](#here)')).toHaveLength(1);
  });
});

describe('lost pages', () => {
  it('are those that no chain of links reaches', () => {
    const tree = madeUpTree({
      'README.md': '[docs](docs/a.md)',
      'docs/README.md': '[b](b.md)',
      'docs/a.md': '[deep](deep/c.md)',
      'docs/b.md': '',
      'docs/deep/c.md': '',
      'docs/lost.md': '[also](lost-too.md)',
      'docs/lost-too.md': '[back](lost.md)',
      'CONTRIBUTING.md': '[no front page](docs/lost.md)',
    });
    expect(lostPages(tree).map(({ path }) => path)).toEqual(['docs/lost-too.md', 'docs/lost.md']);
  });
});
