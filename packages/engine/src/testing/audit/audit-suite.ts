import { deepEqual, equal, rejects } from 'node:assert/strict';
import { type AuditEvent, type AuditSink, REGISTER_AGAIN_MS } from '../../ports/audit.ts';
import { eraseCases } from './audit-erase.ts';
import { readCases } from './audit-read.ts';
import { casesOf, type CaseTable, type ConformanceCase, needing } from '../suite.ts';

/** How the suite gets at the sink that it examines. */
export interface AuditSetup {
  /** A sink, for one case, that has written nothing yet. */
  open(): Promise<OpenedAudit>;
  /** Whether it has the method `prune`. */
  pruning?: boolean;
  /** Whether it has the method `read`. */
  reading?: boolean;
  /** Whether it has the method `erase`. */
  erasing?: boolean;
}

type Need = 'pruning' | 'reading' | 'erasing';

export interface OpenedAudit {
  sink: AuditSink;
  /** Everything that was written, in order. */
  written: () => Promise<readonly AuditEvent[]>;
  close(): Promise<void>;
}

/** Every promise of the port `AuditSink`, one by one. */
export function auditSuite(setup: AuditSetup): ConformanceCase[] {
  const { pruning = false, reading = false, erasing = false } = setup;
  const capabilities = { pruning, reading, erasing };
  const tables = { audit: cases, prune: pruneCases, read: readCases, erase: eraseCases };
  return casesOf<OpenedAudit, Need>(tables, capabilities, async (body) => {
    const opened = await setup.open();
    try {
      await body(opened);
    } finally {
      await opened.close();
    }
  });
}

const cases: CaseTable<OpenedAudit, Need> = {
  'keeps every fact of an event': async ({ sink, written }) => {
    const facts = {
      ...event(1),
      operation: `ünï 测试 🚀 "quoted" 'single' \\ \n`,
      attempt_number: 2,
      delay_seconds: 1.05,
      exception_message: null,
      is_last: false,
      redrive: {
        ...placeOf(1),
        policy: 'f1',
        seed: 0,
        key: 'k\u2028\u2029\ud800',
        context: { nested: [1, 'two', null] },
      },
    };
    await sink.write([facts]);
    deepEqual(await written(), [facts]);
  },

  'keeps an event of a strict trail, without the object redrive': async ({ sink, written }) => {
    const { redrive: _, ...strict } = event(1);
    await sink.write([strict]);
    deepEqual(await written(), [strict]);
  },

  'keeps the order, within a batch and from batch to batch': async ({ sink, written }) => {
    await sink.write([event(1), event(2)]);
    await sink.write([event(3)]);
    await sink.write([event(4), event(5)]);
    deepEqual(sequences(await written()), [1, 2, 3, 4, 5]);
  },

  'keeps equal events as often as they are written': async ({ sink, written }) => {
    await sink.write([event(1), event(1)]);
    await sink.write([event(1)]);
    equal((await written()).length, 3);
  },

  'takes nothing at all': async ({ sink, written }) => {
    await sink.write([]);
    deepEqual(await written(), []);
  },

  'takes a thousand at once': async ({ sink, written }) => {
    const events = Array.from({ length: 1000 }, (_, i) => event(i));
    await sink.write(events);
    deepEqual(sequences(await written()), sequences(events));
  },

  'takes a large event': async ({ sink, written }) => {
    const large = { ...event(1), exception_message: 'x'.repeat(100_000) };
    await sink.write([large]);
    deepEqual(await written(), [large]);
  },

  'keeps batches that come at once whole, each in its order': async ({ sink, written }) => {
    const batches = Array.from({ length: 10 }, (_, instance) =>
      Array.from({ length: 20 }, (_1, i) => event(i, String(instance))),
    );
    await Promise.all(batches.map((batch) => sink.write(batch)));
    const found = await written();
    equal(found.length, 200);
    for (const [instance, batch] of batches.entries()) {
      const own = found.filter(({ redrive }) => redrive?.instance === String(instance));
      deepEqual(own, batch);
    }
  },

  'keeps an event as it was, whatever the caller does with it': async ({ sink, written }) => {
    const changing = event(1);
    await sink.write([changing]);
    changing.redrive!.sequence = 99;
    deepEqual(sequences(await written()), [1]);
  },

  'writes all of a batch or nothing': async ({ sink, written }) => {
    const impossible = { ...event(2), fact: 1n };
    await rejects(sink.write([event(1), impossible, event(3)]));
    deepEqual(await written(), []);
    await sink.write([event(4)]);
    deepEqual(sequences(await written()), [4]);
  },
};

