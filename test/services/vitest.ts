/** Tests against real servers: skipped by name where the server is missing, on an empty database each. */
import { randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { beforeAll, describe } from 'vitest';
import { type PostgresVersion, found, type ServiceName } from './index.ts';
import { sharedServer } from './shared.ts';

export { kafkaClient, type KafkaClient } from './kafka-client.ts';
export { natsClient, type NatsClient } from './nats-client.ts';
export { rabbitmqClient, type RabbitmqClient } from './rabbitmq-client.ts';
export { sharedServer } from './shared.ts';

/** How often somebody is looked for who still uses a database that is to be removed. */
const LOOKS = 50;

export interface Database extends AsyncDisposable {
  readonly url: string;
  /** Cuts the connections that are left and removes it. */
  drop(): Promise<void>;
}

export interface PostgresUnderTest {
  readonly version: PostgresVersion;
  freshDatabase(): Promise<Database>;
}

/** Why tests were skipped: the server they need, and what would bring it. */
export interface MissingService {
  readonly name: ServiceName | 'Cyoda' | 'MongoDB' | 'Bun' | 'Deno';
  readonly why: string;
  readonly wayOut: string;
}

declare module 'vitest' {
  interface TaskMeta {
    missingService?: MissingService;
  }
}

/**
 * A group of tests that need servers. The body runs while tests are collected, also when a server is
 * missing, so that its tests are skipped by name: touch servers in hooks and tests only.
 */
export function describeService(
  names: ServiceName | readonly ServiceName[],
  body: () => void,
): void {
  const all = typeof names === 'string' ? [names] : names;
  const [first] = all.flatMap((name): MissingService[] => {
    const result = found(name);
    return result.state === 'missing' ? [{ name, why: result.why, wayOut: result.wayOut }] : [];
  });
  const isSkipped = first !== undefined && process.env['REDRIVE_REQUIRE_SERVICES'] !== '1';
  // oxlint-disable-next-line vitest/valid-describe-callback, vitest/valid-title -- takes a condition
  const group = describe.skipIf(isSkipped);
  group(`on ${all.join(' and ')}`, { meta: isSkipped ? { missingService: first } : {} }, () => {
    beforeAll(() => {
      if (first) throw new Error(`${first.name} is required: ${first.why}. ${first.wayOut}`);
    });
    body();
  });
}

/** A Cyoda server that somebody else runs: none can be fetched, so nothing requires it. */
export interface CyodaUnderTest {
  /** Of its HTTP API, with the context path: `http://localhost:8080/api`. */
  readonly httpUrl: string;
  /** `grpc://localhost:9090`. */
  readonly grpcUrl: string;
  readonly token: string | undefined;
}

/** Tests that need one: CYODA_TEST_URL, CYODA_TEST_GRPC and, where it wants one, CYODA_TEST_TOKEN name it. */
export function describeCyoda(body: (server: CyodaUnderTest) => void): void {
  const { CYODA_TEST_URL, CYODA_TEST_GRPC, CYODA_TEST_TOKEN: token } = process.env;
  const isMissing = !CYODA_TEST_URL || !CYODA_TEST_GRPC;
  const missingService: MissingService = {
    name: 'Cyoda',
    why: 'CYODA_TEST_URL and CYODA_TEST_GRPC name no server',
    wayOut: 'start a Cyoda server and set both',
  };
  // oxlint-disable-next-line vitest/valid-describe-callback, vitest/valid-title -- takes a condition
  const group = describe.skipIf(isMissing);
  const meta = isMissing ? { missingService } : {};
  group('on Cyoda', { meta }, () =>
    body({ httpUrl: CYODA_TEST_URL ?? '', grpcUrl: CYODA_TEST_GRPC ?? '', token }),
  );
}

export interface MongoUnderTest {
  /** Whether it counts every update of concurrent writers. */
  readonly isAtomic: boolean;
  /** The URL of the run's shared one. */
  server(): Promise<string>;
}

/**
 * The same tests on each server that speaks MongoDB's protocol. A mongod cannot be fetched: MONGODB_TEST_URL names one
 * that somebody else runs, and nothing requires it.
 */
export function describeMongo(body: (server: MongoUnderTest) => void): void {
  const standIns = [
    { name: 'MongoDB (mongo-java-server)', isAtomic: true },
    { name: 'FerretDB', isAtomic: false },
  ] as const;
  for (const { name, isAtomic } of standIns) {
    describeService(name, () => body({ isAtomic, server: () => sharedServer(name) }));
  }
  const url = process.env['MONGODB_TEST_URL'];
  const missingService: MissingService = {
    name: 'MongoDB',
    why: 'MONGODB_TEST_URL names no server',
    wayOut: 'start a mongod and set it',
  };
  // oxlint-disable-next-line vitest/valid-describe-callback, vitest/valid-title -- takes a condition
  const group = describe.skipIf(!url);
  group('on MongoDB', { meta: url ? {} : { missingService } }, () =>
    body({ isAtomic: true, server: async () => url ?? '' }),
  );
}

/** For tests that `npm test` leaves out. */
export const everyPostgres: readonly PostgresVersion[] = [15, 18];

/** The same tests on each of these versions of PostgreSQL: the newest in `npm test`, the oldest in `npm run test:long`. */
export function describePostgres(
  body: (postgres: PostgresUnderTest) => void,
  versions: readonly PostgresVersion[] = process.env['REDRIVE_TESTS'] === undefined ? [18] : [15],
): void {
  for (const version of versions) {
    describeService(`PostgreSQL ${version}`, () =>
      body({ version, freshDatabase: () => freshDatabase(version) }),
    );
  }
}

/** An empty database on the run's shared server. */
export async function freshDatabase(version: PostgresVersion): Promise<Database> {
  const serverUrl = await sharedServer(`PostgreSQL ${version}`);
  const name = `test_${randomBytes(8).toString('hex')}`;
  await execute(serverUrl, `CREATE DATABASE ${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  const drop = () => dropDatabase(serverUrl, name);
  return { url: url.href, drop, [Symbol.asyncDispose]: drop };
}

function execute(serverUrl: string, statement: string): Promise<unknown> {
  return connected(serverUrl, (client) => client.query(statement));
}

/** A pool says that it has ended a moment before its connections have, and an error of theirs then would end the test run. */
function dropDatabase(serverUrl: string, name: string): Promise<void> {
  return connected(serverUrl, async (client) => {
    for (let look = 0; look < LOOKS && (await isInUse(client, name)); look++) await setTimeout(10);
    await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  });
}

async function isInUse(client: pg.Client, name: string): Promise<boolean> {
  const text = 'SELECT FROM pg_stat_activity WHERE datname = $1';
  return ((await client.query(text, [name])).rowCount ?? 0) > 0;
}

async function connected<T>(serverUrl: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
