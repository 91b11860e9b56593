import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** Their programs run beside the service, in a checkout that has everything. */
const ofTheService = [
  'gateway.md',
  'nats.md',
  'operating.md',
  'rabbitmq-dead-letters.md',
  'security.md',
];

/** The clients that an adapter needs. */
const clients: Readonly<Record<string, readonly string[]>> = {
  '@redrive/engine/fastify': ['fastify'],
  '@redrive/engine/kafka': ['@platformatic/kafka'],
  '@redrive/engine/nats': ['@nats-io/transport-node', '@nats-io/jetstream'],
  '@redrive/engine/postgres': ['pg'],
  '@redrive/engine/rabbitmq': ['amqplib'],
  '@redrive/engine/redis': ['@redis/client'],
  '@redrive/notifications/mongodb': ['mongodb'],
};

/** Whoever comes from them has them. */
const known = ['p-retry', 'async-retry', 'exponential-backoff', 'cockatiel'];

const pages = [
  'README.md',
  ...readdirSync(join(root, 'docs/guides'))
    .filter((name) => name.endsWith('.md') && !ofTheService.includes(name))
    .map((name) => `docs/guides/${name}`),
];

describe('the examples of a page', () => {
  it.each(pages)('import nothing that was not installed before: %s', (page) => {
    const installed = new Set<string>(known);
    const missing: string[] = [];
    for (const [, language, code = ''] of contentOf(page).matchAll(/```(\w+)\n(.*?)```/gs)) {
      if (language === 'sh') for (const name of installsIn(code)) installed.add(name);
      if (language !== 'ts') continue;
      missing.push(...importsIn(code).filter((name) => !installed.has(name)));
    }
    expect(missing).toEqual([]);
  });

  it('are looked at', () => {
    expect(
      importsIn("import { postgres } from '@redrive/engine/postgres';\nimport 'pg/lib';"),
    ).toEqual(['@redrive/engine', 'pg', 'pg']);
    expect(installsIn('npm install redrive @redrive/engine\nnpm ci')).toEqual([
      'redrive',
      '@redrive/engine',
    ]);
  });
});

function contentOf(page: string): string {
  return readFileSync(join(root, page), 'utf8');
}

function installsIn(code: string): string[] {
  const lines = [...code.matchAll(/^npm install (.*)$/gm)];
  return lines.flatMap(([, names = '']) => names.split(' ').filter((one) => !one.startsWith('-')));
}

function importsIn(code: string): string[] {
  const specifiers = [...code.matchAll(/^(?:import|export)\b(?:[^;']*?\bfrom)? '([^'.][^']*)';/gm)];
  return specifiers.flatMap(([, specifier = '']) => {
    if (specifier.startsWith('node:')) return [];
    const parts = specifier.split('/');
    const name = parts.slice(0, specifier.startsWith('@') ? 2 : 1).join('/');
    return [name, ...(clients[specifier] ?? [])];
  });
}
