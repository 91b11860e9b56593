import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A block of TypeScript. It is compiled and run. */
export interface Example {
  /** Where it stands: `docs/guides/x.md:12`. */
  at: string;
  code: string;
  /** What the comments beside `console.log` say is printed; `...` stands for anything. */
  prints: string[];
  needs: Need;
  /** It runs until it is told to stop: it gets a SIGTERM once it has printed what it promised. */
  isService: boolean;
}

/**
 * What it connects to, by the variables it reads: `DATABASE_URL`, and with a pooler before it `DIRECT_URL` too;
 * `RABBITMQ_URL`, with a service that takes in the dead letters of `dlx`; `NATS_URL`, with one that takes in those of `ORDERS`;
 * `KAFKA_BROKERS`; `REDIS_URL`.
 */
export type Need = 'nothing' | 'PostgreSQL' | 'PgBouncer' | 'RabbitMQ' | 'NATS' | 'Kafka' | 'Redis';

/** A block of SQL. It is run on a database that has Redrive's tables. */
export interface SqlExample {
  at: string;
  code: string;
}

export interface Examples {
  typescript: Example[];
  sql: SqlExample[];
  /** Code in a language that nobody would run. */
  unchecked: SqlExample[];
}

/** A mark after the language, as in `ts no-run`, would hide a block from the tests too. */
const otherSpellings = [
  'typescript',
  'tsx',
  'js',
  'javascript',
  'mjs',
  'postgres',
  'postgresql',
  '(?:ts|sql) [^\\n]+',
];

const README_FILES = [
  'README.md',
  'packages/core/README.md',
  'packages/engine/README.md',
  'packages/server/README.md',
];

/** Every block in the README files and in docs/. */
export function findExamples(root: string): Examples {
  const texts = [...README_FILES, ...markdownBelow(root, 'docs')].map((page) => ({
    page,
    markdown: readFileSync(join(root, page), 'utf8'),
  }));
  return {
    typescript: texts.flatMap(({ page, markdown }) => examplesIn(page, markdown)),
    sql: texts.flatMap(({ page, markdown }) => blocksIn(page, markdown, 'sql')),
    unchecked: texts.flatMap(({ page, markdown }) => uncheckedIn(page, markdown)),
  };
}

export function examplesIn(page: string, markdown: string): Example[] {
  return blocksIn(page, markdown, 'ts').map(({ at, code }) => ({
    at,
    code,
    prints: printedBy(code),
    needs: needOf(code),
    isService: code.includes("'SIGTERM'"),
  }));
}

export function uncheckedIn(page: string, markdown: string): SqlExample[] {
  return otherSpellings.flatMap((language) => blocksIn(page, markdown, language));
}

export function blocksIn(page: string, markdown: string, language: string): SqlExample[] {
  const block = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms');
  return [...markdown.matchAll(block)].map((match) => {
    const line = markdown.slice(0, match.index).split('\n').length;
    return { at: `${page}:${line}`, code: match[1] as string };
  });
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

function needOf(code: string): Need {
  if (code.includes('RABBITMQ_URL')) return 'RabbitMQ';
  if (code.includes('NATS_URL')) return 'NATS';
  if (code.includes('KAFKA_BROKERS')) return 'Kafka';
  if (code.includes('REDIS_URL')) return 'Redis';
  if (!code.includes('DATABASE_URL')) return 'nothing';
  return code.includes('DIRECT_URL') ? 'PgBouncer' : 'PostgreSQL';
}

function markdownBelow(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name));
}
