import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isConfigError } from 'redrive';
import { afterAll, describe, expect, it } from 'vitest';
import { fastifyIdempotency } from './adapters/fastify/index.ts';
import { guardedConnections, http } from './adapters/http/index.ts';
import { jsonlFile } from './adapters/jsonl/index.ts';
import { kafka, kafkaDelayQueue } from './adapters/kafka/index.ts';
import { memory, memoryBroker, memoryDelayQueue } from './adapters/memory/index.ts';
import { jetstreamIdempotency, nats, natsAudit } from './adapters/nats/index.ts';
import { otelAudit } from './adapters/opentelemetry/index.ts';
import { pinoAudit } from './adapters/pino/index.ts';
import {
  migratePostgres,
  postgres,
  postgresIdempotency,
  postgresSticky,
} from './adapters/postgres/index.ts';
import { rabbitmq } from './adapters/rabbitmq/index.ts';
import { redisDelayQueue, redisIdempotency, redisSticky } from './adapters/redis/index.ts';
import { sqlite, sqliteIdempotency, sqliteSticky } from './adapters/sqlite/index.ts';
import { storeDelayQueue } from './delay-queue/store/store-queue.ts';
import { createEngine } from './engine.ts';
import { isEngineError } from './errors.ts';
import { createTestBroker, createTestEngine } from './testing/index.ts';

type Call = (options: never) => unknown;

const file = join(mkdtempSync(join(tmpdir(), 'redrive-')), 'tasks.db');
const engine = createEngine({ store: memory() }).handle('mail', () => undefined);
const id = '00000000-0000-4000-8000-000000000000';
const logger = { emit() {}, isLevelEnabled: () => true, flush() {}, info() {} };
const store = memory();

afterAll(() => engine.stop());

