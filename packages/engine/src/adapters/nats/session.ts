import type { NatsConnection } from '@nats-io/transport-node';
import { textOf } from '../../broker/answers.ts';
import { Backoff } from '../../broker/backoff.ts';
import type { StateBoard } from '../../broker/state-board.ts';
import { connectOnce, discoveredBy } from './connect.ts';
import type { StreamConsumer } from './consumer.ts';
import type { NatsSettings } from './options.ts';
import type { Publisher } from './publisher.ts';
import { Streams } from './streams.ts';
import { jetstreamManager, AuthorizationError, PermissionViolationError } from './library.ts';

interface Parts {
  settings: NatsSettings;
  board: StateBoard;
  publisher: Publisher;
  consumers: ReadonlySet<StreamConsumer>;
}

/** How long the server may take to say goodbye. */
const GOODBYE_MS = 2000;

/** From one `open` to its `close`: one connection after the other, and what they bring up and down. */
export class Session {
  readonly #parts: Parts;
  readonly #backoff: Backoff;
  #connection: NatsConnection | undefined;
  #streams: Streams | undefined;
  /** Other servers of the cluster, as the last one told. */
  #discovered: readonly string[] = [];
  #timer: unknown;
  #isClosed = false;
  #hasWarned = false;

  constructor(parts: Parts) {
    const { policy, host } = parts.settings;
    this.#parts = parts;
    this.#backoff = new Backoff(policy, host.clock, host.random);
  }

  /** Tries once, whatever comes of it; then goes on trying behind the scenes. */
  async open(): Promise<void> {
    this.#parts.board.set({ state: 'connecting', why: undefined, isReady: false });
    await this.#try();
  }

  /** There is a connection, and JetStream answers. */
  async attach(consumer: StreamConsumer): Promise<void> {
    if (this.#connection && this.#streams) await consumer.attach(this.#connection, this.#streams);
  }

  async lookUp(subject: string): Promise<boolean> {
    return (await this.#streams?.lookUp(subject))?.type === 'found';
  }

  /** Consumers have stopped before: what they said last is on its way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const { clock } = this.#parts.settings.host;
    clock.clearTimer(this.#timer);
    const connection = this.#connection;
    this.#connection = undefined;
    this.#streams = undefined;
    if (!connection) return;
    let timer: unknown;
    const enough = new Promise<void>((resolve) => {
      timer = clock.setTimer(resolve, GOODBYE_MS);
    });
    const flushed = connection.flush().catch(() => undefined);
    await Promise.race([flushed, enough]);
    await Promise.race([connection.close().catch(() => undefined), enough]);
    clock.clearTimer(timer);
  }

  /** No stream and no API answers: nothing is published until it does. */
  jetStreamAway(why: string): void {
    const connection = this.#connection;
    if (!connection || !this.#streams) return;
    this.#streams = undefined;
    this.#block(connection, why);
  }

  async #try(): Promise<void> {
    let connection: NatsConnection;
    try {
      connection = await connectOnce(this.#parts.settings, this.#discovered);
    } catch (error) {
      if (!this.#isClosed) this.#failed(whyNoConnection(error, this.#parts.settings));
      return;
    }
    if (this.#isClosed) return connection.close();
    this.#connection = connection;
    this.#discovered = discoveredBy(connection);
    void connection.closed().then((error) => this.#ended(connection, error));
    void this.#listen(connection);
    await this.#begin(connection);
  }

  /** Before JetStream answers there is nothing to publish to. */
  async #begin(connection: NatsConnection): Promise<void> {
    const { settings, board, publisher, consumers } = this.#parts;
    const { confirms, connectTimeoutMs, host } = settings;
    const options = { timeout: connectTimeoutMs, checkAPI: false };
    const streams = new Streams(await jetstreamManager(connection, options), settings);
    const trouble = confirms || consumers.size > 0 ? await streams.trouble() : undefined;
    if (this.#connection !== connection) return;
    if (trouble !== undefined && confirms) return this.#block(connection, trouble);
    const fault = await streams.declareAll();
    // One that was closed meanwhile takes no subscription; `#ended` follows.
    if (this.#connection !== connection || connection.isClosed()) return;
    this.#streams = streams;
    publisher.attach(connection, confirms ? streams : undefined);
    board.set({ state: 'connected', why: fault, isReady: true });
    if (this.#hasWarned) host.log.info({}, 'the broker is back');
    this.#hasWarned = false;
    // One that comes meanwhile attaches by itself.
    await Promise.all(Array.from(consumers, (one) => one.attach(connection, streams)));
    if (fault === undefined) this.#backoff.works();
    else this.#later(() => void this.#declareAgain(connection, streams));
  }

  /** What cannot be had now may be had later: somebody makes it, or gives the right to. */
  async #declareAgain(connection: NatsConnection, streams: Streams): Promise<void> {
    const fault = await streams.declareAll();
    if (this.#connection !== connection || this.#streams !== streams) return;
    this.#parts.board.set({ state: 'connected', why: fault, isReady: true });
    if (fault === undefined) this.#backoff.works();
    else this.#later(() => void this.#declareAgain(connection, streams));
  }

  #block(connection: NatsConnection, why: string): void {
    const { publisher, board } = this.#parts;
    publisher.pause(why);
    board.set({ state: 'blocked', why, isReady: false });
    this.#warn(why);
    this.#later(() => void this.#begin(connection));
  }

  /** The server tells of what is forbidden apart from the message that it was about. */
  async #listen(connection: NatsConnection): Promise<void> {
    for await (const status of connection.status()) {
      if (status.type !== 'error' || !(status.error instanceof PermissionViolationError)) continue;
      const { operation, subject } = status.error;
      this.#parts.settings.host.log.warn({ operation, subject }, 'the server does not permit it');
      if (operation === 'publish') this.#parts.publisher.forbidden(subject);
    }
  }

  #ended(connection: NatsConnection, error: unknown): void {
    const reason = error === undefined || error === null ? 'it was closed' : textOf(error);
    const why = `The connection to NATS was lost: ${reason}`;
    const { publisher, consumers } = this.#parts;
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    this.#streams = undefined;
    publisher.detach(why);
    for (const consumer of consumers) consumer.detach(why);
    this.#failed(why);
  }

  #failed(why: string): void {
    this.#parts.board.set({ state: 'connecting', why, isReady: false });
    this.#warn(why);
    this.#later(() => void this.#try());
  }

  /** Once per outage: the rest is repetition. */
  #warn(why: string): void {
    const { log } = this.#parts.settings.host;
    log[this.#hasWarned ? 'debug' : 'warn']({ why }, 'the broker is away: trying again');
    this.#hasWarned = true;
  }

  #later(work: () => void): void {
    const { clock } = this.#parts.settings.host;
    clock.clearTimer(this.#timer);
    this.#timer = clock.setTimer(work, this.#backoff.nextDelayMs());
  }
}

/** For people. No credentials stand in it. */
export function whyNoConnection(error: unknown, { credsFile }: NatsSettings): string {
  if (error instanceof AuthorizationError) {
    return 'NATS refused the credentials: the user and password or the token of the URL, or the file of credentials.';
  }
  const { code } = Object(error) as { code?: unknown };
  if (credsFile !== undefined && (code === 'ENOENT' || code === 'EACCES')) {
    return `The file of credentials ${credsFile} cannot be read (${code}).`;
  }
  return `NATS cannot be reached: ${textOf(error)}`;
}
