import { randomUUID } from 'node:crypto';
import {
  appendFileSync,
  chmodSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sqlite } from '@redrive/engine/sqlite';
import { createEngine } from '@redrive/engine';
import { migratePostgres } from '@redrive/engine/postgres';
import { startRabbitmq } from '@redrive/services';
import { describePostgres, describeService, sharedServer } from '@redrive/services/vitest';
import amqp from 'amqplib';
import pg from 'pg';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { SettingsReading } from '../settings/read.ts';
import { readSettings } from '../settings/read.ts';
import type { Settings } from '../settings/settings.ts';
import { examineBroker } from './doctor-broker.ts';
import { examineDisk } from './doctor-disk.ts';
import { clockSkew, diskRoom } from './doctor-host.ts';
import { examineStore } from './doctor-store.ts';
import { examineEverything, type ServerAnswer } from './doctor.ts';
import type { Finding } from './finding.ts';

let folder: string;
let dataDir: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-doctor-'));
  dataDir = folder;
  chmodSync(folder, 0o700);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('the whole examination', () => {
  const away = (): Promise<ServerAnswer> => Promise.resolve({ type: 'away', why: 'UNAVAILABLE' });

  it('puts the worst first, and goes on where the configuration is faulty', async () => {
    const reading = await read({ HTTP_PORT: 'x', DEFAULT_MAX_RETRIES: '-1' });
    const findings = await look(reading, away);
    expect(findings.map(({ level, about }) => `${level} ${about}`)).toEqual([
      'broken configuration',
      'broken configuration',
      'warning server',
    ]);
    expect(findings[0]!.what).toContain('HTTP_PORT');
  });

  it('names the Cyoda server that is configured', async () => {
    const findings = await look(await read({ CYODA_URL: 'grpc://localhost:9090' }), away);
    const { what } = findings.find(({ about }) => about === 'configuration')!;
    expect(what).toMatch(/127\.0\.0\.1:8086, Cyoda at grpc:\/\/localhost:9090\.$/);
  });

  it('finds nothing where all is well', async () => {
    const ready = (): Promise<ServerAnswer> =>
      Promise.resolve({
        type: 'answers',
        ready: true,
        checks: [{ name: 'store', ok: true }],
        clockAheadMs: 0,
        unserved: [],
        blocked: [],
        paused: [],
      });
    const findings = await look(await read({}), ready);
    // How full the disk of this machine is, is another matter.
    const rest = findings.filter(({ about }) => about !== 'disk');
    expect(rest.filter(({ level }) => level === 'broken' || level === 'warning')).toEqual([]);
    expect(findings.map(({ about }) => about).toSorted()).toEqual([
      'broker',
      'clock',
      'configuration',
      'database',
      'disk',
      'server',
    ]);
  });

  it('says what a server that is not ready says, and what it warns of', async () => {
    const notReady = (): Promise<ServerAnswer> =>
      Promise.resolve({
        type: 'answers',
        ready: false,
        checks: [
          { name: 'store', ok: false, detail: 'It gave no answer.' },
          { name: 'inbox', ok: true, detail: 'It is full.' },
          { name: 'broker', ok: true },
        ],
        clockAheadMs: -10_000,
        unserved: [],
        blocked: [],
        paused: [],
      });
    const findings = await look(await read({}), notReady);
    expect(findings.filter(({ about }) => about === 'server')).toEqual([
      { about: 'server', level: 'broken', what: 'store: It gave no answer.' },
      { about: 'server', level: 'warning', what: 'inbox: It is full.' },
    ]);
    expect(findings).toContainEqual(
      expect.objectContaining({
        about: 'clock',
        what: expect.stringContaining('10 s behind ours'),
      }),
    );
  });

  it('warns of what waits for a broker that nobody has named', async () => {
    const answer: ServerAnswer = {
      type: 'answers',
      ready: true,
      checks: [],
      clockAheadMs: 0,
      unserved: ['queue:a', 'queue:b', 'queue:c', 'queue:d', 'handler:a'].map((lane) => {
        return { lane, isDue: false };
      }),
      blocked: [],
      paused: [],
    };
    const waiting = await look(await read({}), () => Promise.resolve(answer));
    expect(waiting[0]).toMatchObject({
      about: 'broker',
      level: 'warning',
      what: 'Nobody delivers to queue:a, queue:b, queue:c and 1 more: what is sent there waits.',
      advice: expect.stringContaining('RABBITMQ_URL'),
    });
    // Another instance may see to it.
    const reading = await read({ RABBITMQ_URL: 'amqp://127.0.0.1:9' });
    const named = await look(reading, () => Promise.resolve(answer));
    expect(named.filter(({ what }) => what.startsWith('Nobody delivers'))).toEqual([]);
  });

  it('warns of due tasks whose handler may be misspelt, and notes those of other handlers', async () => {
    const lanes = { invocie: true, invoice: false, reports: true, 'later-on': false };
    const answer: ServerAnswer = {
      type: 'answers',
      ready: true,
      checks: [],
      clockAheadMs: 0,
      unserved: Object.entries(lanes).map(([name, isDue]) => ({ lane: `handler:${name}`, isDue })),
      blocked: [],
      paused: [],
    };
    const findings = await look(await read({}), () => Promise.resolve(answer));
    expect(findings.filter(({ about }) => about === 'handlers')).toEqual([
      {
        about: 'handlers',
        level: 'warning',
        what: "Tasks for the handler 'invocie' are due, and nobody has taken them yet. Did you mean 'invoice'?",
        advice: expect.stringContaining('redrive list --lane handler:invocie'),
      },
      {
        about: 'handlers',
        level: 'note',
        what: "Tasks for the handler 'reports' are due, and nobody has taken them yet.",
        advice: expect.stringContaining('Start the process that has this handler'),
      },
    ]);
    expect(findings.filter(({ what }) => what.startsWith('Nobody delivers'))).toEqual([]);
  });

  it('warns of a paused lane in which tasks are due', async () => {
    const answer: ServerAnswer = {
      type: 'answers',
      ready: true,
      checks: [],
      clockAheadMs: 0,
      unserved: [{ lane: 'nats:x', isDue: true }],
      blocked: [],
      paused: [{ lane: 'queue:orders', by: 'ann' }],
    };
    const findings = await look(await read({}), () => Promise.resolve(answer));
    expect(findings).toContainEqual({
      about: 'lanes',
      level: 'warning',
      what: 'queue:orders is paused by ann, and tasks there are due.',
      advice: 'If it should deliver again: redrive lanes resume queue:orders',
    });
    // A command of an advice can be copied as it stands.
    expect(findings.map(({ advice = '' }) => advice)).toContainEqual(
      expect.stringMatching(/Set NATS_URL .* redrive list --lane nats:x$/),
    );
  });

  it.each([
    ['28P01', 'refuses the user or the password.'],
    ['3D000', 'has no such database.'],
  ])('says what PostgreSQL refuses: %s', async (code, what) => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.on('data', (bytes) => {
        if (bytes.length === 8) return void socket.write('N');
        const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0Mno\0\0`);
        const head = Buffer.alloc(5);
        head.write('E');
        head.writeInt32BE(fields.length + 4, 1);
        socket.end(Buffer.concat([head, fields]));
      });
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const { port } = server.address() as AddressInfo;
    const databaseUrl = `postgres://ann:geheim@127.0.0.1:${port}/redrive`;
    const [found] = await examineStore({ databaseUrl, dataDir });
    server.close();
    expect(found).toMatchObject({ level: 'broken', what: expect.stringContaining(what) });
    expect(JSON.stringify(found)).not.toMatch(/cannot be reached|geheim/);
  });

  it('warns of tasks that wait behind items of the inbox', async () => {
    const answer: ServerAnswer = {
      type: 'answers',
      ready: true,
      checks: [],
      clockAheadMs: 0,
      unserved: [],
      blocked: [{ lane: 'queue:orders', tasks: 6247, items: 31 }],
      paused: [],
    };
    const findings = await look(await read({}), () => Promise.resolve(answer));
    expect(findings).toContainEqual({
      about: 'inbox',
      level: 'warning',
      what: 'queue:orders: 6,247 tasks waiting behind 31 open items of the inbox, of the same ordering keys.',
      advice: 'Replay, resolve or discard the items: redrive review list --lane queue:orders',
    });
  });

  it('survives a look that fails', async () => {
    const reading = await read({ REDRIVE_DATA_DIR: folder });
    writeFileSync(join(folder, 'redrive.db'), 'this is no database at all, but a text');
    const findings = await look(reading, away);
    expect(findings[0]).toMatchObject({ about: 'database', level: 'broken' });
    expect(findings[0]!.what).toContain('redrive.db');
  });

  function look(
    reading: SettingsReading,
    askServer: () => Promise<ServerAnswer>,
  ): Promise<Finding[]> {
    return examineEverything({ reading, serverUrl: 'http://127.0.0.1:8086', askServer });
  }

  function read(env: Record<string, string>): Promise<SettingsReading> {
    return readSettings({ env: { REDRIVE_DATA_DIR: dataDir, ...env }, cwd: folder });
  }
});

describe('the file', () => {
  it('is not there before the first start', async () => {
    expect(await examineStore({ dataDir })).toMatchObject([{ level: 'note' }]);
  });

  it('is counted and measured', async () => {
    await fill(2);
    expect(await examineStore({ dataDir })).toEqual([
      {
        about: 'database',
        level: 'fine',
        what: expect.stringMatching(
          /redrive\.db answers: \d+ KiB, tasks that wait: 2, open items: 0\.$/,
        ),
      },
    ]);
  });

  it('may have no tables yet', async () => {
    writeFileSync(join(dataDir, 'redrive.db'), '');
    expect(await examineStore({ dataDir })).toContainEqual(
      expect.objectContaining({
        level: 'note',
        what: expect.stringContaining('has no tables yet'),
      }),
    );
  });

  it('has a copy beside it that was made when it was lost, and nobody delivers that', async () => {
    const copy = join(dataDir, 'redrive.db.rescued-20260301T123005Z');
    writeFileSync(copy, '');
    // What SQLite keeps beside the copy is no copy.
    writeFileSync(`${copy}-wal`, '');
    const warning = { level: 'warning', what: expect.stringContaining(`${copy} is a copy`) };
    for (const isThere of [false, true]) {
      if (isThere) await fill(1);
      const findings = await examineStore({ dataDir });
      expect(findings.filter(({ what }) => what.includes('rescued'))).toMatchObject([warning]);
    }
  });

  it('is not changed by the look', async () => {
    await fill(1);
    const before = readdirSync(dataDir);
    await examineStore({ dataDir });
    expect(readdirSync(dataDir)).toEqual(before);
  });

  it('may be damaged', async () => {
    await fill(200);
    const file = join(dataDir, 'redrive.db');
    truncateSync(file, 8192);
    expect((await examineStore({ dataDir }))[0]).toMatchObject({
      about: 'database',
      level: 'broken',
    });
  });

  it('is for its owner alone', async () => {
    await fill(1);
    chmodSync(folder, 0o755);
    expect(await examineStore({ dataDir })).toContainEqual(
      expect.objectContaining({ level: 'warning', advice: `chmod 700 ${folder}` }),
    );
  });

  it('may have a log that was never folded back', async () => {
    await fill(1);
    const log = join(dataDir, 'redrive.db-wal');
    appendFileSync(log, '');
    truncateSync(log, 300 * 1024 * 1024);
    expect(await examineStore({ dataDir })).toContainEqual(
      expect.objectContaining({
        level: 'warning',
        what: expect.stringMatching(/^The log beside .* has 300 MiB/),
      }),
    );
  });

  it('may have much that is free', async () => {
    await fill(0);
    const { DatabaseSync } = await import('node:sqlite');
    const db = new DatabaseSync(join(dataDir, 'redrive.db'));
    db.exec(
      `CREATE TABLE filler (bytes BLOB); INSERT INTO filler VALUES (zeroblob(${100 * 1024 * 1024})); DROP TABLE filler`,
    );
    db.close();
    expect(await examineStore({ dataDir })).toContainEqual(
      expect.objectContaining({
        level: 'warning',
        what: expect.stringMatching(/^100 MiB of .* hold nothing/),
      }),
    );
  });
});

describePostgres(({ freshDatabase }) => {
  it('has no tables before the first start, and has them then', async () => {
    await using database = await freshDatabase();
    const before = await examineStore({ dataDir, databaseUrl: database.url });
    expect(before).toContainEqual(
      expect.objectContaining({ level: 'note', what: 'There are no tables yet.' }),
    );
    expect(before.filter(({ level }) => level === 'broken')).toEqual([]);
    await migratePostgres(database.url);
    const after = await examineStore({ dataDir, databaseUrl: database.url });
    expect(after).toContainEqual(
      expect.objectContaining({
        level: 'fine',
        what: expect.stringMatching(/^PostgreSQL .* at .* answers: [\d.]+ [KM]iB in \d+ tables/),
      }),
    );
    expect(after).toContainEqual(expect.objectContaining({ about: 'clock', level: 'fine' }));
    expect(after.filter(({ level }) => level === 'broken' || level === 'warning')).toEqual([]);
  });

  it('may be set up so that things get lost', async () => {
    await using database = await freshDatabase();
    await migratePostgres(database.url);
    const admin = new pg.Client(database.url);
    await admin.connect();
    const name = new URL(database.url).pathname.slice(1);
    await admin.query(`ALTER DATABASE ${name} SET synchronous_commit = off`);
    await admin.end();
    expect(await examineStore({ dataDir, databaseUrl: database.url })).toContainEqual(
      expect.objectContaining({
        level: 'broken',
        what: expect.stringContaining('synchronous_commit is off'),
      }),
    );
  });

  it('leaves what is in the file to nobody', async () => {
    await using database = await freshDatabase();
    await fill(3);
    expect(await examineStore({ dataDir, databaseUrl: database.url })).toContainEqual(
      expect.objectContaining({
        level: 'warning',
        what: expect.stringContaining('still has 3 tasks'),
        advice: expect.stringContaining('redrive move'),
      }),
    );
  });

  it('may be away, and no password is told', async () => {
    await using database = await freshDatabase();
    const url = new URL(database.url);
    url.username = 'ann';
    url.password = 'geheim';
    url.pathname = '/nowhere';
    const findings = await examineStore({ dataDir, databaseUrl: url.href });
    expect(findings).toMatchObject([{ level: 'broken', about: 'database' }]);
    expect(JSON.stringify(findings)).not.toContain('geheim');
  });
});

const queues = {
  queueType: 'classic',
  retryQueue: 'retry.scheduled',
  manualReviewQueue: 'manual-review.pending',
  deadLetterExchange: 'dlx',
  deadLetterBindings: ['#'],
} as const satisfies Partial<Settings>;

describe('the broker', () => {
  it('need not be there', async () => {
    expect(await examineBroker(queues)).toMatchObject([{ about: 'broker', level: 'note' }]);
  });

  it('may be away, and no password is told', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => {
      server.close(resolve);
    });
    const findings = await examineBroker({
      ...queues,
      rabbitmqUrl: `amqp://ann:geheim@127.0.0.1:${port}`,
    });
    expect(findings).toMatchObject([
      { level: 'broken', what: expect.stringContaining('(ECONNREFUSED)') },
    ]);
    expect(JSON.stringify(findings)).not.toContain('geheim');
  });
});

