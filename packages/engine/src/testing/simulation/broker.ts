import type { Broker, Consumer, Publication, Published, Received } from '../../ports/broker.ts';
import { suffer, type Weather } from './faults.ts';
import type { Being, World } from './world.ts';

/** A failure that a consumer reports: a message in the queue that the engine takes in from. */
export interface Report {
  id: string;
  queue: string;
  /** What our own header said, where the consumer passes it on. */
  count: number | undefined;
  generation: number;
}

/** The connection of one instance. */
interface Link {
  isUp: boolean;
  listeners: Set<() => void>;
}

const failure = { class: 'transient', code: 'MADE_UP' } as const;
const unconfirmed: Published = { outcome: 'unknown', failure };
const lost: Published = { outcome: 'lost', failure };
const away: Published = { outcome: 'away', failure };

interface Held {
  report: Report;
  /** Redelivered unless it is acknowledged while this consumer lives. */
  by: Being | undefined;
  isAcked: boolean;
  deliveries: number;
}

/** The broker of the world, and those who consume from it: some work, some fail, and a failure comes back at once. */
export class BrokerWorld {
  readonly #world: World;
  readonly #reports = new Set<Held>();
  readonly #consumers = new Map<Being, (message: Received) => void>();
  /** How often a message fails before it works. */
  readonly #failuresLeft = new Map<string, number>();
  readonly #counting = new Map<string, boolean>();
  readonly #nature: Being = { isAlive: true };
  readonly #worked: (id: string) => void;
  readonly #acked: (id: string) => void;
  /** On its way to a consumer. */
  underway = 0;

  constructor(world: World, worked: (id: string) => void, acked: (id: string) => void) {
    this.#world = world;
    this.#worked = worked;
    this.#acked = acked;
  }

  get isEmpty(): boolean {
    return this.#reports.size === 0 && this.underway === 0;
  }

  /** A message fails for the first time, in a consumer of ordinary traffic. */
  begin(id: string, queue: string, failures: number, isCounting: boolean): void {
    this.#failuresLeft.set(id, failures);
    this.#counting.set(id, isCounting);
    this.#report({ id, queue, count: isCounting ? 0 : undefined, generation: 0 });
  }

  /** The broker as one instance sees it. */
  seenBy(being: Being & { die(): void }, weather: Weather): Broker {
    const link: Link = { isUp: true, listeners: new Set() };
    return {
      kind: 'queue',
      capabilities: {
        returnsUnroutable: true,
        confirms: true,
        typedHeaders: true,
        redeliversInOrder: true,
        acknowledgesOutOfOrder: true,
        marksRedelivered: true,
        sharesByMessage: true,
        maxMessageBytes: Infinity,
      },
      open: () => Promise.resolve(),
      close: () => Promise.resolve(),
      get isReady() {
        return link.isUp;
      },
      watch: (listener) => {
        link.listeners.add(listener);
        return () => link.listeners.delete(listener);
      },
      publish: (messages) => {
        if (!link.isUp) return messages.map(async () => away);
        const all = this.#publish(messages, being, weather, link);
        return messages.map(async (_, i) => (await all)[i]!);
      },
      consume: (_source, _limits, receive) => {
        this.#consumers.set(being, receive);
        for (const held of this.#reports) this.#offer(held);
        return Promise.resolve(this.#consumer(being, weather));
      },
    };
  }

  async #publish(
    messages: readonly Publication[],
    being: Being & { die(): void },
    weather: Weather,
    link: Link,
  ): Promise<Published[]> {
    try {
      return await suffer(this.#world, weather, being, () => {
        for (const message of messages) this.#consumed(message);
        return Promise.resolve(messages.map(() => ({ outcome: 'confirmed' as const })));
      });
    } catch {
      // Nobody confirmed them; or the connection broke, and is there again after a while.
      if (this.#world.chance(0.5)) return messages.map(() => unconfirmed);
      this.#turn(link, false);
      this.#world.at(this.#world.between(1, 3000), being, () => this.#turn(link, true));
      return messages.map(() => lost);
    }
  }

  #turn(link: Link, isUp: boolean): void {
    link.isUp = isUp;
    for (const listener of link.listeners) listener();
  }

  /** A fast consumer may fail, and be back, before the confirm has reached the publisher; a slow one while it is observed. */
  #consumed({ address, headers }: Publication): void {
    const id = String(headers['x-message-id']);
    const count = Number(headers['x-retry-count']);
    const generation = Number(headers['x-redrive-generation']);
    this.underway += 1;
    const takesMs = this.#world.between(0, this.#world.chance(0.3) ? 2000 : 4);
    this.#world.at(takesMs, this.#nature, () => {
      this.underway -= 1;
      const left = this.#failuresLeft.get(id) ?? 0;
      this.#failuresLeft.set(id, left - 1);
      if (left <= 0) return this.#worked(id);
      this.#report({
        id,
        queue: address,
        count: this.#counting.get(id) ? count : undefined,
        generation,
      });
    });
  }

  #report(report: Report): void {
    const held: Held = { report, by: undefined, isAcked: false, deliveries: 0 };
    this.#reports.add(held);
    this.#offer(held);
  }

  #offer(held: Held): void {
    if (held.isAcked || held.by?.isAlive) return;
    const alive = [...this.#consumers].filter(([being]) => being.isAlive);
    if (alive.length === 0) return;
    const [being, receive] = this.#world.pick(alive);
    held.by = being;
    held.deliveries += 1;
    const { report } = held;
    const redelivered = held.deliveries > 1;
    this.#world.at(this.#world.between(0, 3), being, () => {
      receive({ tag: held, payload: new Uint8Array([1]), headers: { report }, redelivered });
    });
  }

  #consumer(being: Being & { die(): void }, weather: Weather): Consumer {
    return {
      ack: (messages) =>
        suffer(this.#world, weather, being, () => {
          for (const { tag } of messages) {
            const held = tag as Held;
            if (held.by !== being || held.isAcked) continue;
            held.isAcked = true;
            this.#reports.delete(held);
            this.#acked(held.report.id);
          }
          return Promise.resolve();
        }),
      requeue: (messages) => {
        for (const { tag } of messages) this.#again(tag as Held);
        return Promise.resolve();
      },
      stop: () => {
        this.#consumers.delete(being);
        return Promise.resolve();
      },
    };
  }

  /** What a dead consumer held goes to another. */
  lost(being: Being): void {
    this.#consumers.delete(being);
    for (const held of this.#reports) if (held.by === being) this.#again(held);
  }

  #again(held: Held): void {
    if (held.isAcked) return;
    held.by = undefined;
    this.#world.at(this.#world.between(0, 20), this.#nature, () => this.#offer(held));
  }
}
