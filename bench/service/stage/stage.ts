import amqp, { type ChannelModel } from 'amqplib';
import { type RabbitmqServer, startRabbitmq } from '@redrive/services';
import { cpuMs } from '../../engine/cpu.ts';
import { Grounds, type Place } from '../../engine/grounds.ts';
import { requireServer } from '../../missing.ts';
import { Listener } from './listener.ts';
import { retryMessage } from './messages.ts';
import { untilNumber } from './sql.ts';

/** For what takes seconds on a quiet machine. */
export const LONGEST_MS = 300_000;

export type StoreName = 'postgres' | 'sqlite';

/** Real servers, and empty databases and queues on them. */
export class Stage implements AsyncDisposable {
  readonly #grounds = new Grounds();
  #rabbitmq: Promise<Broker> | undefined;
  #places = 0;

  /** An empty place for one turn: a database (or none, where the service makes its own file), and two queues. */
  async place(store: StoreName = 'postgres'): Promise<TurnPlace> {
    const broker = await (this.#rabbitmq ??= startBroker());
    const database = store === 'postgres' ? await this.#grounds.place('postgres') : undefined;
    const n = ++this.#places;
    const queues = { retry: `retry-${n}`, work: `work-${n}`, review: `review-${n}` };
    const channel = await broker.connection.createChannel();
    for (const name of Object.values(queues)) await channel.assertQueue(name);
    await channel.close();
    return new TurnPlace(broker, database, queues);
  }

  /** Only a database. */
  database(): Promise<Place> {
    return this.#grounds.place('postgres');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const broker = await this.#rabbitmq;
    await broker?.connection.close();
    await broker?.server.stop();
    await this.#grounds[Symbol.asyncDispose]();
  }
}

/** What a turn has to itself. */
export class TurnPlace {
  readonly queues: Readonly<Record<'retry' | 'work' | 'review', string>>;
  readonly database: Place | undefined;
  readonly #broker: Broker;

  constructor(broker: Broker, database: Place | undefined, queues: TurnPlace['queues']) {
    this.#broker = broker;
    this.database = database;
    this.queues = queues;
  }

  /** What tells a contestant where it works. */
  get env(): Record<string, string> {
    return {
      RABBITMQ_URL: this.#broker.server.url,
      RETRY_QUEUE: this.queues.retry,
      MANUAL_REVIEW_QUEUE: this.queues.review,
      ...(this.database ? { DATABASE_URL: this.database.address } : {}),
    };
  }

  /** Somebody who waits at the queue that everything goes back to. */
  listen(onMessage?: (payload: Buffer) => void): Promise<Listener> {
    return Listener.open(this.#broker.connection, this.queues.work, onMessage);
  }

  /** Puts messages into the retry queue as fast as can be, and waits until the broker has them. */
  async put(messages: readonly Buffer[]): Promise<void> {
    const channel = await this.#broker.connection.createConfirmChannel();
    for (const [i, message] of messages.entries()) {
      channel.sendToQueue(this.queues.retry, message, properties);
      // Lets the socket have its share.
      if (i % 500 === 499) await new Promise(setImmediate);
    }
    await channel.waitForConfirms();
    await channel.close();
  }

  /** Puts them in one after the other, each at its time after the start. */
  async putEvenly(count: number, spanMs: number, delayMs: number): Promise<void> {
    const channel = await this.#broker.connection.createConfirmChannel();
    const startMs = Date.now();
    for (let n = 0; n < count;) {
      const due = Math.min(count, Math.ceil(((Date.now() - startMs) * count) / spanMs));
      for (; n < due; n++) {
        const message = retryMessage(this.queues.work, n, Date.now() + delayMs);
        channel.sendToQueue(this.queues.retry, message, properties);
      }
      await new Promise((resolve) => {
        setTimeout(resolve, 2);
      });
    }
    await channel.waitForConfirms();
    await channel.close();
  }

  /** Messages that are with the broker still, delivered ones without acknowledgement included. */
  async left(): Promise<number> {
    const table = await this.#broker.server.ctl('list_queues', 'name', 'messages');
    const row = table.split('\n').find((line) => line.startsWith(`${this.queues.retry}\t`));
    if (!row) throw new Error(`the broker does not list ${this.queues.retry}`);
    return Number(row.split('\t')[1]);
  }

  /** Waits until so many rows of the table are as the condition says. */
  async untilRows(condition: string, count: number): Promise<void> {
    const text = `SELECT count(*) FROM retry_queue WHERE ${condition}`;
    await untilNumber(this.database!.address, text, count, LONGEST_MS);
  }

  async untilSettled(): Promise<void> {
    await this.untilRows(`status = 'pending'`, 0);
  }

  /** What the servers have used of the processors so far. */
  cpuMs(): { database: number; broker: number } {
    const { database } = this;
    return {
      database: database?.serverPid ? cpuMs(database.serverPid) : 0,
      broker: cpuMs(this.#broker.pid),
    };
  }

  async remove(): Promise<void> {
    const channel = await this.#broker.connection.createChannel();
    for (const name of Object.values(this.queues)) await channel.deleteQueue(name);
    await channel.close();
    await this.database?.remove();
  }
}

const properties = { persistent: true, contentType: 'application/json' };

interface Broker {
  server: RabbitmqServer;
  connection: ChannelModel;
  pid: number;
}

async function startBroker(): Promise<Broker> {
  requireServer('RabbitMQ');
  const server = await startRabbitmq();
  const pid = Number((await server.ctl('eval', 'os:getpid().')).replace(/\D/g, ''));
  return { server, connection: await amqp.connect(server.url), pid };
}