describeService('RabbitMQ', () => {
  /** On a server that others use too. */
  const own = randomUUID();
  const mine = {
    ...queues,
    retryQueue: `retry.${own}`,
    manualReviewQueue: `review.${own}`,
    deadLetterExchange: `dlx.${own}`,
  };
  let url: string;

  beforeAll(async () => {
    url = await sharedServer('RabbitMQ');
  }, 60_000);

  it('is looked at: what is missing, what waits, who listens', async () => {
    expect(await look()).toEqual([
      expect.stringMatching(/^fine RabbitMQ \d\S* at amqp:\/\/.* lets us in\.$/),
      'note The exchange dlx is not there yet.',
      'note The queue retry is not there yet.',
      'note The queue review is not there yet.',
    ]);

    const model = await amqp.connect(url);
    const channel = await model.createConfirmChannel();
    await channel.assertExchange(mine.deadLetterExchange, 'topic', { autoDelete: true });
    for (const name of [mine.retryQueue, mine.manualReviewQueue]) {
      await channel.assertQueue(name, { durable: false, exclusive: false });
    }
    channel.sendToQueue(mine.retryQueue, Buffer.from('x'));
    for (let i = 0; i < 10_000; i++) channel.sendToQueue(mine.manualReviewQueue, Buffer.from('x'));
    await channel.waitForConfirms();
    expect((await look()).slice(1)).toEqual([
      'warning retry has 1 message ready and 0 consumers: what comes in waits.',
      'warning review has 10,000 messages ready and 0 consumers.',
    ]);

    await channel.purgeQueue(mine.retryQueue);
    await channel.purgeQueue(mine.manualReviewQueue);
    await channel.consume(mine.manualReviewQueue, () => undefined);
    expect((await look()).slice(1)).toEqual([
      'note retry has 0 messages ready and 0 consumers: no instance takes in from there now.',
      'fine review has 0 messages ready and 1 consumer.',
    ]);

    await channel.consume(mine.retryQueue, () => undefined);
    expect((await look())[1]).toBe('fine retry has 0 messages ready and 1 consumer.');
    for (const name of [mine.retryQueue, mine.manualReviewQueue]) await channel.deleteQueue(name);
    await channel.deleteExchange(mine.deadLetterExchange);
    await model.close();
  });

  it('holds messages that were too large to be stored, which somebody has to take out', async () => {
    // Its own server: the queue has one name for everybody.
    await using server = await startRabbitmq();
    const model = await amqp.connect(server.url);
    const channel = await model.createConfirmChannel();
    const said = async () =>
      (await examineBroker({ ...mine, rabbitmqUrl: server.url })).filter(({ what }) =>
        what.includes('redrive.oversized'),
      );
    expect(await said()).toEqual([]);
    await channel.assertQueue('redrive.oversized', { durable: true });
    expect(await said()).toEqual([]);
    for (let n = 0; n < 2; n++) channel.sendToQueue('redrive.oversized', Buffer.from('x'));
    await channel.waitForConfirms();
    expect(await said()).toMatchObject([
      {
        level: 'warning',
        what: 'redrive.oversized has 2 messages over 16 MiB, which Redrive does not store or retry.',
        advice: expect.stringContaining('Take them out'),
      },
    ]);
    await model.close();
  }, 60_000);

  it('may refuse the user', async () => {
    const wrong = new URL(url);
    wrong.username = 'ann';
    wrong.password = 'geheim';
    const findings = await examineBroker({ ...mine, rabbitmqUrl: wrong.href });
    expect(findings).toMatchObject([
      { level: 'broken', what: expect.stringContaining('refuses the user or the password') },
    ]);
    expect(JSON.stringify(findings)).not.toContain('geheim');
    const elsewhere = await examineBroker({ ...mine, rabbitmqUrl: `${url}/not-there` });
    expect(elsewhere).toMatchObject([
      { what: expect.stringContaining('refuses the virtual host') },
    ]);
  });

  /** Without the queues that have one name everywhere. */
  async function look(): Promise<string[]> {
    const findings = await examineBroker({ ...mine, rabbitmqUrl: url });
    return findings
      .filter(({ what }) => !/redrive\.(dead-letters|oversized)/.test(what))
      .map(({ level, what }) => `${level} ${what.replaceAll(`.${own}`, '')}`);
  }
});

