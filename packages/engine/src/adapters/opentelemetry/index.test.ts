import { ConfigError } from 'redrive';
import { describe, expect, it, test } from 'vitest';
import type { AuditEvent } from '../../ports/audit.ts';
import { auditSuite } from '../../testing/audit/audit-suite.ts';
import { otelAudit, type OtelAuditRecord } from './index.ts';

const event: AuditEvent = {
  event_type: 'retry_attempt',
  retry_category: 'API',
  attempt_number: 2,
  exception_message: 'reset',
  tenant_id: null,
  timestamp: '2026-01-01T00:00:00.000Z',
};

/** Keeps records by reference, as a processor of the SDK does until it exports them. */
function keeping() {
  const records: OtelAuditRecord[] = [];
  return { records, logger: { emit: (record: OtelAuditRecord) => void records.push(record) } };
}

describe('the audit trail as events of OpenTelemetry', () => {
  const open = async () => {
    const { records, logger } = keeping();
    const written = async () => records.map(({ body }) => body as unknown as AuditEvent);
    return { sink: otelAudit(logger), written, close: async () => undefined };
  };
  for (const { name, skip, run: assertCase } of auditSuite({ open })) {
    test.skipIf(skip)(`${name}`, () => assertCase());
  }
});

describe('an event of it', () => {
  it('has a name, its own time, a severity, and what one searches by as attributes', async () => {
    const { records, logger } = keeping();
    await otelAudit(logger).write([event, { ...event, event_type: 'retry_exhausted' }]);
    expect(records).toMatchObject([
      {
        eventName: 'redrive.retry_attempt',
        timestamp: new Date(event.timestamp),
        severityNumber: 9,
        severityText: 'INFO',
        body: event,
      },
      { eventName: 'redrive.retry_exhausted', severityNumber: 13, severityText: 'WARN' },
    ]);
    expect(records[0]!.attributes).toEqual({
      'redrive.retry_category': 'API',
      'redrive.attempt_number': 2,
    });
  });

  it('is refused, not lost, where the logger is off', async () => {
    const { records, logger } = keeping();
    const sink = otelAudit({ ...logger, enabled: () => false });
    await expect(sink.write([event])).rejects.toMatchObject({ code: 'AUDIT_SINK_FAILED' });
    await sink.write([]);
    expect(records).toEqual([]);
    await otelAudit({ ...logger, enabled: () => true }).write([event]);
    expect(records).toHaveLength(1);
  });

  it('is written when the provider has flushed, and fails with it', async () => {
    const { records, logger } = keeping();
    const flushed: number[] = [];
    await otelAudit(logger, { flush: async () => void flushed.push(records.length) }).write([
      event,
    ]);
    expect(flushed).toEqual([1]);
    const flush = () => Promise.reject(new Error('collector away'));
    await expect(otelAudit(logger, { flush }).write([event])).rejects.toThrow('collector away');
  });
});

/** As `@opentelemetry/api-logs` declares it. */
interface ApiLogger {
  emit(record: {
    eventName?: string;
    timestamp?: [number, number] | number | Date;
    severityNumber?: number;
    severityText?: string;
    body?: ApiValue;
    attributes?: { [name: string]: ApiValue };
    context?: object;
  }): void;
}
type ApiValue =
  | string
  | number
  | boolean
  | null
  | undefined
  | Uint8Array
  | ApiValue[]
  | { [name: string]: ApiValue };

it('takes a logger of the API without a cast', async () => {
  const names: unknown[] = [];
  const logger: ApiLogger = { emit: ({ eventName }) => void names.push(eventName) };
  await otelAudit(logger).write([event]);
  expect(names).toEqual(['redrive.retry_attempt']);
});

it('needs a logger', () => {
  for (const odd of [null, undefined, {}]) {
    expect(() => otelAudit(odd as never)).toThrow(ConfigError);
  }
});
