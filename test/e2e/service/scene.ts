/**
 * The world around a service: queues of its own on a real RabbitMQ, a database of its own on a real PostgreSQL, and a
 * client that speaks AMQP, HTTP and SQL, as one in any language would.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { type Database, freshDatabase, sharedServer } from '@redrive/services/vitest';
import amqp, { type ChannelModel, type ConfirmChannel, type Options } from 'amqplib';
import pg from 'pg';
import { afterAll, beforeAll } from 'vitest';
import { Mailbox, type MailboxOptions } from './mailbox.ts';
import { json, type RetryFields } from './retry-wire.ts';
import { type Env, Service } from './service.ts';

/** What is short on purpose: the jitter of up to a second is the contract's. */
const shortDelays = { BASE_DELAY_MS: '50', MAX_DELAY_MS: '1000' };

export interface Review {
  message_id: string;
  original_queue: string | null;
  original_payload: string | null;
  error_reason: string | null;
  retry_count: number | null;
  max_retries: number | null;
  classification: string | null;
  failed_at: string;
}

export interface ReviewMessage {
  body: Review;
  headers: Record<string, unknown>;
}

export class Scene implements AsyncDisposable {
  readonly retryQueue: string;
  readonly reviewQueue: string;
  readonly database: Database;
  /** For what the broker surely allows. */
  readonly channel: ConfirmChannel;
  /** What every service here is started with. */
  readonly env: Env;
  readonly #connection: ChannelModel;
  readonly #sql: pg.Client;
  readonly #names: string[];
  readonly #services: Service[] = [];
  #review: Promise<Mailbox> | undefined;

  private constructor(
    database: Database,
    sql: pg.Client,
    connection: ChannelModel,
    channel: ConfirmChannel,
    env: Env,
  ) {
    this.database = database;
    this.#connection = connection;
    this.channel = channel;
    this.#sql = sql;
    this.retryQueue = env['RETRY_QUEUE'] ?? freshName();
    this.reviewQueue = env['MANUAL_REVIEW_QUEUE'] ?? freshName();
    this.#names = [this.retryQueue, this.reviewQueue];
    this.env = {
      DATABASE_URL: database.url,
      RETRY_QUEUE: this.retryQueue,
      MANUAL_REVIEW_QUEUE: this.reviewQueue,
      ...shortDelays,
      ...env,
    };
  }

  /** Without a service yet. */
  static async prepare(env: Env = {}): Promise<Scene> {
    const url = env['RABBITMQ_URL'] ?? (await sharedServer('RabbitMQ'));
    const [database, connection] = await Promise.all([freshDatabase(18), amqp.connect(url)]);
    const channel = await connection.createConfirmChannel();
    const sql = new pg.Client({ connectionString: database.url });
    await sql.connect();
    return new Scene(database, sql, connection, channel, { ...env, RABBITMQ_URL: url });
  }

  static async open(env: Env = {}): Promise<Scene> {
    const scene = await Scene.prepare(env);
    try {
      await scene.start();
      return scene;
    } catch (error) {
      await scene[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** One more service of this scene. */
  async start(env: Env = {}, ...args: string[]): Promise<Service> {
    const service = await Service.start({ ...this.env, ...env }, ...args);
    this.#services.push(service);
    return service;
  }

  /** The first one. */
  get service(): Service {
    return this.#services[0]!;
  }

  async sql<Row extends object>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    return (await this.#sql.query<Row>(text, [...values])).rows;
  }

  /** A name that nobody has. What is declared under it goes away with the scene. */
  name(): string {
    const name = freshName();
    this.#names.push(name);
    return name;
  }

  /** Also removes this one at the end. */
  owns(name: string): string {
    this.#names.push(name);
    return name;
  }

  /** A new queue with somebody who listens. */
  async queue({ name = this.name(), ...options }: QueueOptions = {}): Promise<Mailbox> {
    await this.channel.assertQueue(name, options);
    return Mailbox.open(this.#connection, name, options);
  }

  /** A queue that nobody reads. */
  async deafQueue(options: Options.AssertQueue = {}): Promise<string> {
    const name = this.name();
    await this.channel.assertQueue(name, options);
    return name;
  }

  /** Sends anything, and waits until the broker has it. */
  put(queue: string, body: Uint8Array, properties: Options.Publish = {}): Promise<void> {
    return this.publish('', queue, body, properties);
  }

  publish(
    exchange: string,
    key: string,
    body: Uint8Array,
    properties: Options.Publish = {},
  ): Promise<void> {
    const content = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    return new Promise((resolve, reject) => {
      this.channel.publish(exchange, key, content, properties, (error) => {
        if (error) reject(new Error('The broker did not take it.', { cause: error }));
        else resolve();
      });
    });
  }

  /** A failure, as JSON, through the retry queue. Answers its id. */
  async retry(fields: Partial<RetryFields>, properties: Options.Publish = {}): Promise<string> {
    const id = fields.message_id ?? randomUUID();
    const body = json({ original_payload: Buffer.from('payload'), ...fields, message_id: id });
    await this.put(this.retryQueue, body, { contentType: 'application/json', ...properties });
    return id;
  }

  /** What the review queue says of a message, for this reason where it may be there for several. */
  review(id: string, reason?: string): Promise<ReviewMessage> {
    return this.#reviewWith(`"message_id":"${id}"`, reason);
  }

  /** The same of one that has no id, by its bytes. */
  reviewOfRaw(raw: Buffer): Promise<ReviewMessage> {
    return this.#reviewWith(`"original_payload":"${raw.toString('base64')}"`);
  }

  async #reviewWith(part: string, reason?: string): Promise<ReviewMessage> {
    const mailbox = await (this.#review ??= Mailbox.open(this.#connection, this.reviewQueue));
    const { content, headers } = await mailbox.first(
      (letter) =>
        letter.content.includes(part) &&
        (reason === undefined || letter.headers['x-review-reason'] === reason),
    );
    return { body: JSON.parse(content.toString()) as Review, headers };
  }

  /** A channel of its own, for what the broker may close it for. */
  async riskyChannel(): Promise<ConfirmChannel> {
    const channel = await this.#connection.createConfirmChannel();
    channel.on('error', () => undefined);
    return channel;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const service of this.#services) await service[Symbol.asyncDispose]();
    for (const name of this.#names) {
      await this.channel.deleteQueue(name);
      await this.channel.deleteExchange(name);
    }
    await this.#connection.close();
    await this.#sql.end();
    await this.database.drop();
  }
}

/** For a test that starts services itself: a machine may have other things to do. */
export const SLOW = { timeout: 60_000 };

/** Has the servers started before the clock of a test runs. */
export function useServers(): void {
  beforeAll(async () => {
    await Promise.all([sharedServer('RabbitMQ'), sharedServer('PostgreSQL 18')]);
  }, SLOW.timeout);
}

/** One scene for all tests of a group. */
export function useScene(open: () => Promise<Scene> = () => Scene.open()): () => Scene {
  let scene: Scene | undefined;
  beforeAll(async () => {
    scene = await open();
  }, SLOW.timeout);
  afterAll(async () => {
    await scene?.[Symbol.asyncDispose]();
  }, SLOW.timeout);
  return () => scene!;
}

type QueueOptions = Options.AssertQueue & MailboxOptions & { name?: string };

function freshName(): string {
  return `e2e-${randomBytes(8).toString('hex')}`;
}
