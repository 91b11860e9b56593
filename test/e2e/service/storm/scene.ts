/** What every scenario has: servers, somebody who sends, those who receive, and the account at the end. */
import { setTimeout as sleep } from 'node:timers/promises';
import { account, type Account, type Evidence } from './account.ts';
import type { Cause } from './causes.ts';
import { Consumers } from './consumers.ts';
import { type Counters, valueOf } from './counters.ts';
import { allItems, allRows, isWorkedOff } from './evidence.ts';
import type { Instance } from './instance.ts';
import { Journal } from './journal.ts';
import { Producer } from './producer.ts';
import { Stage } from './stage.ts';
import { pageOf } from './table.ts';

const LOOK_MS = 100;
/** A lease of a process that was killed lasts 30 s; what it had may fail twice more after that. */
const SETTLE_MS = 100_000;

export interface Outcome extends Account {
  counters: Counters;
  /** Messages that are left in queues of the broker. */
  leftInQueues: Record<string, number>;
  isReady: boolean;
}

/** What else is under way, and is settled in the same account. */
export interface Besides {
  patienceMs?: number;
  isOver?: () => Promise<boolean>;
  /** The ids of messages that `settle` accounts for. */
  others?: () => ReadonlySet<string>;
  settle?: (result: Account, evidence: Evidence) => Promise<void>;
}

export class Scene implements AsyncDisposable {
  readonly stage: Stage;
  readonly journal: Journal;
  readonly producer: Producer;
  readonly #consumers: Consumers;
  readonly #startMs = performance.now();

  private constructor(stage: Stage) {
    const { url } = stage.rabbitmq;
    this.stage = stage;
    this.journal = new Journal();
    this.producer = new Producer(url, this.journal);
    this.#consumers = new Consumers(url, this.journal);
  }

  static async open(): Promise<Scene> {
    const scene = new Scene(await Stage.open());
    // What they declare has to be there before the service is.
    await Promise.all([scene.#consumers.start(), scene.producer.start()]);
    return scene;
  }

  /** Waits until everything has come to its end, and settles the accounts. `service`: whom to ask. */
  async settle(service: Instance, besides: Besides = {}): Promise<Outcome> {
    const { journal, stage } = this;
    const { patienceMs = SETTLE_MS } = besides;
    const sentMs = performance.now();
    const isOver = async () =>
      journal.outstanding().length === 0 &&
      (await isWorkedOff(stage.pool)) &&
      (await (besides.isOver?.() ?? true));
    while (!(await isOver()) && performance.now() < sentMs + patienceMs) await sleep(LOOK_MS);
    const settledMs = performance.now();
    const evidence: Evidence = {
      journal,
      items: await allItems(service),
      rows: await allRows(stage),
      ...(besides.others ? { others: besides.others() } : {}),
    };
    const result = account(evidence);
    await besides.settle?.(result, evidence);
    result.faults.push(...stage.faults);
    const counters = await stage.counters();
    const spent = `sent after ${seconds(sentMs - this.#startMs)}, settled after ${seconds(settledMs - this.#startMs)}`;
    console.log([pageOf(result, counters, stage.said, journal), spent].join('\n\n'));
    const { body } = await service.get<{ ready: boolean }>('/health/ready');
    const leftInQueues = await this.#leftInQueues();
    return { ...result, counters, leftInQueues, isReady: body.ready };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.producer[Symbol.asyncDispose]();
    await this.#consumers[Symbol.asyncDispose]();
    await this.stage[Symbol.asyncDispose]();
  }

  async #leftInQueues(): Promise<Record<string, number>> {
    const list = await this.stage.rabbitmq.ctl('list_queues', 'name', 'messages');
    const rows = list
      .trim()
      .split('\n')
      .map((line) => line.split('\t'));
    const left = rows.map(([name, messages]) => [name!, Number(messages)] as const);
    return Object.fromEntries(left.filter(([, messages]) => messages > 0));
  }
}

/** Failures of their own, which the service does not count among what may have happened twice. */
const countedElsewhere: ReadonlySet<Cause> = new Set(['failed twice', 'answer late']);

/** What was delivered once more, and what the service itself says may have been. */
export function duplicates({ deviations, counters }: Outcome) {
  const count = (...types: string[]) =>
    deviations.filter(({ type, cause }) => types.includes(type) && !countedElsewhere.has(cause))
      .length;
  const counted = (cause: string) => valueOf(counters, 'redrive_duplicates_total', cause);
  return {
    published: {
      seen: count('again', 'review'),
      counted: counted('unsettled') + counted('lease_lost'),
    },
    takenIn: { seen: count('counted', 'skipped', 'early'), counted: counted('redelivered') },
  };
}

/** How late each message came whose producer said when it is due, by its due time. */
export function latenesses({ sent, receipts }: Journal): { dueAtMs: number; lateMs: number }[] {
  const firstAt = new Map<number, number>();
  for (const { number, atMs } of receipts) {
    firstAt.set(number, Math.min(atMs, firstAt.get(number) ?? Infinity));
  }
  return sent.flatMap(({ dueAtMs, plan }) => {
    const atMs = firstAt.get(plan.number);
    return dueAtMs === undefined || atMs === undefined ? [] : [{ dueAtMs, lateMs: atMs - dueAtMs }];
  });
}

/** How much later than half of those of its second the latest came: a machine that is behind is so with all of them. */
export function leftBehindMs(journal: Journal): number {
  const bySecond = Map.groupBy(latenesses(journal), ({ dueAtMs }) => Math.floor(dueAtMs / 1000));
  const gaps = Array.from(bySecond.values(), (some) => {
    const sorted = some.map(({ lateMs }) => lateMs).sort((a, b) => a - b);
    return sorted.at(-1)! - sorted[sorted.length >> 1]!;
  });
  return Math.max(...gaps);
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
