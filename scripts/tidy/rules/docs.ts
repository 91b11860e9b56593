/** Links between pages lead somewhere, and every page can be found from the front page. */
import { posix } from 'node:path';
import { type Finding, lineAt, type Tree } from '../tree.ts';

const FRONT_PAGES = ['README.md', 'docs/README.md'];

/** Inline links and images, reference definitions, and the attributes of raw HTML. */
const LINKS = [
  /\]\(\s*<?([^\s<>()]*)>?(?:\s+["'][^)]*)?\)/g,
  /^ *\[[^\]]+\]:\s*<?([^\s>]+)/gm,
  /\b(?:href|src)="([^"]*)"/g,
];

interface Link {
  line: number;
  text: string;
  /** The file meant, from the root; the page itself for `#anchor`. */
  target: string;
  anchor: string;
}

export function brokenLinks(tree: Tree): Finding[] {
  return pages(tree).flatMap((path) =>
    links(tree, path).flatMap(({ line, text, target, anchor }) => {
      const fault = judge(tree, target, anchor);
      return fault ? [{ path, line, rule: 'links', message: `(${text}) ${fault}` }] : [];
    }),
  );
}

export function lostPages(tree: Tree): Finding[] {
  const reached = new Set(FRONT_PAGES.filter((path) => tree.has(path)));
  // A set visits what is added to it while it is walked.
  for (const path of reached) {
    for (const { target } of links(tree, path)) {
      if (target.endsWith('.md') && tree.has(target)) reached.add(target);
    }
  }
  return pages(tree)
    .filter((path) => path.startsWith('docs/') && !reached.has(path))
    .map((path) => ({
      path,
      line: 1,
      rule: 'lost-pages',
      message: `no way leads here from ${FRONT_PAGES.join(' or ')}: link it`,
    }));
}

function judge(tree: Tree, target: string, anchor: string): string | undefined {
  if (!tree.has(target)) {
    const isFolder = tree.paths.some((path) => path.startsWith(`${target.replace(/\/$/, '')}/`));
    return isFolder || target === '.' ? undefined : `leads nowhere: there is no ${target}`;
  }
  if (anchor === '' || !target.endsWith('.md')) return undefined;
  return anchors(tree, target).has(anchor) ? undefined : `${target} has no heading #${anchor}`;
}

function pages(tree: Tree): string[] {
  return tree.paths.filter((path) => path.endsWith('.md'));
}

function links(tree: Tree, path: string): Link[] {
  const text = withoutCode(tree.read(path));
  return LINKS.flatMap((pattern) => [...text.matchAll(pattern)]).flatMap((match): Link[] => {
    const address = match[1] ?? '';
    if (/^[a-z][a-z0-9+.-]*:|^\/\//i.test(address)) return [];
    const [file = '', anchor = ''] = address.split('#');
    const folder = file.startsWith('/') ? '' : posix.dirname(path);
    return [
      {
        line: lineAt(text, match.index),
        text: address,
        target: file === '' ? path : posix.join('.', folder, decodeURIComponent(file)),
        anchor: decodeURIComponent(anchor),
      },
    ];
  });
}

/** The names that code forges give to headings: lower case, no punctuation, dashes for spaces. */
function anchors(tree: Tree, path: string): Set<string> {
  const names = new Set<string>();
  const text = withoutFences(tree.read(path));
  for (const [, heading = ''] of text.matchAll(/^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$/gm)) {
    const slug = heading
      .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
      .replaceAll(' ', '-');
    let name = slug;
    for (let count = 1; names.has(name); count++) name = `${slug}-${count}`;
    names.add(name);
  }
  for (const [, id = ''] of text.matchAll(/<[^>]*\b(?:id|name)="([^"]+)"/g)) names.add(id);
  return names;
}

/** Code shows brackets that are no links. Blanked, not cut, so that lines keep their numbers. */
function withoutCode(text: string): string {
  return withoutFences(text).replace(/(`+)(?!`).+?(?<!`)\1(?!`)/g, blank);
}

function withoutFences(text: string): string {
  return text.replace(/^ *(`{3,}|~{3,})[^\n]*\n[\s\S]*?^ *\1[`~]* *$/gm, blank);
}

function blank(text: string): string {
  return text.replace(/[^\n]/g, ' ');
}
