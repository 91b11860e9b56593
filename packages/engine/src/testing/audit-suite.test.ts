import { describe, expect, it } from 'vitest';
import { MemoryAudit } from '../adapters/memory/index.ts';
import type { AuditSink } from '../ports/audit.ts';
import { auditSuite } from './audit-suite.ts';

/** The cases that a sink makes fail. */
async function broken(make: (audit: MemoryAudit) => AuditSink): Promise<string[]> {
  const suite = auditSuite({
    async open() {
      const audit = new MemoryAudit();
      return { sink: make(audit), written: async () => audit.events, close: async () => {} };
    },
  });
  const failed: string[] = [];
  for (const { name, run } of suite) await run().catch(() => failed.push(name));
  return failed;
}

describe('the suite of an audit sink', () => {
  it.each<[string, (audit: MemoryAudit) => AuditSink, string]>([
    [
      'writes one by one',
      (audit) => ({
        async write(events) {
          for (const event of events) await audit.write([event]);
        },
      }),
      'audit: writes all of a batch or nothing',
    ],
    [
      'writes in any order',
      (audit) => ({ write: (events) => audit.write(events.toReversed()) }),
      'audit: keeps the order, within a batch and from batch to batch',
    ],
    [
      'drops facts that it does not know',
      (audit) => ({
        write: (events) =>
          audit.write(
            events.map(({ event_type, timestamp, instance, sequence }) => ({
              event_type,
              timestamp,
              instance,
              sequence,
            })),
          ),
      }),
      'audit: keeps every fact of an event',
    ],
    [
      'writes equal events once',
      (audit) => ({
        write: (events) =>
          audit.write([...new Map(events.map((one) => [one.sequence, one])).values()]),
      }),
      'audit: keeps equal events as often as they are written',
    ],
  ])('finds one that %s', async (_, make, fails) => {
    expect(await broken(make)).toContain(fails);
  });

  it('finds nothing in one that keeps its promises', async () => {
    expect(await broken((audit) => audit)).toEqual([]);
  });
});
