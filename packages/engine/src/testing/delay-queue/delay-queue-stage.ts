import { deepEqual, equal, fail } from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import type { Clock } from 'redrive';
import type { VirtualClock } from 'redrive/testing';
import type {
  DelayAnswer,
  DelayConsumer,
  DelayedEntry,
  DelayLimits,
  DelayQueue,
  DelayQueueCapabilities,
  DueEntry,
} from '../../ports/delay-queue.ts';
import { type CaseTable, patient, type Until } from '../suite.ts';

/** How the suite gets at the delay queue that it examines. */
export interface DelayQueueSetup {
  capabilities: DelayQueueCapabilities;
  /** An empty queue, opened, for one case. `leaseMs` is a wish: what it is stands in `OpenedDelayQueue`. */
  open(wish: { leaseMs: number }): Promise<OpenedDelayQueue>;
  /** What the setup can do beside opening queues. Cases that need another are marked with `skip`. */
  hooks?: readonly DelayQueueHook[];
  /** How long a case waits for what must come (25 s). */
  patienceMs?: number;
}

export type DelayQueueHook = 'held' | 'kill' | 'expireLeases' | 'skewed';

export interface OpenedDelayQueue {
  queue: DelayQueue;
  /** Another instance on the same queue, opened, as another process would have. `close` closes it too. */
  another(): Promise<DelayQueue>;
  /** How long an entry stays with a consumer that gives no sign of life. */
  leaseMs: number;
  close(): Promise<void>;
  /** The queue's clock where it takes one: then times are compared exactly, and nothing waits. */
  clock?: VirtualClock;
  /** The ids of the entries that the server holds, read past the adapter. */
  held?(): Promise<readonly string[]>;
  /** Ends an instance as a killed process ends: nothing is given back, nothing is renewed. */
  kill?(queue: DelayQueue): Promise<void>;
  /** Ends all leases on the server, as if their time were over: who had them can neither renew nor answer. */
  expireLeases?(): Promise<void>;
  /** Another instance, opened, of a process whose clock is this one. */
  skewed?(clock: Clock): Promise<DelayQueue>;
}

export interface DelayStage extends Omit<Required<OpenedDelayQueue>, 'clock'> {
  readonly clock: VirtualClock | undefined;
  readonly until: Until;
  /** Monotonic, of the queue's clock where the setup has it. */
  readonly nowMs: () => number;
  readonly pass: (ms: number) => Promise<void>;
  /** What times may differ by: servers round them, and their clocks are adjusted. */
  readonly slackMs: number;
}

export type DelayNeed = keyof DelayQueueCapabilities | DelayQueueHook;
export type DelayCases = CaseTable<DelayStage, DelayNeed>;

export async function onDelayStage(
  setup: DelayQueueSetup,
  leaseMs: number,
  body: (stage: DelayStage) => Promise<void>,
): Promise<void> {
  const opened = await setup.open({ leaseMs });
  const { queue, clock } = opened;
  const missing = (hook: string) => () =>
    fail(`open() gives no \`${hook}\`, which the setup declares`);
  const stage: DelayStage = {
    held: missing('held'),
    kill: missing('kill'),
    expireLeases: missing('expireLeases'),
    skewed: missing('skewed'),
    ...opened,
    clock,
    until: clock ? steps(clock, setup.patienceMs) : patient(setup.patienceMs),
    nowMs: () => (clock ? clock.monotonic() : performance.now()),
    pass: (ms) => (clock ? clock.advance(ms) : setTimeout(ms)),
    slackMs: clock ? 0 : 2,
  };
  try {
    const sentence = 'The setup declares other capabilities than the queue.';
    deepEqual(queue.capabilities, setup.capabilities, sentence);
    await body(stage);
  } finally {
    await opened.close();
  }
}

/** Moves a virtual clock on until it is true: as `patient`, without waiting. */
function steps(clock: VirtualClock, patienceMs = 25_000): Until {
  return async (what, condition) => {
    const endMs = clock.monotonic() + patienceMs;
    while (!(await condition())) {
      if (clock.monotonic() > endMs)
        throw new Error(`${what} did not come within ${patienceMs} ms.`);
      await clock.advance(2);
    }
  };
}

export interface Handover {
  entry: DueEntry;
  atMs: number;
}

/** A consumer that writes down what it gets. */
interface Listener {
  readonly got: Handover[];
  /** The sizes of its batches. */
  readonly sizes: number[];
  readonly consumer: DelayConsumer;
}

type Answer = (entry: DueEntry, signal: AbortSignal) => DelayAnswer | Promise<DelayAnswer>;

export const done: DelayAnswer = { type: 'done' };

/** Consumes, and answers for each entry as `answer` does: done, unless given. */
export async function listen(
  stage: Pick<DelayStage, 'nowMs'>,
  queue: DelayQueue,
  answer: Answer = () => done,
  limits: DelayLimits = {},
): Promise<Listener> {
  const got: Handover[] = [];
  const sizes: number[] = [];
  const handler = async (batch: readonly DueEntry[], signal: AbortSignal) => {
    const atMs = stage.nowMs();
    sizes.push(batch.length);
    got.push(...batch.map((one) => ({ entry: one, atMs })));
    return Promise.all(batch.map(async (one) => answer(one, signal)));
  };
  const consumer = await queue.consume(handler, limits);
  return { got, sizes, consumer };
}

export function idsOf(got: readonly Handover[]): string[] {
  return got.map((one) => one.entry.id).toSorted();
}

export function entry(id: string, delayMs = 0, text = id): DelayedEntry {
  return { id, delayMs, payload: new TextEncoder().encode(text) };
}

export function numbered(count: number, delayMs = 0, prefix = 'e'): DelayedEntry[] {
  return Array.from({ length: count }, (_, i) => entry(`${prefix}${i}`, delayMs));
}

export function textOf({ entry: { payload } }: Handover): string {
  return new TextDecoder().decode(payload);
}

/** A promise that the case keeps when it wants to. */
export function gate<T = void>(): { opens: Promise<T>; open: (value: T) => void } {
  const { promise, resolve } = Promise.withResolvers<T>();
  return { opens: promise, open: resolve };
}

/** Waits for entries that must come, then as long as a wrong one would take, and compares ids. */
export async function expectOnly(
  stage: DelayStage,
  got: readonly Handover[],
  ids: readonly string[],
): Promise<void> {
  await stage.until(`${ids.length} entries`, () => got.length >= ids.length);
  await stage.pass(stage.clock ? 60_000 : 50);
  // First: a difference between two long lists takes long to show.
  equal(got.length, ids.length, `${got.length} entries instead of ${ids.length}`);
  deepEqual(idsOf(got), ids.toSorted());
}
