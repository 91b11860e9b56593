import { describe, expect, it } from 'vitest';
import { MemoryAudit } from '../../adapters/memory/index.ts';
import { type AuditEvent, type AuditSink, REGISTER_AGAIN_MS } from '../../ports/audit.ts';
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
  can: { pruning?: boolean; reading?: boolean; erasing?: boolean } = {},
): Promise<string[]> {
  const suite = auditSuite({
    ...can,
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

  it.each([
    ['prune', 'pruning'],
    ['read', 'reading'],
    ['erase', 'erasing'],
  ])('leaves out what a sink without `%s` cannot', (method, need) => {
    const suite = auditSuite({ open: () => Promise.reject(new Error('never')) });
    const isSkipped = ({ skip }: { skip?: string }) => skip === `declared as not ${need}`;
    expect(suite.filter(isSkipped)).toEqual(
      suite.filter(({ name }) => name.startsWith(`${method}:`)),
    );
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
    expect(await failing(prunes(changed), { pruning: true })).toContain(fails);
  });

  it('finds nothing in one that keeps its promises', async () => {
    expect(await failing(prunes(), { pruning: true })).toEqual([]);
  });
});

type Read = Required<AuditSink>['read'];

/** Reads as it should, but for what is changed. */
function reads(changed: (read: Read, audit: MemoryAudit) => Read) {
  return () => {
    const audit = new MemoryAudit();
    const read = changed((query) => audit.read(query), audit);
    const sink: AuditSink = { write: (events) => audit.write(events), read };
    return { sink, written: () => audit.events };
  };
}

describe('the suite of a sink that is read', () => {
  it.each<[string, (read: Read, audit: MemoryAudit) => Read, string]>([
    [
      'begins with the oldest',
      (read) => async (query) => {
        const page = await read(query);
        return { ...page, events: page.events.toReversed() };
      },
      'read: gives whole events, the newest first',
    ],
    [
      'gives the columns of its table only',
      (read) => async (query) => {
        const page = await read(query);
        const events = page.events.map(({ id, event }) => {
          const { event_type, timestamp, sequence } = event;
          return { id, event: { event_type, timestamp, sequence } };
        });
        return { ...page, events };
      },
      'read: gives whole events, the newest first',
    ],
    [
      'goes on with the last event of the page before',
      (read) => async (query) => {
        const page = await read(query);
        return page.next === undefined ? page : { ...page, next: page.next + 1 };
      },
      'read: gives page after page, each event once, and ends',
    ],
    [
      'leaves one out between two pages',
      (read) => async (query) => {
        const page = await read(query);
        return page.next === undefined ? page : { ...page, next: page.next - 1 };
      },
      'read: gives page after page, each event once, and ends',
    ],
    [
      'never goes on',
      (read) => async (query) => ({ events: (await read(query)).events }),
      'read: gives page after page, each event once, and ends',
    ],
    [
      'promises more where there is none',
      (read) => async (query) => {
        const page = await read(query);
        const last = page.events.at(-1);
        return last ? { ...page, next: last.id } : page;
      },
      'read: has no `next` where the last page is full',
    ],
    [
      'knows no limit',
      (read) => (query) => read({ ...query, limit: 1000 }),
      'read: keeps to its limit',
    ],
    [
      'counts its pages from the end',
      (_, audit) =>
        async ({ before = 0, limit }) => {
          const events = audit.events.toReversed().map((event, i) => ({ id: i, event }));
          const page = events.slice(before, before + limit);
          return { events: page, ...(page.length < limit ? {} : { next: before + limit }) };
        },
      'read: goes on where it was, whatever is written meanwhile',
    ],
    [
      'looks at no type',
      (read) => (query) => {
        const { type: _, ...rest } = query;
        return read(rest);
      },
      'read: finds by the type',
    ],
    [
      'looks at no message',
      (read) => (query) => {
        const { messageId: _, ...rest } = query;
        return read(rest);
      },
      'read: finds by the message, of decisions and of what was done by hand',
    ],
    [
      'knows messages of decisions only',
      (read) => async (query) => {
        const page = await read(query);
        if (query.messageId === undefined) return page;
        const events = page.events.filter(({ event }) => event.redrive?.['message_id']);
        return { ...page, events };
      },
      'read: finds by the message, of decisions and of what was done by hand',
    ],
    [
      'takes any mention of an id for the message',
      (read, audit) => async (query) => {
        if (query.messageId === undefined) return read(query);
        const { messageId } = query;
        const events = audit.events
          .map((event, i) => ({ id: i, event }))
          .filter(({ event }) => JSON.stringify(event).includes(messageId));
        return { events: events.toReversed() };
      },
      'read: takes no other mention of an id for the message',
    ],
    [
      'filters what one page has found',
      (read) =>
        async ({ messageId, ...query }) => {
          const page = await read(query);
          const events = page.events.filter(
            ({ event }) =>
              messageId === undefined ||
              [event['message_id'], event.redrive?.['message_id']].includes(messageId),
          );
          return { events };
        },
      'read: takes no other mention of an id for the message',
    ],
    [
      'has the end among what it finds',
      (read) => (query) =>
        read(query.toMs === undefined ? query : { ...query, toMs: query.toMs + 1 }),
      'read: finds by the time, from then on and before then',
    ],
    [
      'stops at the first event that is too old',
      (read) => async (query) => {
        const { fromMs = -Infinity } = query;
        const { fromMs: _, ...rest } = query;
        const page = await read(rest);
        const isOld = ({ event }: { event: AuditEvent }) => Date.parse(event.timestamp) < fromMs;
        const end = page.events.findIndex(isOld);
        return end < 0 ? page : { events: page.events.slice(0, end) };
      },
      'read: finds what a clock that was off has dated elsewhere',
    ],
    [
      'knows one filter at a time',
      (read) => (query) => {
        const { type: _, ...rest } = query;
        return read(query.messageId === undefined ? query : rest);
      },
      'read: finds by all of it together, page after page',
    ],
    [
      'hands out what it keeps',
      (read, audit) => async (query) => {
        const page = await read(query);
        const kept = ({ id }: { id: number }) => ({ id, event: audit.events[id - 1]! });
        return { ...page, events: page.events.map(kept) };
      },
      'read: gives what its reader does to it to nobody else',
    ],
    [
      'finds something in nothing',
      (read) => async (query) => ({ next: 1, ...(await read(query)) }),
      'read: finds nothing where nothing was written',
    ],
  ])('finds one that %s', async (_, changed, fails) => {
    expect(await failing(reads(changed), { reading: true })).toContain(fails);
  });

  it('finds nothing in one that keeps its promises', async () => {
    expect(
      await failing(
        reads((read) => read),
        { reading: true },
      ),
    ).toEqual([]);
  });
});

describe('the suite of a sink that erases', () => {
  /** Erases as it should, but for what is changed. */
  function erases(changed: (audit: MemoryAudit) => Partial<AuditSink>) {
    return () => {
      const audit = new MemoryAudit();
      const write: AuditSink['write'] = (events) => audit.write(events);
      const erase: AuditSink['erase'] = (id) => audit.erase(id);
      return { sink: { write, erase, ...changed(audit) }, written: () => audit.events };
    };
  }

  it.each<[string, (audit: MemoryAudit) => Partial<AuditSink>, string]>([
    [
      'erases nothing',
      () => ({ erase: async () => 3 }),
      'erase: takes the texts out of every event of the message',
    ],
    [
      'forgets what it erased',
      (audit) => ({
        async write(events) {
          await audit.write(events);
          // The texts are back.
          for (const [i, event] of events.entries()) {
            Object.assign(audit.events.at(i - events.length)!, structuredClone(event));
          }
        },
      }),
      'erase: erases what is written later, too: an instance may have held it back',
    ],
    [
      'erases every message that it is asked for in any event',
      (audit) => ({
        async erase(id) {
          let count = 0;
          for (const { redrive } of audit.events) {
            const other = redrive?.['message_id'] as string | undefined;
            if (other !== undefined) count += await audit.erase(other);
          }
          return count + (await audit.erase(id));
        },
      }),
      'erase: leaves the events of other messages alone, whatever they say',
    ],
  ])('finds one that %s', async (_, changed, fails) => {
    expect(await failing(erases(changed), { erasing: true })).toContain(fails);
  });

  it('finds nothing in one that keeps its promises', async () => {
    expect(
      await failing(
        erases(() => ({})),
        { erasing: true },
      ),
    ).toEqual([]);
  });
});
