import type { Random } from 'redrive';
import type { Hint } from '../../../ports/schedule.ts';
import type { Connections, Dedicated } from './connections.ts';
import { within } from './database.ts';
import { quoteName } from '../names.ts';

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 30_000;
interface ListenerParts {
  connections: Connections;
  channel: string;
  /** Tells this instance's own messages from others'. */
  instance: string;
  timeoutMs: number;
  /** How often to make sure that it still hears. */
  checkEveryMs: number;
  random: Random;
  /** Sends an empty message to a channel, on another connection. */
  send: (channel: string) => Promise<void>;
  hear: (hint: Hint) => void;
  /** Once per outage: without notifications the store is only slower, since everybody polls too. */
  report: (what: string, error: unknown) => void;
}

/**
 * Hears what other instances store, on a connection of its own. Listeners die silently, so it writes to itself from time
 * to time; when that does not come back it starts again, and then says that something may have been missed.
 */
export class Listener {
  readonly #parts: ListenerParts;
  #connection: Dedicated | undefined;
  #timer: NodeJS.Timeout | undefined;
  #failures = 0;
  #isStopped = true;
  #heardBack: (() => void) | undefined;

  constructor(parts: ListenerParts) {
    this.#parts = parts;
  }

  /** Goes on by itself whatever happens. */
  start(): void {
    if (!this.#isStopped) return;
    this.#isStopped = false;
    void this.#begin();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    // A check under way would wait for its answer, and keep the process alive.
    this.#heardBack?.();
    await this.#drop();
  }

  async #begin(): Promise<void> {
    const { connections, channel, hear } = this.#parts;
    try {
      const connection = await connections.dedicated();
      if (this.#isStopped) return await connection.end();
      this.#connection = connection;
      const { client } = connection;
      client.on('notification', (message) => this.#receive(message.channel, message.payload ?? ''));
      client.on('error', (error) => this.#fail(connection, error));
      client.on('end', () => this.#fail(connection, new Error('the connection ended')));
      await this.#ask(
        connection,
        `LISTEN ${quoteName(channel)}; LISTEN ${quoteName(this.#ownChannel)}`,
      );
      await this.#check();
      const wasAway = this.#failures > 0;
      this.#failures = 0;
      this.#scheduleCheck(connection);
      if (wasAway) hear({});
    } catch (error) {
      this.#fail(this.#connection, error);
    }
  }

  get #ownChannel(): string {
    return `redrive:${this.#parts.instance}`;
  }

  #scheduleCheck(connection: Dedicated): void {
    if (this.#isStopped || connection !== this.#connection) return;
    this.#timer = setTimeout(() => {
      this.#check().then(
        () => this.#scheduleCheck(connection),
        (error: unknown) => this.#fail(connection, error),
      );
    }, this.#parts.checkEveryMs);
    this.#timer.unref();
  }

  async #check(): Promise<void> {
    const back = new Promise<void>((resolve) => {
      this.#heardBack = resolve;
    });
    // From elsewhere: on its own connection it would be heard even through a pooler, through which nothing else comes.
    await this.#parts.send(this.#ownChannel);
    await within(this.#parts.timeoutMs, back);
  }

  async #ask({ client }: Dedicated, text: string): Promise<void> {
    await within(this.#parts.timeoutMs, client.query({ text }));
  }

  #receive(channel: string, payload: string): void {
    if (channel === this.#ownChannel) this.#heardBack?.();
    if (channel !== this.#parts.channel) return;
    const { from, ...hint } = parse(payload);
    // What this instance stored it has told its watchers already.
    if (from !== this.#parts.instance) this.#parts.hear(hint);
  }

  #fail(connection: Dedicated | undefined, error: unknown): void {
    if (this.#isStopped || connection !== this.#connection) return;
    void this.#drop();
    clearTimeout(this.#timer);
    this.#failures += 1;
    if (this.#failures === 1) {
      this.#parts.report(
        'PostgreSQL notifications are not heard, polling goes on; behind a pooler give listenUrl',
        error,
      );
    }
    const limitMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (this.#failures - 1));
    const pauseMs = (limitMs * (1 + this.#parts.random())) / 2;
    this.#timer = setTimeout(() => void this.#begin(), pauseMs);
    this.#timer.unref();
  }

  async #drop(): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    try {
      await connection?.end();
    } catch {
      // It was broken already, and nothing was left to lose on it.
    }
  }
}

/** Anybody may write to a channel: what cannot be read only says that something is new. */
function parse(payload: string): Hint & { from?: string } {
  try {
    const data = JSON.parse(payload) as {
      lanes?: unknown;
      inMs?: unknown;
      state?: unknown;
      from?: unknown;
    };
    return {
      ...(Array.isArray(data.lanes) ? { lanes: data.lanes.map(String) } : {}),
      ...(typeof data.inMs === 'number' ? { inMs: data.inMs } : {}),
      ...(data.state === true ? { state: true } : {}),
      ...(typeof data.from === 'string' ? { from: data.from } : {}),
    };
  } catch {
    return {};
  }
}
