/** Sends at a steady pace, whatever happens. What could not be sent in time is sent as soon as it can be. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ConfirmChannel } from 'amqplib';
import type { Journal, Sent } from './journal.ts';
import { confirmChannel, Peer, publish } from './peer.ts';
import { messageOf, planOf } from './plans.ts';

const TICK_MS = 20;
/** Not confirmed yet: a broker that is behind gets no more. */
const MAX_UNDERWAY = 2000;
const RETRY_QUEUE = 'retry.scheduled';

export class Producer implements AsyncDisposable {
  readonly #journal: Journal;
  readonly #peer: Peer;
  #channel: ConfirmChannel | undefined;
  #underway = 0;
  #next: number;

  constructor(url: string, journal: Journal, from = 0) {
    this.#journal = journal;
    this.#next = from;
    this.#peer = new Peer(url, async (connection) => {
      const channel = await confirmChannel(connection);
      // What nobody has declared is confirmed and gone.
      await channel.assertQueue(RETRY_QUEUE);
      channel.on('close', () => {
        if (this.#channel === channel) this.#channel = undefined;
      });
      this.#channel = channel;
    });
  }

  start(): Promise<void> {
    return this.#peer.start();
  }

  /** Resolves when all of it is sent. */
  async produce(perSecond: number, forMs: number): Promise<void> {
    const startMs = performance.now();
    const first = this.#next;
    const last = first + Math.floor((perSecond * forMs) / 1000);
    while (this.#next < last) {
      await sleep(TICK_MS);
      const elapsedMs = Math.min(performance.now() - startMs, forMs);
      const due = first + Math.floor((elapsedMs * perSecond) / 1000);
      while (this.#next < due && this.#channel && this.#underway < MAX_UNDERWAY) {
        void this.#send(this.#channel);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#peer[Symbol.asyncDispose]();
  }

  async #send(channel: ConfirmChannel): Promise<void> {
    const plan = planOf(this.#next);
    this.#next += 1;
    const atMs = Date.now();
    const { body, contentType } = messageOf(plan, atMs);
    const { dueInMs } = plan;
    const due = dueInMs === undefined ? {} : { dueAtMs: atMs + dueInMs };
    const entry: Sent = { plan, atMs, ...due, isConfirmed: false };
    this.#journal.sent.push(entry);
    this.#underway += 1;
    entry.isConfirmed = await publish(channel, RETRY_QUEUE, body, { contentType });
    this.#underway -= 1;
  }
}
