import { deepEqual, fail } from 'node:assert/strict';
import type { VirtualClock } from 'redrive/testing';
import type { ScheduleCapabilities } from '../ports/schedule.ts';
import type { Store } from '../ports/store.ts';
import { type CaseTable, patient, type Until } from './suite.ts';

/** How a suite gets at the store that it examines. */
export interface StoreSetup {
  /** What the store declares: cases that need more are marked with `skip`. */
  capabilities: ScheduleCapabilities;
  /** An empty store, opened, for one case. */
  open(): Promise<OpenedStore>;
  /** How long a case waits for what must come (25 s). */
  patienceMs?: number;
}

export interface OpenedStore {
  store: Store;
  close(): Promise<void>;
  /** The store's clock where it takes one: then times are compared exactly, and nothing waits. */
  clock?: VirtualClock;
  /** Another instance on the same data, opened. A shared or durable store must have it. */
  second?(): Promise<Pick<OpenedStore, 'store' | 'close'>>;
  /** A transaction of a caller, on the same data. A store that can join one must have it. */
  begin?(): Promise<CallerTransaction>;
  /** What a caller may take for a transaction and is none, by name: a store that can join one must refuse each. */
  outside?(): Promise<Outside>;
}

export interface Outside {
  txs: Readonly<Record<string, unknown>>;
  close: () => Promise<void>;
}

export interface CallerTransaction {
  tx: unknown;
  commit: () => Promise<void>;
  rollback: () => Promise<void>;
}

export type StoreCases = CaseTable<Stage, keyof ScheduleCapabilities>;

/** What a case works with. */
export interface Stage {
  readonly store: Store;
  readonly clock: VirtualClock | undefined;
  /** Another instance on the same data. */
  readonly second: () => Promise<Store>;
  readonly begin: () => Promise<CallerTransaction>;
  readonly outside: () => Promise<Outside['txs']>;
  /** Ends the first instance early. */
  readonly close: () => Promise<void>;
  /** The store's time. */
  readonly nowMs: () => Promise<number>;
  /** Returns when so much time has passed by the store's clock. */
  readonly pass: (ms: number) => Promise<void>;
  readonly until: Until;
  /** Equal by a virtual clock; by a real one so close that only a busy machine lies between. */
  readonly sameTime: (actualMs: number | undefined, expectedMs: number, what?: string) => void;
}

/** A real clock goes on between two looks at it. */
const SLACK_MS = 60_000;

export async function onStage<T>(
  setup: StoreSetup,
  body: (stage: Stage) => Promise<T>,
): Promise<T> {
  const opened = await setup.open();
  const { store, clock } = opened;
  const closers = [once(() => opened.close())];
  const until = patient(setup.patienceMs, clock);
  const nowMs = async () => (await store.readState('no such state')).nowMs;
  const stage: Stage = {
    store,
    clock,
    async second() {
      if (!opened.second) fail('open() gives no `second`, which a shared or durable store needs');
      const other = await opened.second();
      closers.unshift(once(() => other.close()));
      return other.store;
    },
    async begin() {
      if (!opened.begin) fail('open() gives no `begin`, which a store with transactions needs');
      const { tx, commit, rollback } = await opened.begin();
      // Either ends it: a case that fails in between must not leave its locks behind.
      const end = once(rollback);
      closers.unshift(end);
      const ended = (how: () => Promise<void>) => async () => {
        closers.splice(closers.indexOf(end), 1);
        await how();
      };
      return { tx, commit: ended(commit), rollback: ended(rollback) };
    },
    async outside() {
      if (!opened.outside) fail('open() gives no `outside`, which a store with transactions needs');
      const { txs, close } = await opened.outside();
      closers.unshift(once(close));
      return txs;
    },
    close: () => closers.at(-1)!(),
    nowMs,
    async pass(ms) {
      if (clock) return clock.advance(ms);
      const endMs = (await nowMs()) + ms;
      await until(`the store's clock`, async () => (await nowMs()) >= endMs);
    },
    until,
    sameTime(actualMs, expectedMs, what = 'time') {
      const slackMs = clock ? 0 : SLACK_MS;
      if (actualMs !== undefined && Math.abs(actualMs - expectedMs) <= slackMs) return;
      fail(`${what} is ${actualMs}, not ${expectedMs}`);
    },
  };
  try {
    deepEqual(
      store.capabilities,
      setup.capabilities,
      'The setup declares other capabilities than the store.',
    );
    return await body(stage);
  } finally {
    for (const close of closers) await close();
  }
}

function once(close: () => Promise<void>): () => Promise<void> {
  let closing: Promise<void> | undefined;
  return () => (closing ??= close());
}
