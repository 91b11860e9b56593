import { type ChildProcess, execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { migratePostgres } from '@redrive/engine/postgres';
import {
  type RabbitmqServer,
  startPgBouncer,
  startNats,
  startRabbitmq,
  startRedis,
} from '@redrive/services';
import {
  type Database,
  describeService,
  freshDatabase,
  sharedServer,
} from '@redrive/services/vitest';
import { createService, readSettings } from '@redrive/server';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  type Example,
  examplesIn,
  findExamples,
  isPrinted,
  type Need,
  uncheckedIn,
} from './examples.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));
const folder = join(root, 'test/docs/.examples');
const found = findExamples(root);
const examples = found.typescript.map((example, i) => ({
  ...example,
  file: join(folder, `example-${i}.ts`),
}));

type Written = Example & { file: string };

const slow = { timeout: 90_000 };
/** Said outright: vitest writes `concurrent` into an object that a concurrent test was given. */
const alone = { timeout: 90_000, concurrent: false };

beforeAll(() => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  // `export {}` makes a module of an example without imports.
  for (const { file, code } of examples) writeFileSync(file, `${code}\nexport {};\n`);
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: join(root, 'tsconfig.base.json'),
      compilerOptions: {
        composite: false,
        allowImportingTsExtensions: true,
        noEmit: true,
        noUnusedLocals: false,
        types: ['node'],
        typeRoots: [join(root, 'node_modules/@types')],
        lib: ['es2024', 'esnext.disposable', 'dom'],
      },
      // Some of the libraries that the guides compare with have no types of their own.
      include: ['*.ts', join(root, 'bench/peers.d.ts')],
    }),
  );
});

describe('examples in the documentation', () => {
  it('compile under the strictest settings', { timeout: 60_000 }, async () => {
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const { stdout } = await run(process.execPath, [tsc, '-p', folder]).catch(
      (error: unknown) => error as { stdout: string },
    );
    expect(namePages(stdout)).toBe('');
  });

  it('are marked as ts or sql, so that none is left out', () => {
    expect(found.unchecked).toEqual([]);
  });

  for (const example of needing('nothing')) {
    it.concurrent(`${example.at} runs and prints what it says`, slow, () => expectToWork(example));
  }
});

describeService('PostgreSQL 18', () => {
  let database: Database;
  beforeAll(async () => {
    database = await freshDatabase(18);
    // The pages use both.
    for (const schema of ['public', 'redrive']) {
      await migratePostgres({ url: database.url, schema });
    }
  });
  afterAll(() => database.drop());

  for (const example of needing('PostgreSQL')) {
    it.concurrent(`${example.at} runs and prints what it says`, slow, async () => {
      await using own = await freshDatabase(18);
      await expectToWork(example, { DATABASE_URL: own.url });
    });
  }

  for (const { at, code } of found.sql) {
    it(`${at} is taken by a database with the tables`, async () => {
      const client = new pg.Client({ connectionString: database.url });
      await client.connect();
      try {
        // Undone, roles too: they belong to the server, not to the database.
        await client.query('BEGIN');
        await expect(client.query(code)).resolves.toBeDefined();
        await client.query('ROLLBACK');
      } finally {
        await client.end();
      }
    });
  }
});

describeService(['PostgreSQL 18', 'PgBouncer'], () => {
  for (const example of needing('PgBouncer')) {
    it.concurrent(`${example.at} runs and prints what it says`, slow, async () => {
      await using own = await freshDatabase(18);
      await using pooler = await startPgBouncer({ upstreamUrl: own.url, poolMode: 'transaction' });
      await expectToWork(example, { DATABASE_URL: pooler.url, DIRECT_URL: own.url });
    });
  }
});

describeService('RabbitMQ', () => {
  // Of their own: another service on the same broker would take in their dead letters.
  let server: RabbitmqServer;
  beforeAll(async () => {
    server = await startRabbitmq();
  });
  afterAll(() => server.stop());

  for (const example of needing('RabbitMQ')) {
    it(`${example.at} runs and prints what it says`, alone, async () => {
      const { url } = server;
      // Before its exchange is there, RabbitMQ would drop what dies.
      const env = { RABBITMQ_URL: url, DEAD_LETTER_EXCHANGE: 'dlx' };
      await withService(env, () => expectToWork(example, { RABBITMQ_URL: url }));
    });
  }
});

describeService('NATS 2.15', () => {
  for (const example of needing('NATS')) {
    it(`${example.at} runs and prints what it says`, alone, async () => {
      await using server = await startNats();
      const { url } = server;
      // Before its stream is there, advisories would be gone.
      const env = { NATS_URL: url, NATS_DEAD_LETTER_STREAMS: 'ORDERS' };
      await withService(env, () => expectToWork(example, { NATS_URL: url }));
    });
  }
});

