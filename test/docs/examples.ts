import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

export interface Example {
  /** Where it stands: `docs/guides/x.md:12`. */
  at: string;
  code: string;
  /** What the comments beside `console.log` say is printed; `...` stands for anything. */
  prints: string[];
}

/** Every block of TypeScript in the README files and in docs/. */
export function findExamples(root: string): Example[] {
  const pages = ['README.md', 'packages/core/README.md', ...markdownBelow(root, 'docs')];
  return pages.flatMap((page) =>
    examplesIn(relative(root, join(root, page)), read(join(root, page))),
  );
}

export function examplesIn(page: string, markdown: string): Example[] {
  const examples: Example[] = [];
  for (const match of markdown.matchAll(/^```ts\n(.*?)^```$/gms)) {
    const line = markdown.slice(0, match.index).split('\n').length;
    const code = match[1] as string;
    examples.push({ at: `${page}:${line}`, code, prints: printedBy(code) });
  }
  return examples;
}

/** Whether a printed line is what a comment promised. */
export function isPrinted(promise: string, output: string): boolean {
  const pattern = promise.split('...').map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return new RegExp(`^${pattern.join('.*')}`, 'm').test(output);
}

function printedBy(code: string): string[] {
  const lines = code.split('\n');
  return lines.flatMap((line, i) => {
    if (!line.includes('console.log(')) return [];
    const beside = /\/\/ (.*)$/.exec(line) ?? /^\s*\/\/ (.*)$/.exec(lines[i + 1] ?? '');
    return beside ? [beside[1] as string] : [];
  });
}

function markdownBelow(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name));
}

function read(file: string): string {
  return readFileSync(file, 'utf8');
}
