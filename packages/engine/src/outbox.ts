import { delayFor } from 'redrive';
import type { Host } from './host.ts';
import { pause, persist } from './patience.ts';
import type { Broker, Publication, Published } from './ports/broker.ts';
import type { OutboxMessage, Schedule } from './ports/schedule.ts';
import { publish } from './dispatch/publish.ts';

const BATCH = 100;
const BATCH_BYTES = 8 * 1024 * 1024;
const LEASE_MS = 30_000;
const PUBLISH_MS = 15_000;
/** Past this they are no longer told apart, only many. */
const MAX_STUCK = 10_000;
/** After a batch of which nothing was taken, or a store that is away: so long until the next look. */
const pauses = { base: 200, cap: 5000, multiplier: 2, jitter: 'none' } as const;

/** Publishes what was committed beside a task, at least once, without end: it is never given up. */
export class Outbox {
  readonly #schedule: Schedule;
  readonly #host: Host;
  readonly #brokers: readonly Broker[];
  readonly #everyMs: number;
  readonly #ending = new AbortController();
  /** What could not be published, and when it can be taken again. */
  readonly #stuck = new Map<number, number>();
  #work: Promise<void> | undefined;
  #nap = new AbortController();

  constructor(schedule: Schedule, host: Host, brokers: readonly Broker[], everyMs: number) {
    this.#schedule = schedule;
    this.#host = host;
    this.#brokers = brokers;
    this.#everyMs = everyMs;
  }

  /** Messages that could not be published so far: shown to whoever watches over the engine. */
  get stuck(): number {
    return this.#stuck.size;
  }

  start(): void {
    // What cannot be sent from here is left to others.
    if (this.#brokers.length > 0) this.#work ??= this.#run();
  }

  /** Something new is there, or a broker is. */
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
      const came = await this.#round();
      failures = came === 'nothing' ? failures + 1 : 0;
      if (came === 'more') continue;
      // Woken or not: what nobody takes is not tried again at once because one more came.
      if (failures > 0) await pause(this.#host, delayFor(pauses, { attempt: failures }), signal);
      else await pause(this.#host, this.#restMs(), this.#nap.signal, signal);
    }
  }

  #restMs(): number {
    const now = this.#host.clock.monotonic();
    let restMs = this.#everyMs;
    for (const at of this.#stuck.values()) restMs = Math.min(restMs, Math.max(1, at - now));
    return restMs;
  }

  /** `nothing`: there was something, or may have been, and none of it could be sent. */
  async #round(): Promise<'more' | 'all' | 'nothing'> {
    const kinds = this.#brokers.filter(({ isReady }) => isReady).map(({ kind }) => kind);
    if (kinds.length === 0) return 'all';
    const now = this.#host.clock.monotonic();
    try {
      const only = { kinds, maxBytes: BATCH_BYTES };
      const messages = await this.#schedule.takeOutbox(BATCH, LEASE_MS, only);
      this.#forgetTaken(messages, now);
      if (messages.length === 0) return 'all';
      return (await this.#publishAll(messages)) ? 'more' : 'nothing';
    } catch (error) {
      this.#host.log.warn({ err: error }, 'the outbox could not be read, trying again');
      return 'nothing';
    }
  }

  /** Free again, and not found though the oldest come first: another instance has it, or has sent it. */
  #forgetTaken(messages: readonly OutboxMessage[], now: number): void {
    const found = new Set(messages.map(({ id }) => id));
    const last = messages.at(-1)?.id ?? Infinity;
    for (const [id, at] of this.#stuck) {
      if (at <= now && id < last && !found.has(id)) this.#stuck.delete(id);
    }
  }

  /** Whether any of them was taken. */
  async #publishAll(messages: readonly OutboxMessage[]): Promise<boolean> {
    const outcomes = await Promise.all(this.#send(messages));
    const sent = messages.filter((_, i) => outcomes[i]!.outcome === 'confirmed');
    const left = messages.filter((_, i) => outcomes[i]!.outcome !== 'confirmed');
    const at = this.#host.clock.monotonic() + LEASE_MS;
    for (const { id } of left) if (this.#stuck.size < MAX_STUCK) this.#stuck.set(id, at);
    if (left.length > 0) {
      const outcome = outcomes.find((one) => one.outcome !== 'confirmed');
      const facts = { messages: left.length, outcome };
      this.#host.log.warn(facts, 'messages of the outbox could not be published');
    }
    if (sent.length > 0) await this.#drop(sent.map(({ id }) => id));
    for (const { id } of sent) this.#stuck.delete(id);
    return sent.length > 0;
  }

  /** What failed before goes alone: it may be what broke its batch. */
  #send(messages: readonly OutboxMessage[]): Promise<Published>[] {
    const answers = new Map<number, Promise<Published>>();
    const send = (kind: string, some: readonly OutboxMessage[], alone: boolean) => {
      // It was asked for what it can send.
      const broker = this.#brokers.find((one) => one.kind === kind)!;
      const publications = some.map(publicationOf);
      const published = publish(broker, publications, { timeoutMs: PUBLISH_MS, alone });
      for (const [i, { id }] of some.entries()) answers.set(id, published[i]!);
    };
    const fresh = messages.filter(({ id }) => !this.#stuck.has(id));
    for (const [kind, some] of Map.groupBy(fresh, ({ destination }) => destination.kind)) {
      send(kind, some, false);
    }
    for (const one of messages.filter(({ id }) => this.#stuck.has(id))) {
      send(one.destination.kind, [one], true);
    }
    return messages.map(({ id }) => answers.get(id)!);
  }

  /** Tried until it is written, or they would all be published once more. */
  #drop(ids: readonly number[]): Promise<void> {
    return persist(() => this.#schedule.dropOutbox(ids), {
      host: this.#host,
      what: 'clearing the outbox',
      until: this.#ending.signal,
    });
  }
}

function publicationOf({ destination, payload, headers }: OutboxMessage): Publication {
  const { 'content-type': contentType, ...rest } = headers;
  const { address } = destination;
  return { address, payload, headers: rest, ...(contentType ? { contentType } : {}) };
}
