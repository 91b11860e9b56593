/** The sink with the SDK that users have, and not with something of its shape. */
import { logs, SeverityNumber } from '@opentelemetry/api-logs';
import {
  BatchLogRecordProcessor,
  createLoggerConfigurator,
  InMemoryLogRecordExporter,
  LoggerProvider,
  type LogRecordProcessor,
  SimpleLogRecordProcessor,
} from '@opentelemetry/sdk-logs';
import { createRetryManager } from 'redrive';
import { afterEach, describe, expect, it, test } from 'vitest';
import type { AuditEvent } from '../../ports/audit.ts';
import { auditSuite } from '../../testing/audit/audit-suite.ts';
import { otelAudit } from './index.ts';

const event: AuditEvent = {
  event_type: 'retry_exhausted',
  retry_category: 'RETRY_KV_GET',
  operation: 'Get',
  total_attempts: 3,
  tenant_id: null,
  timestamp: '2026-01-25T21:15:00.125Z',
  redrive: {
    instance: 'a',
    run: 1,
    sequence: 1,
    context: { list: [1, null, { deep: true }], text: 'ü' },
  },
};

afterEach(() => logs.disable());

/** A provider whose records stay in memory. */
function provided(
  processorOf: (exporter: InMemoryLogRecordExporter) => LogRecordProcessor = (exporter) =>
    new SimpleLogRecordProcessor({ exporter }),
) {
  const exporter = new InMemoryLogRecordExporter();
  const provider = new LoggerProvider({ processors: [processorOf(exporter)] });
  return { exporter, provider };
}

const batched = (exporter: InMemoryLogRecordExporter) =>
  new BatchLogRecordProcessor({ exporter, scheduledDelayMillis: 3_600_000 });

describe('the audit trail in the SDK of OpenTelemetry', () => {
  const open = async () => {
    const { exporter, provider } = provided(batched);
    const flush = () => provider.forceFlush();
    const written = async () =>
      exporter.getFinishedLogRecords().map(({ body }) => body as unknown as AuditEvent);
    const sink = otelAudit(provider.getLogger('redrive'), { flush });
    return { sink, written, close: () => provider.shutdown() };
  };
  for (const { name, skip, run: assertCase } of auditSuite({ open })) {
    test.skipIf(skip)(`${name}`, () => assertCase());
  }
});

it('is exported with its name, its time, its severity, its attributes and its body', async () => {
  const { exporter, provider } = provided();
  await otelAudit(provider.getLogger('redrive', '1.0.0')).write([event]);
  const [record] = exporter.getFinishedLogRecords();
  expect(record).toMatchObject({
    eventName: 'redrive.retry_exhausted',
    severityNumber: 13,
    severityText: 'WARN',
    body: event,
    attributes: {
      'redrive.retry_category': 'RETRY_KV_GET',
      'redrive.operation': 'Get',
      'redrive.total_attempts': 3,
    },
    instrumentationScope: { name: 'redrive', version: '1.0.0' },
    droppedAttributesCount: 0,
  });
  expect(record!.hrTime).toEqual([Date.parse(event.timestamp) / 1000 - 0.125, 125_000_000]);
});

it('is refused where no provider is registered, and taken from the moment there is one', async () => {
  const sink = otelAudit(logs.getLogger('redrive'));
  await expect(sink.write([event])).rejects.toMatchObject({ code: 'AUDIT_SINK_FAILED' });
  const { exporter, provider } = provided();
  logs.setGlobalLoggerProvider(provider);
  await sink.write([event]);
  expect(exporter.getFinishedLogRecords()).toHaveLength(1);
});

it('is refused by a provider that was shut down', async () => {
  const { exporter, provider } = provided(batched);
  const sink = otelAudit(provider.getLogger('redrive'), { flush: () => provider.forceFlush() });
  await sink.write([event]);
  expect(exporter.getFinishedLogRecords()).toHaveLength(1);
  await provider.shutdown();
  const late = otelAudit(provider.getLogger('late'));
  await expect(late.write([event])).rejects.toMatchObject({ code: 'AUDIT_SINK_FAILED' });
});

it('is refused as a whole where the provider drops some of it by its severity', async () => {
  const exporter = new InMemoryLogRecordExporter();
  const provider = new LoggerProvider({
    processors: [new SimpleLogRecordProcessor({ exporter })],
    loggerConfigurator: createLoggerConfigurator([
      { pattern: '*', config: { minimumSeverity: SeverityNumber.WARN } },
    ]),
  });
  const sink = otelAudit(provider.getLogger('redrive'));
  await expect(
    sink.write([event, { ...event, event_type: 'retry_attempt' }]),
  ).rejects.toMatchObject({
    code: 'AUDIT_SINK_FAILED',
    message: expect.stringContaining('redrive.retry_attempt (INFO)') as unknown,
  });
  expect(exporter.getFinishedLogRecords()).toHaveLength(0);
  await sink.write([event]);
  expect(exporter.getFinishedLogRecords()).toHaveLength(1);
});

it('goes on after a flush that failed', async () => {
  const { exporter, provider } = provided();
  let isAway = true;
  const flush = async () => {
    if (isAway) throw new Error('collector away');
  };
  const sink = otelAudit(provider.getLogger('redrive'), { flush });
  await expect(sink.write([event])).rejects.toThrow('collector away');
  isAway = false;
  await sink.write([event]);
  expect(exporter.getFinishedLogRecords()).toHaveLength(2);
});

it('takes the trail of a retry manager', async () => {
  const { exporter, provider } = provided();
  const manager = createRetryManager({ audit: otelAudit(provider.getLogger('redrive')) });
  const failing = () => Promise.reject(new Error('down'));
  const policy = { maxAttempts: 2, base: 1, jitter: 'none' } as const;
  await manager.execute('KV_GET', 'Get', failing, { policy }).catch(() => undefined);
  await manager.flush();
  expect(exporter.getFinishedLogRecords().map(({ eventName }) => eventName)).toEqual([
    'redrive.policy_registered',
    'redrive.retry_attempt',
    'redrive.retry_exhausted',
  ]);
});
