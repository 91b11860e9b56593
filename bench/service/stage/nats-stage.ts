import { jetstream, jetstreamManager, RetentionPolicy } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { type NatsServer, startNats } from '@redrive/services';
import { cpuMs } from '../../engine/cpu.ts';
import { Grounds, type Place } from '../../engine/grounds.ts';
import { Arrivals } from './arrivals.ts';
import { numberOf } from './messages.ts';
import { untilNumber } from './sql.ts';
import { LONGEST_MS } from './stage.ts';

/** The stream that the service makes. */
const RETRIES = 'REDRIVE_RETRIES';
const WORK = 'WORK';
const AT_ONCE = 500;

/** A real NATS server and a real PostgreSQL, with empty streams and an empty database for each turn. */
export class NatsStage implements AsyncDisposable {
  readonly #grounds = new Grounds();
  #server: NatsServer | undefined;
  #connection: NatsConnection | undefined;

  async place(): Promise<NatsPlace> {
    this.#server ??= await startNats();
    this.#connection ??= await connected(this.#server.url);
    const database = await this.#grounds.place('postgres');
    const manager = await jetstreamManager(this.#connection);
    const retention = RetentionPolicy.Workqueue;
    await manager.streams.add({ name: RETRIES, subjects: ['retries.in'], retention });
    await manager.streams.add({ name: WORK, subjects: ['work.*'] });
    return new NatsPlace(this.#server, this.#connection, database);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection?.close();
    await this.#server?.stop();
    await this.#grounds[Symbol.asyncDispose]();
  }
}

/** What a turn has to itself. */
export class NatsPlace {
  readonly queues = { retry: 'retries.in', work: 'work.a' };
  readonly database: Place;
  readonly #server: NatsServer;
  readonly #connection: NatsConnection;

  constructor(server: NatsServer, connection: NatsConnection, database: Place) {
    this.#server = server;
    this.#connection = connection;
    this.database = database;
  }

  get env(): Record<string, string> {
    return {
      NATS_URL: this.#server.url,
      NATS_RETRY_SUBJECT: this.queues.retry,
      DATABASE_URL: this.database.address,
    };
  }

  /** Hears what is published to the subject that everything goes back to. */
  async listen(): Promise<Arrivals & { close(): Promise<void> }> {
    const arrivals = new Arrivals();
    const subscription = this.#connection.subscribe(this.queues.work, {
      callback: (_, { data }) => arrivals.take(numberOf(Buffer.from(data))),
    });
    await this.#connection.flush();
    return Object.assign(arrivals, { close: () => subscription.drain() });
  }

  /** Puts messages into the stream, and waits until it has them. */
  async put(messages: readonly Buffer[]): Promise<void> {
    const client = jetstream(this.#connection);
    for (let i = 0; i < messages.length; i += AT_ONCE) {
      const some = messages.slice(i, i + AT_ONCE);
      await Promise.all(some.map((one) => client.publish(this.queues.retry, one)));
    }
  }

  async untilSettled(): Promise<void> {
    const text = `SELECT count(*) FROM retry_queue WHERE status = 'pending'`;
    await untilNumber(this.database.address, text, 0, LONGEST_MS);
  }

  cpuMs(): { database: number; broker: number } {
    const { serverPid } = this.database;
    const { pid } = this.#server;
    return { database: serverPid ? cpuMs(serverPid) : 0, broker: pid ? cpuMs(pid) : 0 };
  }

  async remove(): Promise<void> {
    const manager = await jetstreamManager(this.#connection);
    for (const name of [RETRIES, WORK]) await manager.streams.delete(name);
    await this.database.remove();
  }
}

async function connected(url: string): Promise<NatsConnection> {
  const { host, username: user, password: pass } = new URL(url);
  return connect({ servers: host, user, pass });
}