/** Every function and method of the engine with options: a misspelt one, and what is meant. */
const options: [name: string, call: Call, slip: object, meant: string][] = [
  ['createEngine', (o) => createEngine(o), { stor: store }, 'store'],
  ['retention', (o) => createEngine({ store, retention: o }), { don: 1 }, 'done'],
  ['inbox', (o) => createEngine({ store, inbox: o }), { onEnter: 1 }, 'onEntry'],
  ['lane', (o) => createEngine({ store, lane: o }), { polcy: {} }, 'policy'],
  ['lanes', (o) => createEngine({ store, lanes: { 'handler:a': o } }), { rat: 1 }, 'rate'],
  ['audit', (o) => createEngine({ store, audit: o }), { sucesses: true }, 'successes'],
  ['handle', (o) => engine.handle('x', o, () => 1), { polcy: {} }, 'policy'],
  ['handle', (o) => engine.handle('x', o, () => 1), { shema: {} }, 'schema'],
  ['submit', (o) => engine.submit('mail', 1, o), { dedupekey: 'k' }, 'dedupeKey'],
  ['submit', (o) => engine.submit('mail', 1, o), { in: '1h' }, 'delay'],
  ['submit', (o) => engine.submit('mail', 1, o), { due_at: 1 }, 'dueAt'],
  ['submit', (o) => engine.submit('mail', 1, o), { run_at: 1 }, 'dueAt'],
  ['submit', (o) => engine.submit('mail', 1, o), { after: '1h' }, 'delay'],
  ['submitMany', (o) => engine.submitMany([], o), { tX: 1 }, 'tx'],
  ['consume', (o) => engine.consume(o), { brokr: 1 }, 'broker'],
  ['cancel', (o) => engine.cancel(id, 'mail', o), { By: 'me' }, 'by'],
  ['expedite', (o) => engine.expedite(id, 'mail', o), { bye: 'me' }, 'by'],
  ['succeeded', (o) => engine.succeeded(id, 'mail', o), { bye: 'me' }, 'by'],
  ['list', (o) => engine.list(o), { limt: 5 }, 'limit'],
  ['lanes', (o) => engine.lanes(o), { stat: 'open' }, 'state'],
  ['auditEvents', (o) => engine.auditEvents(o), { typ: 'x', limit: 1 }, 'type'],
  ['inbox.items', (o) => engine.inbox.items(o), { limt: 5 }, 'limit'],
  ['inbox.groups', (o) => engine.inbox.groups(o), { limt: 5 }, 'limit'],
  ['inbox.replay', (o) => engine.inbox.replay(1, o), { headrs: {} }, 'headers'],
  ['inbox.edit', (o) => engine.inbox.edit(1, {}, o), { bye: 'me' }, 'by'],
  ['inbox.resolve', (o) => engine.inbox.resolve(1, o), { bye: 'me' }, 'by'],
  ['inbox.jobs', (o) => engine.inbox.jobs(o), { befor: 1 }, 'before'],
  ['inbox.members', (o) => engine.inbox.members(1, o), { aftr: 1 }, 'after'],
  ['inbox.replayAll', (o) => engine.inbox.replayAll({ all: true }, o), { canry: 1 }, 'canary'],
  ['memory', (o) => memory(o), { maxtask: 1 }, 'maxTasks'],
  ['memoryBroker', (o) => memoryBroker(o), { queus: [] }, 'queues'],
  ['memoryDelayQueue', (o) => memoryDelayQueue(o), { leasems: 1 }, 'leaseMs'],
  ['sqlite', (o) => sqlite(file, o), { clok: 1 }, 'clock'],
  ['sqliteIdempotency', (o) => sqliteIdempotency(file, o), { clok: 1 }, 'clock'],
  ['sqliteSticky', (o) => sqliteSticky(file, o), { nwo: 1 }, 'now'],
  ['postgres', (o) => postgres(o), { ulr: 'x' }, 'url'],
  ['migratePostgres', (o) => migratePostgres(o), { shema: 'x' }, 'schema'],
  ['postgresIdempotency', (o) => postgresIdempotency(o), { ulr: 'x' }, 'url'],
  ['postgresSticky', (o) => postgresSticky(o), { ulr: 'x' }, 'url'],
  ['http', (o) => http(o), { alow: [] }, 'allow'],
  ['guardedConnections', (o) => guardedConnections(o), { alow: [] }, 'allow'],
  ['jsonlFile', (o) => jsonlFile(o), { pth: 'x' }, 'path'],
  ['kafka', (o) => kafka(o), { broker: 'x' }, 'brokers'],
  ['kafkaDelayQueue', (o) => kafkaDelayQueue(o), { broker: 'x' }, 'brokers'],
  ['nats', (o) => nats(o), { ulr: 'x' }, 'url'],
  ['natsAudit', (o) => natsAudit(logger as never, o), { subjct: 'x' }, 'subject'],
  ['jetstreamIdempotency', (o) => jetstreamIdempotency('nats://h', o), { tokn: 'x' }, 'token'],
  ['otelAudit', (o) => otelAudit(logger, o), { flsh: 1 }, 'flush'],
  ['pinoAudit', (o) => pinoAudit(logger, o), { levl: 'info' }, 'level'],
  ['rabbitmq', (o) => rabbitmq(o), { ulr: 'x' }, 'url'],
  ['redisSticky', (o) => redisSticky(o), { ulr: 'x' }, 'url'],
  ['redisIdempotency', (o) => redisIdempotency('redis://h', o), { prefx: 'x' }, 'prefix'],
  ['redisDelayQueue', (o) => redisDelayQueue(o), { ulr: 'x' }, 'url'],
  ['storeDelayQueue', (o) => storeDelayQueue(store, o), { nam: 'x' }, 'name'],
  ['createTestEngine', (o) => createTestEngine(o), { startat: 1 }, 'startAt'],
];

