/** Every event that is written fits the JSON Schema that the package `redrive` publishes. */
import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import {
  type AuditEvent,
  auditEntry,
  decideRoute,
  eraseEvent,
  type Happening,
  parseRoutingPolicy,
  replayAudit,
  routeEntry,
  routingPolicyEntry,
} from 'redrive';
import { describe, expect, it } from 'vitest';
import { MemoryAudit } from '../adapters/memory/index.ts';
import { giveUp, snooze } from '../model/outcomes.ts';
import type { AuditSink } from '../ports/audit.ts';
import { createTestEngine } from '../testing/test-engine.ts';

const file = new URL('../../../core/audit-event.schema.json', import.meta.url);
const schema = JSON.parse(readFileSync(file, 'utf8')) as { $defs: Record<string, object> };
const ajv = new Ajv2020({ strict: false, discriminator: false });
ajv.addFormat('date-time', (text: string) => /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text));
ajv.addSchema(schema, 'events');

/** What is wrong with an event, by the definition of its own type: clearer than that of all types together. */
export function faultsOf(event: AuditEvent): string[] {
  const validate = ajv.getSchema(`events#/$defs/${event.event_type}`);
  if (!validate) return [`There is no event ${event.event_type}.`];
  // As a sink writes it.
  if (validate(JSON.parse(JSON.stringify(event)))) return [];
  return (validate.errors ?? []).map(({ instancePath, message, params }) =>
    [event.event_type, instancePath, message, JSON.stringify(params)].join(' '),
  );
}

const timestamp = '2026-01-01T00:00:00.000Z';
const stamped = (entry: object) => ({ ...entry, timestamp }) as AuditEvent;

describe('the schema of audit events', () => {
  it('fits whatever an engine writes', async () => {
    const audit = new MemoryAudit();
    const broken: AuditSink = {
      write: (events) => (isDown ? Promise.reject(new Error('full')) : audit.write(events)),
      read: (query) => audit.read(query),
    };
    let isDown = false;
    const engine = createTestEngine({
      audit: { sink: broken, successes: true },
      policy: { maxAttempts: 2, base: '1s' },
      policies: { named: { maxAttempts: 1 } },
    });
    let snoozes = 0;
    engine
      .handle('works', () => undefined)
      .handle('fails', () => {
        throw Object.assign(new Error('no'), { code: 'ECONNRESET' });
      })
      .handle('gives-up', () => giveUp('enough'))
      .handle('snoozes', () => (snoozes++ === 0 ? snooze('1s') : undefined));
    const headers = { 'x-tenant-id': 't', 'x-correlation-id': 'c' };
    const options = { context: { headers } };
    await engine.submit('works', 1, options);
    for (const n of [1, 2, 3, 4, 5, 6]) await engine.submit('fails', n, options);
    await engine.submit('fails', 0, { policy: 'named' });
    await engine.submit('gives-up', 1);
    await engine.submit('snoozes', 1);
    await engine.advance('1h');

    await engine.pause('handler:works', 'ann');
    await engine.resume('handler:works', 'ann');
    const items = await engine.inbox();
    const ids = items.map(({ id }) => id);
    await engine.inbox.discard(ids[0]!, { by: 'ann' });
    await engine.inbox.restore(ids[0]!, { by: 'ann' });
    await engine.inbox.resolve(ids[1]!, { by: 'ann' });
    await engine.inbox.replay(ids[2]!, { by: 'ann' });
    await engine.inbox.erase(ids[3]!, { by: 'ann' });
    await engine.inbox.annotate(items[0]!.fingerprint, { note: 'look', by: 'ann' });
    await engine.inbox.discardAll({ all: true }, { by: 'ann' });
    await engine.advance('1h');
    isDown = true;
    await engine.submit('works', 2);
    await engine.advance('1h');
    isDown = false;
    await engine.submit('works', 3);
    await engine.drain();
    await engine.stop();

    const written = audit.events;
    expect(written.flatMap(faultsOf)).toEqual([]);
    expect([...new Set(written.map((event) => event.event_type))].toSorted()).toEqual([
      'events_dropped',
      'job_ended',
      'operator_action',
      'policy_registered',
      'retry_abandoned',
      'retry_attempt',
      'retry_exhausted',
      'retry_postponed',
      'retry_succeeded',
    ]);
  });

  it('fits what happens to an execution, strict or not, erased or not', () => {
    const failure = { class: 'transient', code: 'X', message: 'no' } as const;
    const numbers = { attempt: 2, maxAttempts: 3 };
    const happenings: Happening[] = [
      { type: 'retry_attempt', ...numbers, delayMs: 1050, failure },
      { type: 'retry_postponed', ...numbers, delayMs: 0 },
      { type: 'retry_exhausted', attempt: 3, failure },
      { type: 'retry_abandoned', attempt: 0, maxAttempts: 0, reason: 'UNREADABLE' },
      { type: 'retry_succeeded', ...numbers },
      { type: 'retry_rearmed', ...numbers },
    ];
    for (const happening of happenings) {
      const event = stamped(auditEntry({ category: 'API', operation: 'get' }, happening, { a: 1 }));
      const { redrive: _, ...strict } = event;
      const personal = { ...event, tenant_id: 't', correlation_id: 'c' };
      const erased = eraseEvent(personal, Date.parse(timestamp));
      expect([event, strict as AuditEvent, erased].flatMap(faultsOf)).toEqual([]);
    }
  });

  it('fits the events of a router', () => {
    const providers = ['a', 'b'].map((name) => ({ name, weight: 50 }));
    const policy = parseRoutingPolicy({ version: '1.0', providers });
    const context = { request_id: 'r-1', current_provider: 'a', status: 503 };
    const decision = decideRoute(policy, context, { seed: 5, nowMs: 1 });
    const decided = routeEntry({ policy, context, nowMs: 1, decision });
    expect(faultsOf(stamped(routingPolicyEntry(policy)))).toEqual([]);
    expect(faultsOf(stamped(decided))).toEqual([]);
  });

  it('knows the events of idempotency keys, as verify does', async () => {
    const key = {
      retry_category: 'RETRY_KV_PUT',
      operation: 'store',
      idempotency_key: 'abc123def4567890...',
      tenant_id: null,
      correlation_id: null,
      trace_id: null,
    };
    const hit = stamped({ event_type: 'idempotency', ...key, action: 'hit' });
    const wait = stamped({
      event_type: 'idempotency_detail',
      ...key,
      action: 'wait',
      redrive: { instance: 'i', run: 1, sequence: 1, was_there: true },
    });
    expect([hit, wait].flatMap(faultsOf)).toEqual([]);
    expect(faultsOf({ ...hit, action: 'clear' })).not.toEqual([]);
    const report = await replayAudit([hit, wait]);
    expect(report).toMatchObject({ events: 2, checked: 0, unreadable: 0, missing: 0 });
  });

  it('refuses what no event has: other fields, other types, missing ones', () => {
    const event = stamped(
      auditEntry(
        { category: 'API', operation: 'get' },
        { type: 'retry_succeeded', attempt: 1, maxAttempts: 1 },
      ),
    );
    expect(faultsOf(event)).toEqual([]);
    const { operation: _, ...without } = event;
    for (const wrong of [
      without,
      { ...event, more: 1 },
      { ...event, attempt_number: -1 },
      { ...event, attempt_number: '1' },
      { ...event, timestamp: 'now' },
      { ...event, event_type: 'retry_other' },
    ]) {
      expect(faultsOf(wrong)).not.toEqual([]);
    }
  });
});
