import { deepEqual, equal, ok } from 'node:assert/strict';
import type { AuditEvent, AuditQuery, AuditRecord, AuditSink } from '../../ports/audit.ts';
import type { OpenedAudit } from './audit-suite.ts';
import { uuid } from '../fixtures.ts';
import { type CaseTable, needing } from '../suite.ts';

const START_MS = Date.parse('2025-01-01T00:00:00.000Z');

export const readCases: CaseTable<OpenedAudit, 'reading'> = needing('reading', {
  'finds nothing where nothing was written': async ({ sink }: OpenedAudit) => {
    deepEqual(await sink.read?.({ limit: 10 }), { events: [] });
  },

  'gives whole events, the newest first': async ({ sink, written }: OpenedAudit) => {
    const odd = { operation: `ünï 测试 🚀 "quoted" \\ \n\u0000`, key: '\ud800', count: null };
    await sink.write([event(1, odd), event(2, { redrive: placeOf(2), nested: [{ a: 1 }] })]);
    const { redrive: _, ...strict } = event(3);
    await sink.write([strict]);
    deepEqual(eventsOf(await all(sink, {})), [...(await written())].toReversed());
  },

  'gives page after page, each event once, and ends': async ({ sink }: OpenedAudit) => {
    await sink.write(Array.from({ length: 25 }, (_, i) => event(i)));
    const page = await sink.read?.({ limit: 10 });
    deepEqual(sequences(page?.events), range(24, 15));
    equal(page?.next, page?.events.at(-1)?.id);
    const found = await all(sink, { limit: 10 });
    deepEqual(sequences(found), range(24, 0));
    const ids = found.map(({ id }) => id);
    deepEqual(
      ids,
      [...new Set(ids)].toSorted((a, b) => b - a),
    );
  },

  'has no `next` where the last page is full': async ({ sink }: OpenedAudit) => {
    await sink.write([event(1), event(2), event(3)]);
    const page = await sink.read?.({ limit: 3 });
    deepEqual([page?.events.length, page?.next], [3, undefined]);
  },

  'keeps to its limit': async ({ sink }: OpenedAudit) => {
    await sink.write([event(1), event(2), event(3)]);
    deepEqual(sequences((await sink.read?.({ limit: 1 }))?.events), [3]);
    deepEqual((await sink.read?.({ limit: 0 }))?.events, []);
    deepEqual(sequences((await sink.read?.({ limit: 1e12 }))?.events), [3, 2, 1]);
  },

  'goes on where it was, whatever is written meanwhile': async ({ sink }: OpenedAudit) => {
    await sink.write([event(1), event(2)]);
    const { next } = await sink.read!({ limit: 1 });
    await sink.write([event(3)]);
    deepEqual(sequences((await sink.read?.({ before: next!, limit: 10 }))?.events), [1]);
  },

  'finds by the type': async ({ sink }: OpenedAudit) => {
    const types = ['retry_attempt', 'retry_exhausted', 'operator_action', 'retry_attempt'];
    await sink.write(types.map((type, i) => event(i, { event_type: type })));
    deepEqual(sequences(await all(sink, { type: 'retry_attempt' })), [3, 0]);
    deepEqual(sequences(await all(sink, { type: 'operator_action' })), [2]);
    deepEqual(await all(sink, { type: 'retry' }), []);
    deepEqual(await all(sink, { type: 'RETRY_ATTEMPT' }), []);
    deepEqual(await all(sink, { type: `%' OR true --\u0000` }), []);
  },

  'finds by the message, of decisions and of what was done by hand': async (opened) => {
    const { sink } = opened;
    const id = uuid();
    const others = uuid();
    await sink.write([
      event(1, { redrive: { ...placeOf(1), message_id: id } }),
      event(2, { redrive: { ...placeOf(2), message_id: others } }),
      event(3, { message_id: id, event_type: 'operator_action' }),
      event(4, { message_id: null, event_type: 'operator_action' }),
      event(5),
    ]);
    deepEqual(sequences(await all(sink, { messageId: id })), [3, 1]);
    deepEqual(sequences(await all(sink, { messageId: id, type: 'operator_action' })), [3]);
    deepEqual(await all(sink, { messageId: uuid() }), []);
    deepEqual(await all(sink, { messageId: '' }), []);
    deepEqual(await all(sink, { messageId: 'null' }), []);
    deepEqual(await all(sink, { messageId: id.slice(0, -1) }), []);
  },

  'takes no other mention of an id for the message': async ({ sink }: OpenedAudit) => {
    const id = uuid();
    await sink.write([
      event(1, { redrive: { ...placeOf(1), message_id: id } }),
      ...range(9, 2).map((i) =>
        event(i, { details: { message_id: id }, correlation_id: id, message_id: null }),
      ),
    ]);
    deepEqual(sequences(await all(sink, { messageId: id, limit: 2 })), [1]);
  },

  'finds by the time, from then on and before then': async ({ sink }: OpenedAudit) => {
    await sink.write([1, 2, 3, 4].map((i) => event(i, { timestamp: isoOf(START_MS + i) })));
    const found = async (query: Partial<AuditQuery>) => sequences(await all(sink, query));
    deepEqual(await found({ fromMs: START_MS + 3 }), [4, 3]);
    deepEqual(await found({ toMs: START_MS + 3 }), [2, 1]);
    deepEqual(await found({ fromMs: START_MS + 2, toMs: START_MS + 4 }), [3, 2]);
    deepEqual(await found({ fromMs: START_MS + 5 }), []);
    deepEqual(await found({ toMs: START_MS + 1 }), []);
    deepEqual(await found({ fromMs: START_MS + 1.5, toMs: START_MS + 3.5 }), [3, 2]);
    deepEqual(await found({ fromMs: -1e300, toMs: 1e300 }), [4, 3, 2, 1]);
  },

  'finds what a clock that was off has dated elsewhere': async ({ sink }: OpenedAudit) => {
    const times = [5, 1, 2, 9, 3];
    await sink.write(times.map((ms, i) => event(i, { timestamp: isoOf(START_MS + ms) })));
    const found = await all(sink, { fromMs: START_MS + 3, limit: 1 });
    deepEqual(sequences(found), [4, 3, 0]);
  },

  'finds by all of it together, page after page': async ({ sink }: OpenedAudit) => {
    const id = uuid();
    await sink.write(
      range(29, 0).map((i) =>
        event(i, {
          event_type: i % 2 ? 'retry_attempt' : 'retry_exhausted',
          timestamp: isoOf(START_MS + i),
          redrive: { ...placeOf(i), message_id: i % 3 ? uuid() : id },
        }),
      ),
    );
    const query = { type: 'retry_attempt', messageId: id, fromMs: START_MS + 5 };
    const wanted = [9, 15, 21];
    deepEqual(sequences(await all(sink, { ...query, toMs: START_MS + 25, limit: 1 })), wanted);
  },

  'gives what its reader does to it to nobody else': async ({ sink }: OpenedAudit) => {
    await sink.write([event(1, { nested: { a: 1 } })]);
    const [first] = await all(sink, {});
    (first!.event['nested'] as { a: number }).a = 2;
    const [second] = await all(sink, {});
    deepEqual(second!.event['nested'], { a: 1 });
  },
});

