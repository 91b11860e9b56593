import { deepEqual, equal, rejects } from 'node:assert/strict';
import type { AuditEvent, AuditSink } from '../ports/audit.ts';
import { casesOf, type CaseTable, type ConformanceCase } from './suite.ts';

/** How the suite gets at the sink that it examines. */
export interface AuditSetup {
  /** A sink, for one case, that has written nothing yet. */
  open(): Promise<OpenedAudit>;
}

export interface OpenedAudit {
  sink: AuditSink;
  /** Everything that was written, in order. */
  written: () => Promise<readonly AuditEvent[]>;
  close(): Promise<void>;
}

/** Every promise of the port `AuditSink`, one by one. */
export function auditSuite(setup: AuditSetup): ConformanceCase[] {
  return casesOf<OpenedAudit, never>({ audit: cases }, {}, async (body) => {
    const opened = await setup.open();
    try {
      await body(opened);
    } finally {
      await opened.close();
    }
  });
}

const cases: CaseTable<OpenedAudit, never> = {
  'keeps every fact of an event': async ({ sink, written }) => {
    const facts = {
      ...event(1),
      operation: `ünï 测试 🚀 "quoted" 'single' \\ \n`,
      attempt_number: 2,
      delay_seconds: 1.05,
      exception_message: null,
      is_last: false,
      redrive: { policy: 'f1', seed: 0, context: { nested: [1, 'two', null] } },
    };
    await sink.write([facts]);
    deepEqual(await written(), [facts]);
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
      Array.from({ length: 20 }, (_1, i) => ({ ...event(i), instance: String(instance) })),
    );
    await Promise.all(batches.map((batch) => sink.write(batch)));
    const found = await written();
    equal(found.length, 200);
    for (const [instance, batch] of batches.entries()) {
      const own = found.filter((one) => one.instance === String(instance));
      deepEqual(own, batch);
    }
  },

  'keeps an event as it was, whatever the caller does with it': async ({ sink, written }) => {
    const changing = event(1);
    await sink.write([changing]);
    changing.sequence = 99;
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

function event(sequence: number): AuditEvent {
  return {
    event_type: 'retry_attempt',
    timestamp: '2025-01-01T00:00:00.000Z',
    instance: 'i-1',
    sequence,
  };
}

function sequences(events: readonly AuditEvent[]): number[] {
  return events.map(({ sequence }) => sequence);
}