/** Functions whose first argument is needed. */
const factories: [name: string, call: Call, way: string][] = [
  ['createEngine', (o) => createEngine(o), "sqlite('tasks.db')"],
  ['sqlite', (o) => sqlite(o), "sqlite('tasks.db')"],
  ['sqliteIdempotency', (o) => sqliteIdempotency(o), 'a file: URL'],
  ['sqliteSticky', (o) => sqliteSticky(o), 'a file: URL'],
  ['postgres', (o) => postgres(o), 'postgres://user:password@host/database'],
  ['migratePostgres', (o) => migratePostgres(o), 'postgres://user:password@host/database'],
  ['postgresIdempotency', (o) => postgresIdempotency(o), 'postgres://user:password@host/database'],
  ['postgresSticky', (o) => postgresSticky(o), 'postgres://user:password@host/database'],
  ['jsonlFile', (o) => jsonlFile(o), 'a file: URL'],
  ['kafka', (o) => kafka(o), 'host:port'],
  ['kafkaDelayQueue', (o) => kafkaDelayQueue(o), 'host:port'],
  ['nats', (o) => nats(o), 'nats://user:password@host:port'],
  ['natsAudit', (o) => natsAudit(o), 'await connect(...) first'],
  ['jetstreamIdempotency', (o) => jetstreamIdempotency(o), '@nats-io/transport-node|nats://'],
  ['otelAudit', (o) => otelAudit(o), 'logs.getLogger(name)'],
  ['pinoAudit', (o) => pinoAudit(o), 'a logger of pino'],
  ['rabbitmq', (o) => rabbitmq(o), 'amqp://user:password@host:port/vhost'],
  ['redisSticky', (o) => redisSticky(o), 'redis://'],
  ['redisIdempotency', (o) => redisIdempotency(o), 'redis://host:6379'],
  ['redisDelayQueue', (o) => redisDelayQueue(o), 'url or cluster must be given'],
  ['storeDelayQueue', (o) => storeDelayQueue(o), 'storeDelayQueue('],
  ['fastifyIdempotency', (o) => fastifyIdempotency({} as never, o), 'app.register('],
  ['submitMany', (o) => engine.submitMany(o), 'are a list'],
  ['report', (o) => engine.report(o), 'are a list'],
  ['list', (o) => engine.list(o), 'status, lane, exceptKind, messageId, before, limit'],
  ['auditEvents', (o) => engine.auditEvents(o), 'before, limit, type'],
];

describe('every function and method with options', () => {
  it.each(options)('refuses a misspelt option: %s', async (_, call, slip, meant) => {
    const error = await thrownBy(() => call(slip as never));
    expect([isCoded(error), String(error)]).toEqual([
      true,
      expect.stringContaining(`Did you mean '${meant}'?`),
    ]);
  });

  it.each(options)('refuses null with a coded error: %s', async (name, call) => {
    const error = await thrownBy(() => call(null as never));
    // A part of an engine that is null is one that was not given.
    expect([name, isCoded(error)]).toEqual([name, !['retention', 'inbox', 'lane'].includes(name)]);
  });
});

describe('a function without its first argument', () => {
  it.each(factories)('fails with a code and a way out: %s', async (_, call, way) => {
    for (const nothing of [undefined, null]) {
      const error = await thrownBy(() => call(nothing as never));
      const ways = way.split('|').map((one) => String(error).includes(one));
      expect([isCoded(error), String(error), ways.includes(true)]).toEqual([
        true,
        expect.any(String),
        true,
      ]);
    }
  });
});