/** By as many pages as it takes. A page may be empty, but must lead on. */
async function all(sink: AuditSink, query: Partial<AuditQuery>): Promise<AuditRecord[]> {
  const found: AuditRecord[] = [];
  for (let before: number | undefined; ;) {
    const asked = { limit: 10, ...query, ...(before === undefined ? {} : { before }) };
    const page = await sink.read!(asked);
    found.push(...page.events);
    if (page.next === undefined) return found;
    ok(before === undefined || page.next < before, 'it goes on');
    before = page.next;
  }
}

function event(sequence: number, facts: Partial<AuditEvent> = {}): AuditEvent {
  return {
    event_type: 'retry_attempt',
    timestamp: isoOf(START_MS),
    redrive: placeOf(sequence),
    sequence,
    ...facts,
  };
}

function placeOf(sequence: number) {
  return { instance: 'i-1', run: 1, sequence };
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}

function eventsOf(records: readonly AuditRecord[]): AuditEvent[] {
  return records.map((record) => record.event);
}

function sequences(records: readonly AuditRecord[] = []): unknown[] {
  return records.map((record) => record.event['sequence']);
}

/** Down from one to the other. */
function range(high: number, low: number): number[] {
  return Array.from({ length: high - low + 1 }, (_, i) => high - i);
}