describe('the machine', () => {
  const GiB = 1024 ** 3;

  it('has room, little, or none', () => {
    expect(diskRoom('x', 50 * GiB, 100 * GiB)).toMatchObject({
      level: 'fine',
      what: 'The disk of x has 50 GiB left (50 %).',
    });
    expect(diskRoom('x', 0.5 * GiB, 2 * GiB)).toMatchObject({ level: 'warning' });
    expect(diskRoom('x', 4 * GiB, 1000 * GiB)).toMatchObject({ level: 'warning' });
    expect(diskRoom('x', 1024 * 1024, 1000 * GiB)).toMatchObject({
      level: 'broken',
      what: expect.stringContaining('1 MiB left'),
    });
  });

  it('is looked at where the folder is, or will be', async () => {
    expect(await examineDisk(join(folder, 'not', 'yet'))).toMatchObject({
      what: expect.stringMatching(/ has .* left \(\d+ %\)\.$/),
    });
    writeFileSync(join(folder, 'file'), '');
    expect(await examineDisk(join(folder, 'file', 'below'))).toMatchObject({
      level: 'warning',
      what: expect.stringContaining('(ENOTDIR)'),
    });
  });

  it('has a clock that agrees with others, or not', () => {
    expect(clockSkew('x', 1900)).toMatchObject({ level: 'fine' });
    expect(clockSkew('x', 5000)).toMatchObject({
      level: 'warning',
      what: 'The clock of x is 5 s ahead of ours.',
    });
    expect(clockSkew('x', -3_600_000)).toMatchObject({ level: 'broken' });
  });
});

async function fill(count: number): Promise<void> {
  const engine = createEngine({ store: sqlite(join(dataDir, 'redrive.db')), dispatch: false });
  await engine.start();
  for (let i = 0; i < count; i++)
    await engine.submit({ kind: 'queue', address: 'x' }, 'y'.repeat(1000));
  await engine.stop();
}
