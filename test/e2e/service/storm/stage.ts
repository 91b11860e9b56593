/** Servers of the storm's own, the service in front of them, and everything that can be done to either. */
import {
  type PostgresServer,
  type Proxy,
  type RabbitmqServer,
  startPostgres,
  startProxy,
  startRabbitmq,
} from '@redrive/services';
import { join } from 'node:path';
import pg from 'pg';
import { type Counters, countersIn, sum } from './counters.ts';
import { type Cutter, startCutter } from './cutter.ts';
import { type Env, Instance } from './instance.ts';
import { BASE_DELAY_MS, MAX_DELAY_MS } from './plans.ts';

/** What one process has compiled the next one need not. */
const compileCache = join(import.meta.dirname, '../../../../node_modules/.cache/storm');

export class Stage implements AsyncDisposable {
  readonly rabbitmq: RabbitmqServer;
  readonly postgres: PostgresServer;
  /** Between the service and its servers: proxies that cut between bytes, and cutters behind them that lose answers. */
  readonly ways: { broker: Proxy; database: Proxy; brokerAnswers: Cutter; databaseAnswers: Cutter };
  /** What could not be read when a process was to be ended. */
  readonly faults: string[] = [];
  readonly pool: pg.Pool;
  readonly #counters: Counters[] = [];
  /** Of processes that are gone. */
  readonly #lines: string[] = [];
  readonly #services = new Set<Instance>();

  private constructor(parts: Pick<Stage, 'rabbitmq' | 'postgres' | 'ways'>) {
    this.rabbitmq = parts.rabbitmq;
    this.postgres = parts.postgres;
    this.ways = parts.ways;
    this.pool = new pg.Pool({ connectionString: parts.postgres.url, max: 2 });
    // A connection that a restart ends while nobody uses it.
    this.pool.on('error', () => undefined);
  }

  static async open(): Promise<Stage> {
    await using made = new AsyncDisposableStack();
    const [rabbitmq, postgres] = await Promise.all([
      startRabbitmq().then((server) => made.use(server)),
      startPostgres({ version: 18 }).then((server) => made.use(server)),
      warmUp(),
    ]);
    const brokerAnswers = made.use(await startCutter(rabbitmq.url));
    const databaseAnswers = made.use(await startCutter(postgres.url));
    const broker = made.use(await startProxy(brokerAnswers.url));
    const database = made.use(await startProxy(databaseAnswers.url));
    const ways = { broker, database, brokerAnswers, databaseAnswers };
    const stage = new Stage({ rabbitmq, postgres, ways });
    made.move();
    return stage;
  }

  /** One more process; it may not be ready yet. */
  start(env: Env = {}): Promise<Instance> {
    const { broker, database } = this.ways;
    return this.#start({ RABBITMQ_URL: broker.url, DATABASE_URL: database.url, ...env });
  }

  /** One without servers: its tasks are in a file of this folder. */
  startOnFile(folder: string): Promise<Instance> {
    return this.#start({ REDRIVE_DATA_DIR: folder });
  }

  async #start(env: Env): Promise<Instance> {
    const service = await Instance.start({
      BASE_DELAY_MS: String(BASE_DELAY_MS),
      MAX_DELAY_MS: String(MAX_DELAY_MS),
      NODE_COMPILE_CACHE: compileCache,
      ...env,
    });
    this.#services.add(service);
    return service;
  }

  /** At once, in the midst of whatever it does. What it has counted is kept. */
  async kill(service: Instance): Promise<void> {
    await this.#keepCounters(service);
    await this.#remove(service);
  }

  async stop(service: Instance): Promise<number | NodeJS.Signals> {
    await this.#keepCounters(service);
    const code = await service.stop();
    await this.#remove(service);
    return code;
  }

  /** Of all processes together, those that are gone included. */
  async counters(): Promise<Counters> {
    const alive = await Promise.all([...this.#services].map(readCounters));
    return [...this.#counters, ...alive].reduce(sum);
  }

  /** What all processes have said, by the sentence, and how often. */
  get said(): ReadonlyMap<string, number> {
    const said = new Map<string, number>();
    const lines = [...this.#services].flatMap((service) => service.lines);
    for (const line of [...this.#lines, ...lines]) {
      const { level, msg } = JSON.parse(line) as { level: string; msg: string };
      said.set(`${level}: ${msg}`, (said.get(`${level}: ${msg}`) ?? 0) + 1);
    }
    return said;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { broker, database, brokerAnswers, databaseAnswers } = this.ways;
    await Promise.all([...this.#services].map((service) => service[Symbol.asyncDispose]()));
    await this.pool.end();
    for (const one of [broker, database, brokerAnswers, databaseAnswers]) {
      await one[Symbol.asyncDispose]();
    }
    await Promise.all([this.rabbitmq.stop(), this.postgres.stop()]);
  }

  async #remove(service: Instance): Promise<void> {
    await service[Symbol.asyncDispose]();
    this.#services.delete(service);
    this.#lines.push(...service.lines);
  }

  async #keepCounters(service: Instance): Promise<void> {
    try {
      this.#counters.push(await readCounters(service));
    } catch (error) {
      // It must live until it is ended.
      this.faults.push(
        `a service did not answer before it was ended: ${String(error)}\n${service.lines.slice(-5).join('\n')}`,
      );
    }
  }
}

async function readCounters(service: Instance): Promise<Counters> {
  return countersIn(await service.metricsPage());
}

/** A process that is killed leaves nothing in the cache; this one ends in order, though it never finds its servers. */
async function warmUp(): Promise<void> {
  await using service = await Instance.start({
    RABBITMQ_URL: 'amqp://127.0.0.1:1',
    DATABASE_URL: 'postgres://nobody:none@127.0.0.1:1/none',
    NODE_COMPILE_CACHE: compileCache,
  });
  await service.stop();
}
