import { deepEqual, equal, ok } from 'node:assert/strict';
import { replayAudit } from 'redrive';
import type { AuditEvent } from '../../ports/audit.ts';
import type { OpenedAudit } from './audit-suite.ts';
import { uuid } from '../fixtures.ts';
import { type CaseTable, needing } from '../suite.ts';

/** What must not be found in any event afterwards. */
const MARK = 'Eva Muster 7731';

export const eraseCases: CaseTable<OpenedAudit, 'erasing'> = needing('erasing', {
  'takes the texts out of every event of the message': async ({ sink, written }: OpenedAudit) => {
    const id = uuid();
    await sink.write([decision(1, id), given(2, id), action(3, id)]);
    equal(await sink.erase?.(id), 3);
    const events = await written();
    ok(!JSON.stringify(events).includes(MARK), 'no text of the message is left');
    deepEqual(
      events.map(({ erased_at: at }) => typeof at),
      ['string', 'string', 'string'],
    );
  },

  'leaves all else as it was, so that the trail replays': async ({ sink, written }) => {
    const id = uuid();
    const before = [decision(1, id), given(2, id), action(3, id)];
    await sink.write(before);
    await sink.erase?.(id);
    const after = await written();
    deepEqual(
      after,
      before.map((event, i) => {
        const { erased_at: at } = after[i]!;
        return { ...event, ...emptied(event), erased_at: at };
      }),
    );
    const { events, missing, twins, unreadable, erased } = await replayAudit(after);
    deepEqual(
      { events, missing, twins, unreadable, erased },
      {
        events: 3,
        missing: 0,
        twins: 0,
        unreadable: 0,
        erased: 3,
      },
    );
  },

  'leaves the events of other messages alone, whatever they say': async ({ sink, written }) => {
    const id = uuid();
    const others = [
      decision(2, uuid()),
      { ...action(3, null), details: { filter: { messageId: id }, message_id: id } },
      { ...decision(4, uuid()), exception_message: `"message_id":"${id}"` },
    ];
    await sink.write([decision(1, id), ...others]);
    equal(await sink.erase?.(id), 1);
    deepEqual((await written()).slice(1), others);
  },

  'does nothing the second time, and nothing for a message that it does not know': async (
    opened,
  ) => {
    const { sink, written } = opened;
    const id = uuid();
    await sink.write([decision(1, id)]);
    await sink.erase?.(id);
    const once = await written();
    equal(await sink.erase?.(id), 0);
    equal(await sink.erase?.(uuid()), 0);
    equal(await sink.erase?.('no such id'), 0);
    deepEqual(await written(), once);
  },

  'erases what is written later, too: an instance may have held it back': async (opened) => {
    const { sink, written } = opened;
    const id = uuid();
    await sink.erase?.(id);
    const other = decision(2, uuid());
    await sink.write([decision(1, id), other, given(3, id)]);
    const events = await written();
    deepEqual(events[1], other);
    deepEqual(
      events.map(({ redrive }) => redrive?.sequence),
      [1, 2, 3],
    );
    ok(!JSON.stringify([events[0], events[2]]).includes(MARK), 'late events are erased');
  },

  'erases what is written at the same time': async ({ sink, written }) => {
    const id = uuid();
    const writes = Array.from({ length: 20 }, (_, i) => sink.write([decision(i, id)]));
    await Promise.all([...writes.slice(0, 10), sink.erase?.(id), ...writes.slice(10)]);
    const events = await written();
    equal(events.length, 20);
    ok(!JSON.stringify(events).includes(MARK), 'no event comes between');
  },

  'finds a message among thousands': async ({ sink, written }) => {
    const id = uuid();
    const ids = Array.from({ length: 2000 }, () => uuid());
    await sink.write(ids.slice(0, 1000).map((one, i) => decision(i, one)));
    await sink.write([decision(1000, id)]);
    await sink.write(ids.slice(1000).map((one, i) => decision(1001 + i, one)));
    equal(await sink.erase?.(id), 1);
    const events = await written();
    equal(events.filter((event) => event['erased_at'] !== undefined).length, 1);
    equal(events[1000]?.['exception_message'], null);
  },
});

function decision(sequence: number, id: string): AuditEvent {
  return {
    event_type: 'retry_attempt',
    timestamp: '2025-01-01T00:00:00.000Z',
    exception_type: 'Error',
    exception_message: `No ${MARK} here \ud800`,
    tenant_id: MARK,
    correlation_id: MARK,
    trace_id: MARK,
    redrive: { instance: 'i-1', run: 1, sequence, message_id: id, key: id },
  };
}

function given(sequence: number, id: string): AuditEvent {
  const { exception_message: text, ...event } = decision(sequence, id);
  return { ...event, event_type: 'retry_exhausted', final_exception_message: text };
}

function action(sequence: number, id: string | null): AuditEvent {
  return {
    event_type: 'operator_action',
    timestamp: '2025-01-01T00:00:00.000Z',
    action: 'edit',
    by: 'ann',
    message_id: id,
    details: { to: { kind: 'http', address: `https://a.example/?name=${MARK}` } },
    redrive: { instance: 'i-1', run: 1, sequence },
  };
}

/** What an erased event has in place of these fields, as far as it had them. */
function emptied(event: AuditEvent): Record<string, null> {
  const names =
    'exception_message final_exception_message tenant_id correlation_id trace_id details';
  return Object.fromEntries(
    names.split(' ').flatMap((name) => (name in event ? [[name, null]] : [])),
  );
}
