/** A made-up world for the service: instances that crash at any await, parts that fail before or after their effect, one clock. */
import { type DelayQueue, EngineError } from '@redrive/engine';
import { memoryDelayQueue } from '@redrive/engine/memory';
import { seededRandom, type VirtualClock, virtualClock } from 'redrive/testing';
import {
  createNotifications,
  type DeliveryAttempt,
  type DeliverRequest,
  type NotificationHappening,
  type NotificationRecord,
  type NotificationOptions,
  type NotificationRepository,
  type Notifications,
  notWritten,
} from '@redrive/notifications';
import { memoryNotifications } from '@redrive/notifications/memory';
import { Witness } from './witness.ts';

export interface Chances {
  /** Of a call that fails: half of them before, half after their effect. */
  fault: number;
  /** Of a call in which its instance dies. */
  crash: number;
  seed: number;
}

const quiet = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};
const forever = new Promise<never>(() => {});

export class World {
  readonly clock: VirtualClock = virtualClock(Date.UTC(2026, 0, 5, 12));
  readonly repository: NotificationRepository = memoryNotifications();
  readonly random: () => number;
  readonly witness: Witness;
  readonly queues;
  readonly letters = new Set<string>();
  readonly events: string[] = [];
  readonly happenings: NotificationHappening[] = [];
  readonly instances: Instance[] = [];
  chances: Chances;

  constructor(chances: Chances) {
    this.chances = chances;
    this.random = seededRandom(chances.seed);
    this.witness = new Witness(this.clock);
    const { clock } = this;
    this.queues = {
      urgent: memoryDelayQueue({ clock, log: quiet }),
      bulk: memoryDelayQueue({ clock, log: quiet, lacks: ['deduplicates', 'cancels', 'counts'] }),
    };
  }

  /** One of two that run. One that died is followed by another. */
  async instance(): Promise<Instance> {
    while (this.instances.filter(({ isDead }) => !isDead).length < 2) {
      const next = new Instance(this, `i${this.instances.length}`);
      this.instances.push(next);
      void next.service.start();
      await this.clock.advance(0);
    }
    return this.pick(this.instances.filter(({ isDead }) => !isDead));
  }

  chance(probability: number): boolean {
    return this.random() < probability;
  }

  pick<T>(values: readonly T[]): T {
    return values[Math.floor(this.random() * values.length)]!;
  }
}

export class Instance {
  readonly service: Notifications;
  readonly name: string;
  readonly #world: World;
  readonly #own: { crash(): void }[] = [];
  isDead = false;

  constructor(world: World, name: string) {
    this.#world = world;
    this.name = name;
    const urgent = world.queues.urgent.another();
    const bulk = world.queues.bulk.another();
    this.#own.push(urgent, bulk);
    const sinks: Pick<NotificationOptions, 'deadLetter' | 'inbox' | 'event'> = {
      deadLetter: (letter) =>
        this.#call(
          async () =>
            void world.letters.add(
              `${letter.notification_id} ${letter.device_id} ${letter.attempt_number}`,
            ),
        ),
      inbox: () => this.#call(async () => undefined),
      event: (event) => this.#call(async () => void world.events.push(event.event_type)),
    };
    this.service = createNotifications({
      repository: this.#repository(),
      queues: { urgent: this.#queue(urgent), bulk: this.#queue(bulk) },
      deliver: (request) => this.#deliver(request),
      ...sinks,
      clock: world.clock,
      random: world.random,
      defer: queueMicrotask,
      log: quiet,
      on: (event) => world.happenings.push(event),
      retentionMs: 0,
      // Rarer than usual: a world lasts for hours.
      sweepMs: 20_000,
      newId: () => `${name}-${Math.floor(world.random() * 1e9)}`,
    });
  }

  crash(): void {
    this.isDead = true;
    this.#world.witness.died(this.name);
    for (const queue of this.#own) queue.crash();
  }

  async #deliver({ notificationId, deviceId, attempt }: DeliverRequest) {
    const world = this.#world;
    if (this.isDead) return forever;
    const outcome = world.pick([
      'failed',
      'failed',
      'delivered',
      'handed_over',
      'not_sent',
      'hangs',
    ] as const);
    world.witness.delivering(
      this.name,
      `${notificationId} ${deviceId} ${attempt}`,
      outcome !== 'not_sent',
    );
    if (outcome === 'hangs') return forever;
    if (world.chance(0.3)) await Promise.resolve();
    if (this.isDead) return forever;
    return outcome === 'failed' ? { outcome, errorCode: world.pick(['E1', 'E2']) } : { outcome };
  }

  #repository(): NotificationRepository {
    const { repository } = this.#world;
    return {
      open: () => repository.open(),
      close: async () => undefined,
      create: (records) => this.#call(() => repository.create(records)),
      find: (ids) => this.#call(() => repository.find(ids)),
      write: (records, attempts = []) => this.#write(records, attempts),
      attempts: (id, page) => this.#call(() => repository.attempts(id, page)),
      due: (nowMs, limit) => this.#call(() => repository.due(nowMs, limit)),
      list: (query) => this.#call(() => repository.list(query)),
      deactivate: (devices) => this.#call(() => repository.deactivate(devices)),
      inactiveSince: (ids) => this.#call(() => repository.inactiveSince(ids)),
      activate: (ids) => this.#call(() => repository.activate(ids)),
      prune: (beforeMs, limit) => this.#call(() => repository.prune(beforeMs, limit)),
    };
  }

  /** Half of the time in two steps, as in a database without transactions. */
  async #write(
    records: readonly NotificationRecord[],
    attempts: readonly DeliveryAttempt[],
  ): ReturnType<NotificationRepository['write']> {
    const { repository, witness } = this.#world;
    if (this.#world.chance(0.5))
      return this.#call(() => witness.write(repository, records, attempts));
    const { records: written } = await this.#call(() => witness.write(repository, records));
    const lost = notWritten(records, written);
    const left = attempts.filter(({ notificationId }) => !lost.has(notificationId));
    const { attempts: added } = await this.#call(() => repository.write([], left));
    return { records: written, attempts: attempts.map((one) => added[left.indexOf(one)] ?? false) };
  }

  #queue(queue: DelayQueue): DelayQueue {
    return {
      capabilities: queue.capabilities,
      open: () => queue.open(),
      schedule: (entries) => this.#call(() => queue.schedule(entries)),
      consume: (handler, limits) => queue.consume(handler, limits),
      cancel: (ids) => queue.cancel(ids),
      depth: () => queue.depth(),
      close: () => queue.close(),
    };
  }

  /** It may fail before its effect or after it, and the instance may die with it. */
  async #call<R>(work: () => Promise<R>): Promise<R> {
    const world = this.#world;
    if (this.isDead) return forever;
    const { fault, crash } = world.chances;
    const dies = world.chance(crash);
    const fails = world.chance(fault);
    const isBefore = world.chance(0.5);
    if ((dies || fails) && isBefore) return this.#trouble(dies);
    const result = await work();
    if (this.isDead) return forever;
    return dies || fails ? this.#trouble(dies) : result;
  }

  #trouble(dies: boolean): Promise<never> {
    if (!dies) return Promise.reject(new EngineError('STORE_UNAVAILABLE', 'A made-up fault.'));
    this.crash();
    return forever;
  }
}
