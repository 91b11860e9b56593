/** Hands messages over by HTTP at a steady pace, in batches. What is not answered is handed over again, under the same ids. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HttpSent } from '../service/storm/http-account.ts';
import type { Receiver } from './receiver.ts';

const TICK_MS = 250;
const AGAIN_MS = 200;
const HOUR_MS = 3_600_000;
const MAX_RETRIES = 15;
const MAX_UNDERWAY = 20;
/** After the end of the load, for what a service that is away has not answered. */
const PATIENCE_MS = 60_000;

interface Item {
  readonly entry: HttpSent;
  readonly destination: string;
  readonly isToCancel: boolean;
}

interface Answer {
  accepted: { index: number }[];
  rejected: { index: number; code: string; message: string }[];
}

export class HttpLoad {
  readonly sent: HttpSent[] = [];
  readonly faults: string[] = [];
  readonly #receiver: Receiver;
  readonly #lanes: number;
  readonly #url: () => string;
  readonly #underway = new Set<Promise<void>>();
  #endMs = Infinity;
  #steady = 0;

  /** `url`: of a service that may take it; asked anew each time. `lanes`: over how many origins most of it goes. */
  constructor(receiver: Receiver, lanes: number, url: () => string) {
    this.#receiver = receiver;
    this.#lanes = lanes;
    this.#url = url;
  }

  /** Resolves when everything is answered. */
  async run(perSecond: number, isOver: () => boolean): Promise<void> {
    const startMs = performance.now();
    while (!isOver()) {
      await sleep(TICK_MS);
      const due = Math.floor(((performance.now() - startMs) * perSecond) / 1000);
      if (this.#underway.size >= MAX_UNDERWAY) continue;
      const items = Array.from({ length: Math.min(100, due - this.sent.length) }, () =>
        this.#next(),
      );
      if (items.length > 0) this.#start(items);
    }
    this.#endMs = performance.now() + PATIENCE_MS;
    await Promise.all(this.#underway);
  }

  #start(items: Item[]): void {
    const work = this.#handOver(items).finally(() => this.#underway.delete(work));
    this.#underway.add(work);
  }

  #next(): Item {
    const number = this.sent.length;
    const entry: HttpSent = {
      id: randomUUID(),
      atMs: Date.now(),
      isAccepted: false,
      isCancelled: false,
    };
    this.sent.push(entry);
    const place = number % 20;
    const receiver = this.#receiver;
    if (place < 2) return { entry, destination: receiver.flaky(number >> 4), isToCancel: false };
    if (place === 2) return { entry, destination: receiver.outage, isToCancel: false };
    const destination = receiver.steady(this.#steady++ % this.#lanes);
    return { entry, destination, isToCancel: place === 3 };
  }

  async #handOver(items: readonly Item[]): Promise<void> {
    const body = {
      items: items.map(({ entry, destination, isToCancel }) => ({
        message_id: entry.id,
        destination,
        payload: { id: entry.id },
        max_retries: MAX_RETRIES,
        ...(isToCancel ? { due_at: new Date(Date.now() + HOUR_MS).toISOString() } : {}),
      })),
    };
    const answer = await this.#ask<Answer>('POST', '/api/v1/retries', body);
    if (!answer) return;
    for (const { index } of answer.accepted) items[index]!.entry.isAccepted = true;
    for (const { index, code, message } of answer.rejected) {
      this.faults.push(`${items[index]!.entry.id} was rejected: ${code} ${message}`);
    }
    for (const { entry, isToCancel } of items) {
      if (isToCancel)
        entry.isCancelled = !!(await this.#ask('DELETE', `/api/v1/retries/${entry.id}`));
    }
  }

  /** Until somebody answers; undefined: nobody did in time. */
  async #ask<T>(method: string, path: string, body?: object): Promise<T | undefined> {
    while (performance.now() < this.#endMs) {
      try {
        const response = await fetch(this.#url() + path, {
          method,
          signal: AbortSignal.timeout(20_000),
          ...(body
            ? { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
            : {}),
        });
        const answer = (await response.json()) as T & { code?: string };
        // Cancelled by the answer that was lost.
        if (response.ok || answer.code === 'TASK_OVER') return answer;
      } catch {
        // It was killed, or is not there yet.
      }
      await sleep(AGAIN_MS);
    }
    return undefined;
  }
}
