import { replayAudit } from 'redrive';
import { virtualClock } from 'redrive/testing';
import { describe, expect, test } from 'vitest';
import { memory } from '../adapters/memory/index.ts';
import { MemoryAudit } from '../adapters/memory/audit.ts';
import { createEngine } from '../engine.ts';
import { notReached } from './erasure.ts';
import { giveUp } from '../model/outcomes.ts';
import type { AuditSink } from '../ports/audit.ts';
import type { InboxItem } from '../ports/inbox.ts';
import { createTestEngine } from '../testing/test-engine.ts';

const MARK = 'Eva Muster 7731';

const words = (places: readonly { what: string }[]) => places.map(({ what }) => what);

describe('erasing an item', () => {
  test('reaches every event of its message, and the trail still replays', async () => {
    const audit = new MemoryAudit();
    const engine = createTestEngine({ audit, policy: { maxAttempts: 2 } });
    engine.handle('orders', () => {
      throw Object.assign(new Error(`No ${MARK} here`), { code: 'ECONNRESET' });
    });
    const headers = { 'x-correlation-id': MARK, 'x-tenant-id': MARK };
    await engine.submit('orders', {}, { context: { headers } });
    await engine.submit('orders', {}, { context: { headers: { 'x-correlation-id': 'another' } } });
    await engine.drain();
    await engine.advance('1d');
    const [item] = (await engine.inbox.items({ limit: 10 })).items.toReversed();
    await engine.inbox.edit(item!.id, { payload: { name: MARK } });
    const before = await replayAudit(structuredClone(audit.events));
    await engine.inbox.erase(item!.id, { by: 'the officer' });
    await engine.stop();
    const ofMessage = audit.events.filter((event) =>
      JSON.stringify(event).includes(item!.messageId),
    );
    expect(JSON.stringify(ofMessage)).not.toContain(MARK);
    expect(ofMessage.some((event) => event['erased_at'] !== undefined)).toBe(true);
    expect(JSON.stringify(audit.events)).toContain('another');
    const after = await replayAudit(audit.events);
    expect(after).toMatchObject({ different: 0, missing: 0, same: before.same });
    expect(after.erased).toBeGreaterThan(0);
  });

  test('leaves nothing in the documents and events of the bulk job that took it', async () => {
    const clock = virtualClock();
    const store = memory({ clock });
    const audit = new MemoryAudit();
    let stopped = () => {};
    const isStopped = new Promise<void>((resolve) => {
      stopped = resolve;
    });
    const engine = createEngine({
      store,
      clock,
      audit,
      on: ({ type }) => {
        if (type === 'jobEnded') stopped();
      },
    }).handle('orders', () => giveUp(`No ${MARK} here`));
    await engine.start();
    await engine.submit('orders', {}, { orderingKey: MARK });
    const advance = async (until: () => Promise<boolean>) => {
      while (!(await until())) await clock.advance(50);
    };
    await advance(async () => (await engine.inbox.items()).items.length === 1);
    const { id } = await engine.inbox.replayAll({ orderingKey: MARK }, { canary: [1] });
    await advance(async () => (await engine.inbox.job(id)).state === 'stopped');
    await isStopped;
    expect((await engine.inbox.job(id)).why).toContain(MARK);
    const [item] = (await engine.inbox.items({ state: 'open' })).items;
    const { notReached: places } = await engine.inbox.erase(item!.id);
    expect(words(places)).toContain('bulk_filter');
    expect((await engine.inbox.job(id)).why).toBe(
      '1 of 1 came back in step 1. The last failure: ERASED',
    );
    await engine.stop();
    const { documents } = await store.readState('');
    expect(JSON.stringify([documents, audit.events])).not.toContain(MARK);
    expect(audit.events.find((one) => one['action'] === 'replayAll')).toMatchObject({
      details: { filter: { orderingKeyHash: expect.any(String) } },
    });
  });

  test('says so where the sink cannot erase, and fails where it fails to', async () => {
    const plain: AuditSink = { write: async () => undefined };
    const failing: AuditSink = { ...plain, erase: () => Promise.reject(new Error('disk full')) };
    const erased = async (audit: AuditSink | false) => {
      const engine = createTestEngine({ audit }).handle('orders', () => giveUp('no'));
      await engine.submit('orders', {});
      await engine.drain();
      try {
        return await engine.inbox.erase(1);
      } finally {
        await engine.stop();
      }
    };
    expect(words((await erased(plain)).notReached)).toEqual(['audit_sink', 'destination', 'logs']);
    expect(words((await erased(false)).notReached)).toEqual(['destination', 'logs']);
    await expect(erased(failing)).rejects.toMatchObject({
      code: 'AUDIT_NOT_ERASED',
      cause: expect.objectContaining({ message: 'disk full' }),
    });
  });

  test('is refused in delivery, and then no event is touched', async () => {
    const audit = new MemoryAudit();
    const engine = createTestEngine({ audit }).handle('orders', () => giveUp(MARK));
    await engine.submit('orders', {});
    await engine.drain();
    await engine.pause('handler:orders');
    await engine.inbox.replay(1);
    const before = structuredClone(audit.events);
    await expect(engine.inbox.erase(1)).rejects.toMatchObject({ code: 'ITEM_BUSY' });
    expect(audit.events.slice(0, before.length)).toEqual(before);
    await engine.stop();
  });
});

describe('what is not reached', () => {
  const item = { taskId: 1, lane: 'queue:orders', fingerprint: 'f' } as InboxItem;
  const nothing = {
    item,
    note: undefined,
    isTrailKept: false,
    store: { capabilities: { durable: false } as never },
    ofStore: [],
  };
  const none = { hasBroker: false, hasHook: false };

  test('lists only what applies', () => {
    expect(words(notReached(none, nothing))).toEqual(['destination', 'logs']);
    const { taskId: _, ...raw } = item;
    expect(words(notReached(none, { ...nothing, item: raw }))).toEqual(['logs']);
    const all = {
      item: { ...item, job: 3 },
      note: 'Ask Eva',
      isTrailKept: true,
      store: { capabilities: { durable: true } as never },
      ofStore: [{ what: 'of_store', why: 'a', todo: 'b' }],
    };
    expect(words(notReached({ hasBroker: true, hasHook: true }, all))).toEqual([
      'of_store',
      'audit_sink',
      'broker',
      'destination',
      'entry_hook',
      'group_note',
      'bulk_filter',
      'logs',
      'backups',
    ]);
  });

  test('says everything in sentences', () => {
    const all = notReached(
      { hasBroker: true, hasHook: true },
      { ...nothing, note: 'a', isTrailKept: true, item: { ...item, job: 3 } },
    );
    for (const { what, why, todo } of all) {
      expect(what).toMatch(/^[a-z_]+$/);
      expect(why, what).toMatch(/^[A-Z].*\.$/);
      expect(todo, what).toMatch(/^[A-Z].*\.$/);
    }
  });
});
