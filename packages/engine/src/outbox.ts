import type { Host } from './host.ts';
import { pause } from './patience.ts';
import type { Broker, Published } from './ports/broker.ts';
import type { OutboxMessage, Schedule } from './ports/schedule.ts';

const BATCH = 100;
const LEASE_MS = 60_000;
const PUBLISH_MS = 15_000;
const MAX_PAUSE_MS = 60_000;

/** Publishes what was committed beside a task, at least once, without end: it is never given up. */
export class Outbox {
  readonly #schedule: Schedule;
  readonly #host: Host;
  readonly #brokerOf: (kind: string) => Broker | undefined;
  readonly #everyMs: number;
  readonly #ending = new AbortController();
  #work: Promise<void> | undefined;
  #nap = new AbortController();
  /** Messages in a row that could not be published: shown to whoever watches over the engine. */
  stuck = 0;

  constructor(
    schedule: Schedule,
    host: Host,
    brokerOf: (kind: string) => Broker | undefined,
    everyMs: number,
  ) {
    this.#schedule = schedule;
    this.#host = host;
    this.#brokerOf = brokerOf;
    this.#everyMs = everyMs;
  }

  start(): void {
    this.#work ??= this.#run();
  }

  /** Something new is there. */
  wake(): void {
    this.#nap.abort();
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    this.#nap.abort();
    await this.#work;
  }

  async #run(): Promise<void> {
    let failures = 0;
    while (!this.#ending.signal.aborted) {
      let sent = 0;
      try {
        sent = await this.#publish();
        failures = this.stuck > 0 ? failures + 1 : 0;
      } catch (error) {
        failures += 1;
        this.#host.log.warn({ err: error }, 'the outbox could not be read, trying again');
      }
      if (sent === BATCH && failures === 0) continue;
      const pauseMs =
        failures > 0 ? Math.min(100 * 2 ** Math.min(failures, 20), MAX_PAUSE_MS) : this.#everyMs;
      this.#nap = new AbortController();
      const until =
        failures > 0
          ? this.#ending.signal
          : AbortSignal.any([this.#nap.signal, this.#ending.signal]);
      await pause(this.#host, pauseMs, until);
    }
  }

  async #publish(): Promise<number> {
    const messages = await this.#schedule.takeOutbox(BATCH, LEASE_MS);
    const sent: number[] = [];
    for (const [kind, some] of Map.groupBy(messages, ({ destination }) => destination.kind)) {
      const outcomes = await this.#publishTo(kind, some);
      for (const [i, { id }] of some.entries()) {
        if (outcomes[i]?.outcome === 'confirmed') sent.push(id);
        else
          this.#host.log.warn(
            { outcome: outcomes[i] },
            'a message of the outbox could not be published',
          );
      }
    }
    if (sent.length > 0) await this.#schedule.dropOutbox(sent);
    this.stuck = messages.length - sent.length;
    return sent.length;
  }

  async #publishTo(kind: string, messages: readonly OutboxMessage[]): Promise<Published[]> {
    const broker = this.#brokerOf(kind);
    if (!broker) return [];
    const publications = messages.map(({ destination, payload, headers }) => ({
      address: destination.address,
      payload,
      headers,
    }));
    return broker.publish(publications, PUBLISH_MS);
  }
}