describeService('Kafka', () => {
  for (const example of needing('Kafka')) {
    it(`${example.at} runs and prints what it says`, alone, async () => {
      const { host } = new URL(await sharedServer('Kafka'));
      await expectToWork(example, { KAFKA_BROKERS: host });
    });
  }
});

describeService('Redis', () => {
  for (const example of needing('Redis')) {
    it(`${example.at} runs and prints what it says`, alone, async () => {
      await using server = await startRedis();
      await expectToWork(example, { REDIS_URL: server.url });
    });
  }
});

/** Beside a service that is ready. */
async function withService(env: Record<string, string>, work: () => Promise<void>): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'redrive-docs-'));
  const reading = await readSettings({
    env: {
      BASE_DELAY_MS: '20',
      HTTP_PORT: '0',
      REDRIVE_DATA_DIR: home,
      REDRIVE_LOG_LEVEL: 'silent',
      ...env,
    },
    cwd: home,
  });
  if (!reading.ok) throw new Error(JSON.stringify(reading.faults));
  const service = createService(reading.settings);
  try {
    const listening = await service.start();
    await vi.waitFor(async () => {
      expect(await (await fetch(`${listening.url}/health/ready`)).text()).toContain('"ready":true');
    }, 10_000);
    await work();
  } finally {
    await service.stop();
    rmSync(home, { recursive: true, force: true });
  }
}

describe('reading examples', () => {
  const markdown = 'text\n```ts\nconsole.log(a); // 1\nb();\nconsole.log(\n```\n```js\nno\n```\n';

  it('finds the blocks with their lines and what they promise to print', () => {
    expect(examplesIn('x.md', markdown)).toEqual([
      {
        at: 'x.md:2',
        code: 'console.log(a); // 1\nb();\nconsole.log(\n',
        prints: ['1'],
        needs: 'nothing',
        isService: false,
      },
    ]);
  });

  it('knows what an example needs by the variables that it reads, and when it must be stopped', () => {
    const block = (code: string) => examplesIn('x.md', `\`\`\`ts\n${code}\n\`\`\`\n`)[0];
    expect(block('process.env.DATABASE_URL')).toMatchObject({ needs: 'PostgreSQL' });
    expect(block('env.DATABASE_URL + env.DIRECT_URL')).toMatchObject({ needs: 'PgBouncer' });
    expect(block('process.env.REDIS_URL')).toMatchObject({ needs: 'Redis' });
    expect(block("process.once('SIGTERM', stop)")).toMatchObject({ isService: true });
  });

  it('finds the blocks that nobody checks', () => {
    const blocks = ['ts', 'js', 'ts no-run', 'sql', 'sql skip', 'sh'].map((language) => {
      return `\`\`\`${language}\n${language}\n\`\`\`\n`;
    });
    const codes = uncheckedIn('x.md', blocks.join('')).map(({ code }) => code);
    expect(codes).toEqual(['js\n', 'ts no-run\n', 'sql skip\n']);
  });

  it('tells a kept promise from a broken one', () => {
    expect(isPrinted('a ... (c)', 'x\na bb (c)\n')).toBe(true);
    expect(isPrinted('a ... (c)', 'x\nb bb (c)\n')).toBe(false);
  });
});

function needing(need: Need): Written[] {
  return examples.filter(({ needs }) => needs === need);
}

/** Runs it in an empty folder of its own, where it may make files. */
async function expectToWork(example: Written, env: Record<string, string> = {}): Promise<void> {
  const { file, prints, isService } = example;
  const home = mkdtempSync(join(tmpdir(), 'redrive-docs-'));
  try {
    const running = run(process.execPath, [file], {
      cwd: home,
      timeout: 60_000,
      env: { ...process.env, ...env },
    });
    if (isService) stopWhenSaid(running.child, prints);
    const { stdout } = await running;
    for (const promise of prints) {
      const message = `${promise}\nwas promised, but printed was\n${stdout}`;
      expect(isPrinted(promise, stdout), message).toBe(true);
    }
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** Once: a second signal would mean that somebody is in a hurry. */
function stopWhenSaid(child: ChildProcess, prints: readonly string[]): void {
  let soFar = '';
  child.stdout?.on('data', (text: string) => {
    soFar += text;
    if (!child.killed && prints.every((promise) => isPrinted(promise, soFar)))
      child.kill('SIGTERM');
  });
}

/** The compiler speaks of the copies; a reader wants the page. */
function namePages(output: string): string {
  return output.replaceAll(/\S*example-(\d+)\.ts/g, (_, i) => examples[Number(i)]?.at ?? '');
}