describe('createEngine', () => {
  const faultsOf = (given: unknown) => {
    try {
      createEngine(given as never);
    } catch (error) {
      if (isEngineError(error)) return error.faults.map(({ path }) => path);
      throw error;
    }
    return [];
  };

  it('names all faults at once, with their places', async () => {
    const given = {
      stroe: store,
      maxPayload: 5,
      lease: 'soon',
      retention: { done: 'x', retired: 1 },
      inbox: { maxItems: 0 },
      policy: { maxAttempt: 5 },
      policies: { patient: { base: 'x' } },
      lane: { concurrency: 0, policy: { cpa: 1 } },
      lanes: { 'handler:mail': { rate: { perSecnd: 5 } } },
      on: 5,
      brokers: {},
      log: {},
      clock: {},
      audit: 5,
      idempotency: {},
    };
    const paths = [
      'audit',
      'brokers',
      'clock',
      'idempotency',
      'inbox.maxItems',
      'lane.concurrency',
      'lane.policy.cpa',
      'lanes.handler:mail.rate.perSecnd',
      'lease',
      'log',
      'maxPayload',
      'on',
      'policies.patient.base',
      'policy.maxAttempt',
      'retention.done',
      'retention.retired',
      'store',
      'stroe',
    ];
    expect(faultsOf(given).sort()).toEqual(paths);
    const error = await thrownBy(() => createEngine(given as never));
    expect(error).toMatchObject({ code: 'INVALID_ENGINE' });
    expect(String(error)).toContain("stroe: There is no option 'stroe'. Did you mean 'store'?");
    expect(String(error)).toContain('policy.maxAttempt: there is no such field. Did you mean');
  });

  it.each([
    { policies: { a: 5 } },
    { policies: 5 },
    { lanes: { a: null } },
    { deliveries: http },
    { review: {} },
    { random: 1 },
    { defer: 1 },
  ])('refuses a part of the wrong kind: %j', (part) => {
    expect(faultsOf({ store, ...part })).toEqual(Object.keys(part));
  });

  it('refuses the name of a handler for that of its lane, as pause does', async () => {
    const error = await thrownBy(() =>
      createEngine({ store, lanes: { mail: { concurrency: 1 } } }),
    );
    expect(error).toMatchObject({ code: 'INVALID_ENGINE', faults: [{ path: 'lanes.mail' }] });
    expect(String(error)).toContain("'mail' is not a lane. Did you mean 'handler:mail'?");
    const paused = await thrownBy(() => engine.pause('mail'));
    expect(String(paused)).toContain("'mail' is not a lane. Did you mean 'handler:mail'?");
    const url = await thrownBy(() => createEngine({ store, lanes: { 'https://a.test/b': {} } }));
    expect(String(url)).toContain("Did you mean 'https://a.test'?");
  });

  it('names the lane or the handler that has faults', async () => {
    const wrong = { concurrency: 0 };
    const lane = await thrownBy(() => createEngine({ store, lanes: { 'handler:a': wrong } }));
    expect(String(lane)).toContain("The lane 'handler:a' has faults:");
    const all = await thrownBy(() => createEngine({ store, lane: wrong }));
    expect(String(all)).toContain('The option `lane` has faults:');
    const handler = await thrownBy(() => engine.handle('m2', wrong, () => 1));
    expect(String(handler)).toContain("The handler 'm2' has faults:");
  });

  it('says that options come before the function', async () => {
    const late = await thrownBy(() => engine.handle('m3', (() => 1) as never, {} as never));
    expect(String(late)).toContain('Options come before the function: handle(name, options, fn).');
  });

  it('leaves an error with one fault as it is', async () => {
    const error = await thrownBy(() => createEngine({ store, lease: 'soon' } as never));
    expect(isConfigError(error) && error.faults).toMatchObject([{ path: 'lease' }]);
  });
});

describe('a query', () => {
  it.each([
    [{ status: 'pendng', limit: 1 }, 'pending, retried, done, failed, cancelled'],
    [{ lane: 5, limit: 1 }, 'A text of 1 to 500'],
    [{ before: 'x', limit: 1 }, 'before has to be a whole number'],
    [{ messageId: 'x', limit: 1 }, "'x' is not the id of a task"],
    [{}, 'A whole number from 1 to'],
  ])('of tasks is checked: %j', async (query, message) => {
    const error = await thrownBy(() => engine.list(query as never));
    expect([isEngineError(error), String(error)]).toEqual([true, expect.stringContaining(message)]);
  });

  it('of tasks finds an id in capitals', async () => {
    const { id: messageId } = await engine.submit('mail', 1);
    const found = await engine.list({ messageId: messageId.toUpperCase(), limit: 5 });
    expect(found.map((task) => task.messageId)).toEqual([messageId]);
  });

  it('names every misspelt filter', async () => {
    const error = await thrownBy(() => engine.list({ limt: 5, staus: 'done' } as never));
    expect(isEngineError(error) && error.faults.map(({ path }) => path)).toEqual(['limt', 'staus']);
  });

  it.each(['pause', 'resume'] as const)('of who does it is checked: %s', async (action) => {
    const error = await thrownBy(() => engine[action]('handler:mail', { by: 'me' } as never));
    expect(error).toMatchObject({ code: 'INVALID_FILTER' });
  });
});

describe('a source', () => {
  it.each([
    [{}, 'A source needs a broker'],
    [{ broker: createTestBroker() }, 'A source has a name'],
    [{ broker: createTestBroker(), source: 'dead' }, 'needs the function read'],
  ])('is checked when it is named', (source, message) => {
    expect(() => engine.consume(source as never)).toThrow(message);
  });
});

function isCoded(error: unknown): boolean {
  return isConfigError(error) || isEngineError(error);
}

async function thrownBy(call: () => unknown): Promise<unknown> {
  try {
    await call();
  } catch (error) {
    return error;
  }
  return undefined;
}
