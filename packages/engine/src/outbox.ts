import type { Host } from './host.ts';
import { pause, persist } from './patience.ts';
import type { Broker, Published } from './ports/broker.ts';
import type { OutboxMessage, Schedule } from './ports/schedule.ts';

const BATCH = 100;
const LEASE_MS = 60_000;
const PUBLISH_MS = 15_000;
const MAX_PAUSE_MS = 60_000;
/** Past this they are no longer told apart, only many. */
const MAX_STUCK = 10_000;

/** Publishes what was committed beside a task, at least once, without end: it is never given up. */
export class Outbox {
  readonly #schedule: Schedule;
  readonly #host: Host;
  readonly #brokerOf: (kind: string) => Broker | undefined;
  readonly #everyMs: number;
  readonly #ending = new AbortController();
  /** What could not be published, and when it can be taken again. */
  readonly #stuck = new Map<number, number>();
  #work: Promise<void> | undefined;
  #nap = new AbortController();

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

  /** Messages that could not be published so far: shown to whoever watches over the engine. */
  get stuck(): number {
    return this.#stuck.size;
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
    await this.#work;
  }

  async #run(): Promise<void> {
    const { signal } = this.#ending;
    let failures = 0;
    while (!signal.aborted) {
      // Before it looks: what comes while it publishes wakes it too.
      this.#nap = new AbortController();
      let isMore = false;
      try {
        isMore = await this.#publish();
        failures = 0;
      } catch (error) {
        failures = Math.min(failures + 1, 20);
        this.#host.log.warn({ err: error }, 'the outbox could not be read, trying again');
      }
      if (isMore) continue;
      if (failures > 0)
        await pause(this.#host, Math.min(100 * 2 ** failures, MAX_PAUSE_MS), signal);
      else await pause(this.#host, this.#restMs(), AbortSignal.any([this.#nap.signal, signal]));
    }
  }

  #restMs(): number {
    const now = this.#host.clock.monotonic();
    let restMs = this.#everyMs;
    for (const at of this.#stuck.values()) restMs = Math.min(restMs, Math.max(1, at - now));
    return restMs;
  }

  async #publish(): Promise<boolean> {
    const now = this.#host.clock.monotonic();
    const messages = await this.#schedule.takeOutbox(BATCH, LEASE_MS);
    const isMore = messages.length === BATCH;
    // Free again, and not found: another instance has it now.
    for (const [id, at] of this.#stuck) if (at <= now && !isMore) this.#stuck.delete(id);
    const sent: number[] = [];
    for (const [kind, some] of Map.groupBy(messages, ({ destination }) => destination.kind)) {
      const outcomes = await this.#publishTo(kind, some);
      for (const [i, { id }] of some.entries()) {
        if (outcomes[i]?.outcome === 'confirmed') sent.push(id);
        else this.#failed(id, outcomes[i]);
      }
    }
    if (sent.length > 0) await this.#drop(sent);
    for (const id of sent) this.#stuck.delete(id);
    return isMore;
  }

  #failed(id: number, outcome: Published | undefined): void {
    const at = this.#host.clock.monotonic() + LEASE_MS;
    if (this.#stuck.size < MAX_STUCK) this.#stuck.set(id, at);
    this.#host.log.warn({ outcome }, 'a message of the outbox could not be published');
  }

  /** Tried until it is written, or they would all be published once more. */
  #drop(ids: readonly number[]): Promise<void> {
    return persist(() => this.#schedule.dropOutbox(ids), {
      host: this.#host,
      what: 'clearing the outbox',
      until: this.#ending.signal,
    });
  }

  async #publishTo(kind: string, messages: readonly OutboxMessage[]): Promise<Published[]> {
    const broker = this.#brokerOf(kind);
    if (!broker) return [];
    const publications = messages.map(({ destination, payload, headers }) => ({
      address: destination.address,
      payload,
      headers,
    }));
    try {
      return await broker.publish(publications, PUBLISH_MS);
    } catch (error) {
      this.#host.log.warn({ err: error, kind }, 'the broker did not take the outbox');
      return [];
    }
  }
}