const DAY_MS = 86_400_000;

const pruneCases: CaseTable<OpenedAudit, Need> = needing('pruning', {
  'deletes what is older, and nothing else': async ({ sink, written }) => {
    await sink.write([aged(1, 3 * DAY_MS), aged(2, 2 * DAY_MS), aged(3, DAY_MS / 2), aged(4, 0)]);
    equal(await sink.prune?.(DAY_MS, 1000), 2);
    deepEqual(sequences(await written()), [3, 4]);
    equal(await sink.prune?.(DAY_MS, 1000), 0);
  },

  'deletes the oldest first, and no more than its limit': async ({ sink, written }) => {
    await sink.write(Array.from({ length: 10 }, (_, i) => aged(i + 1, 3 * DAY_MS - i)));
    equal(await sink.prune?.(DAY_MS, 4), 4);
    deepEqual(sequences(await written()), [5, 6, 7, 8, 9, 10]);
  },

  'deletes thousands in steps': async ({ sink, written }) => {
    const old = Array.from({ length: 2500 }, (_, i) => aged(i + 1, 2 * DAY_MS));
    await sink.write(old);
    await sink.write([aged(9999, 0)]);
    equal(await sink.prune?.(DAY_MS, 10_000), 2500);
    deepEqual(sequences(await written()), [9999]);
  },

  'keeps a policy for as long as decisions that are kept may need it': async (opened) => {
    const { sink, written } = opened;
    const policy = { event_type: 'policy_registered', policy: 'f1', definition: {} };
    const needed = { ...aged(2, DAY_MS + REGISTER_AGAIN_MS / 2), ...policy };
    const unneeded = { ...aged(1, DAY_MS + 2 * REGISTER_AGAIN_MS), ...policy };
    await sink.write([unneeded, needed, aged(3, DAY_MS + 1000), aged(4, 0)]);
    equal(await sink.prune?.(DAY_MS, 1000), 2);
    deepEqual(sequences(await written()), [2, 4]);
  },

  'is not stopped by one whose clock was ahead': async ({ sink, written }) => {
    await sink.write([aged(1, -DAY_MS), aged(2, 2 * DAY_MS), aged(3, 2 * DAY_MS)]);
    equal(await sink.prune?.(DAY_MS, 1000), 2);
    deepEqual(sequences(await written()), [1]);
  },

  'takes any limit and any age': async ({ sink, written }) => {
    await sink.write([aged(1, DAY_MS)]);
    equal(await sink.prune?.(1e15, 1000), 0);
    equal(await sink.prune?.(DAY_MS / 2, 1e12), 1);
    deepEqual(await written(), []);
  },
});

function event(sequence: number, instance = 'i-1'): AuditEvent {
  return {
    event_type: 'retry_attempt',
    timestamp: '2025-01-01T00:00:00.000Z',
    redrive: { ...placeOf(sequence), instance },
  };
}

/** So old, by the clock of this machine. */
function aged(sequence: number, ageMs: number): AuditEvent {
  return { ...event(sequence), timestamp: new Date(Date.now() - ageMs).toISOString() };
}

function placeOf(sequence: number) {
  return { instance: 'i-1', run: 1, sequence };
}

function sequences(events: readonly AuditEvent[]): unknown[] {
  return events.map(({ redrive }) => redrive?.sequence);
}
