import { describe, expect, it } from 'vitest';
import { MemoryAudit } from '../adapters/memory/index.ts';
import { type AuditEvent, type AuditSink, REGISTER_AGAIN_MS } from '../ports/audit.ts';
import { auditSuite } from './audit-suite.ts';

/** The cases that a sink makes fail. */
async function broken(make: (audit: MemoryAudit) => AuditSink): Promise<string[]> {
  return failing(() => {
    const audit = new MemoryAudit();
    return { sink: make(audit), written: () => audit.events };
  });
}

async function failing(
  make: () => { sink: AuditSink; written: () => readonly AuditEvent[] },
  pruning = false,
): Promise<string[]> {
  const suite = auditSuite({
    pruning,
    async open() {
      const { sink, written } = make();
      return { sink, written: async () => written(), close: async () => {} };
    },
  });
  const failed: string[] = [];
  for (const { name, skip, run } of suite) {
    if (skip === undefined) await run().catch(() => failed.push(name));
  }
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
            events.map(({ event_type, timestamp, redrive }) => ({
              event_type,
              timestamp,
              ...(redrive ? { redrive } : {}),
            })),
          ),
      }),
      'audit: keeps every fact of an event',
    ],
    [
      'needs the object redrive',
      (audit) => ({
        write: (events) => audit.write(events.filter(({ redrive }) => redrive)),
      }),
      'audit: keeps an event of a strict trail, without the object redrive',
    ],
    [
      'writes equal events once',
      (audit) => ({
        write: (events) =>
          audit.write([...new Map(events.map((one) => [one.redrive?.sequence, one])).values()]),
      }),
      'audit: keeps equal events as often as they are written',
    ],
  ])('finds one that %s', async (_, make, fails) => {
    expect(await broken(make)).toContain(fails);
  });

  it('finds nothing in one that keeps its promises', async () => {
    expect(await broken((audit) => audit)).toEqual([]);
  });

  it('leaves pruning out where a sink cannot', () => {
    const suite = auditSuite({ open: () => Promise.reject(new Error('never')) });
    const isSkipped = ({ skip }: { skip?: string }) => skip === 'declared as not pruning';
    expect(suite.filter(isSkipped)).toEqual(suite.filter(({ name }) => name.startsWith('prune:')));
    expect(suite.some(isSkipped)).toBe(true);
  });
});

/** Whether an event goes; `isBefore`: it is older than the age by so much more. */
type Goes = (event: AuditEvent, isBefore: (moreMs: number) => boolean) => boolean;

/** Prunes as it should, but for what is changed. */
function prunes(changed: { goes?: Goes; isUnlimited?: boolean; newestFirst?: boolean } = {}) {
  const goes: Goes =
    changed.goes ??
    (({ event_type: type }, isBefore) =>
      isBefore(type === 'policy_registered' ? REGISTER_AGAIN_MS : 0));
  return () => {
    let kept: AuditEvent[] = [];
    const sink: AuditSink = {
      async write(events) {
        kept = [...kept, ...events.map((one) => JSON.parse(JSON.stringify(one)) as AuditEvent)];
      },
      async prune(olderThanMs, limit) {
        const order = changed.newestFirst ? kept.toReversed() : kept;
        const old = order.filter((event) => {
          const ageMs = Date.now() - Date.parse(event.timestamp);
          return goes(event, (moreMs) => ageMs > olderThanMs + moreMs);
        });
        const gone = new Set(changed.isUnlimited ? old : old.slice(0, limit));
        kept = kept.filter((event) => !gone.has(event));
        return gone.size;
      },
    };
    return { sink, written: () => kept };
  };
}

describe('the suite of a sink that prunes', () => {
  it.each<[string, Parameters<typeof prunes>[0], string]>([
    ['prunes nothing', { goes: () => false }, 'prune: deletes what is older, and nothing else'],
    ['prunes all', { goes: () => true }, 'prune: deletes what is older, and nothing else'],
    [
      'prunes policies like the rest',
      { goes: (_, isBefore) => isBefore(0) },
      'prune: keeps a policy for as long as decisions that are kept may need it',
    ],
    [
      'keeps policies for ever',
      { goes: (event, isBefore) => event.event_type !== 'policy_registered' && isBefore(0) },
      'prune: keeps a policy for as long as decisions that are kept may need it',
    ],
    [
      'knows no limit',
      { isUnlimited: true },
      'prune: deletes the oldest first, and no more than its limit',
    ],
    [
      'begins with the newest',
      { newestFirst: true },
      'prune: deletes the oldest first, and no more than its limit',
    ],
  ])('finds one that %s', async (_, changed, fails) => {
    expect(await failing(prunes(changed), true)).toContain(fails);
  });

  it('finds nothing in one that keeps its promises', async () => {
    expect(await failing(prunes(), true)).toEqual([]);
  });
});
