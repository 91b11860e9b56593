import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { auditSchema, auditTables } from './audit-reference.ts';

const root = new URL('../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), 'utf8');

describe('what is derived from the table of audit events', () => {
  it('is up to date: the schema and the reference page', () => {
    const hint = 'run `npm run generate`';
    expect(JSON.parse(read('packages/core/audit-event.schema.json')), hint).toEqual(auditSchema());
    expect(read('docs/reference/audit-events.md'), hint).toContain(auditTables());
  });

  it('has the fields of the contract, in their order', () => {
    const fieldsOf = (type: string) => {
      const { $defs } = auditSchema() as { $defs: Record<string, { required: string[] }> };
      return $defs[type]!.required;
    };
    const whose = ['tenant_id', 'correlation_id', 'trace_id', 'timestamp'];
    const subject = ['event_type', 'retry_category', 'operation'];
    expect(fieldsOf('retry_attempt')).toEqual([
      ...subject,
      'attempt_number',
      'max_attempts',
      'delay_seconds',
      'exception_type',
      'exception_message',
      ...whose,
    ]);
    expect(fieldsOf('retry_exhausted')).toEqual([
      ...subject,
      'total_attempts',
      'final_exception_type',
      'final_exception_message',
      ...whose,
    ]);
    expect(fieldsOf('idempotency')).toEqual([...subject, 'idempotency_key', 'action', ...whose]);
  });

  it('puts no links into the schema', () => {
    expect(JSON.stringify(auditSchema())).not.toMatch(/\]\(/);
  });
});
