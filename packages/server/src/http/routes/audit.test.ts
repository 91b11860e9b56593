import type { AuditEvent, AuditSink } from '@redrive/engine';
import { MemoryAudit } from '@redrive/engine/memory';
import { describe, expect, it } from 'vitest';
import { at, listAt, stage } from '../harness.test.ts';

const START_MS = Date.UTC(2026, 0, 1);

function event(second: number, fields: object = {}): AuditEvent {
  return {
    event_type: 'retry_attempt',
    retry_category: 'API',
    operation: 'handler:charge',
    attempt_number: 1,
    max_attempts: 3,
    delay_seconds: 1,
    exception_type: 'Error',
    timestamp: new Date(START_MS + second * 1000).toISOString(),
    ...fields,
  };
}

async function holding(events: readonly AuditEvent[]) {
  const sink = new MemoryAudit();
  await sink.write(events);
  return stage({ engineOptions: { audit: sink } });
}

describe('GET /api/v1/audit/stats', () => {
  it('measures retries per category', async () => {
    const { get } = await holding([
      event(0),
      event(1, { event_type: 'retry_succeeded', attempt_number: 2 }),
      event(2),
      event(3, { retry_category: 'KV' }),
      event(60, { event_type: 'retry_exhausted', total_attempts: 2, final_exception_type: 'Late' }),
    ]);
    const { status, body } = await get('/api/v1/audit/stats');
    expect(status).toBe(200);
    expect(body).toMatchObject({
      events: 5,
      complete: true,
      first_at: '2026-01-01T00:00:00.000Z',
      last_at: '2026-01-01T00:01:00.000Z',
      step_ms: 1000,
    });
    expect(listAt(body, 'categories')).toMatchObject([
      {
        category: 'API',
        attempts: 4,
        retries: 2,
        success_rate: 0.5,
        mean_attempts: 2,
        retries_per_minute: 2,
        errors: [
          { type: 'Error', count: 2 },
          { type: 'Late', count: 1 },
        ],
        by_attempt: [{ attempt: 1 }, { attempt: 2, executed: 2, helped: 1 }],
        policy: null,
      },
      { category: 'KV', success_rate: null },
    ]);
  });

  it('groups by operation, cuts by time, and lists no more than asked for', async () => {
    const { get } = await holding([
      event(0),
      event(5, { operation: 'handler:mail' }),
      event(6, { operation: 'handler:mail' }),
      event(9),
    ]);
    const from = new Date(START_MS + 1000).toISOString();
    const to = new Date(START_MS + 9000).toISOString();
    const byOperation = await get(`/api/v1/audit/stats?by=operation&limit=1`);
    expect(at(byOperation.body, 'categories', 0, 'category')).toBe('handler:charge');
    expect(listAt(byOperation.body, 'categories')).toHaveLength(1);
    const { body } = await get(`/api/v1/audit/stats?by=operation&from=${from}&to=${to}`);
    expect(listAt(body, 'categories')).toMatchObject([{ category: 'handler:mail', retries: 2 }]);
  });

  it('reads all pages of a trail', async () => {
    const { get } = await holding(Array.from({ length: 2500 }, (_, i) => event(i)));
    const { body } = await get('/api/v1/audit/stats');
    expect(body).toMatchObject({ events: 2500, complete: true, categories: [{ retries: 2500 }] });
  });

  it('reads page by page, and says where it stopped', async () => {
    let asked = 0;
    const endless: AuditSink = {
      write: async () => undefined,
      read: async ({ before = 1_000_000 }) => {
        asked += 1;
        return { events: [{ id: before - 1, event: event(asked) }], next: before - 1 };
      },
    };
    const { get } = await stage({ engineOptions: { audit: endless } });
    const { body } = await get('/api/v1/audit/stats');
    expect(body).toMatchObject({ complete: false, events: 200 });
    expect(asked).toBe(200);
  });

  it('answers for an empty trail, and refuses where there is none', async () => {
    const { get } = await holding([]);
    expect((await get('/api/v1/audit/stats')).body).toMatchObject({
      events: 0,
      complete: true,
      first_at: null,
      categories: [],
    });
    const off = await stage({ engineOptions: { audit: false } });
    expect(await off.get('/api/v1/audit/stats')).toMatchObject({
      status: 409,
      body: { code: 'AUDIT_UNREADABLE' },
    });
    expect(await off.get('/api/v1/audit/stats?by=lane')).toMatchObject({ status: 400 });
  });
});
