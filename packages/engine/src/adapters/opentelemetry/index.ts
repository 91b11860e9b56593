import { ConfigError } from 'redrive';
import { EngineError } from '../../errors.ts';
import type { AuditEvent, AuditSink } from '../../ports/audit.ts';
import { checkNames } from 'redrive/internal';

/** What is needed of a logger of OpenTelemetry's Logs API: `logs.getLogger('redrive')` of `@opentelemetry/api-logs`. */
export interface OtelAuditLogger {
  emit(record: OtelAuditRecord): void;
  /** Newer versions of the API have it. A logger may drop records by their severity. */
  enabled?(options?: { severityNumber: number; eventName: string }): boolean;
}

/** A log record with a name is what OpenTelemetry calls an event. */
export interface OtelAuditRecord {
  eventName: string;
  timestamp: Date;
  severityNumber: number;
  severityText: string;
  /** The event as it was written. */
  body: { [field: string]: OtelValue };
  attributes: Record<string, string | number>;
}

/** What a body may hold. */
export type OtelValue =
  | string
  | number
  | boolean
  | null
  | OtelValue[]
  | { [name: string]: OtelValue };

export interface OtelAuditOptions {
  /**
   * Waits until what was emitted went to the exporter: `() => provider.forceFlush()`. Without it a batch counts as written
   * when the SDK has it, and what the SDK drops from its queue nobody counts.
   */
  flush?: () => Promise<void>;
}

/**
 * An audit trail as events of OpenTelemetry.
 *
 * @example createEngine({ store, audit: otelAudit(logs.getLogger('redrive'), { flush: () => provider.forceFlush() }) })
 */
export function otelAudit(logger: OtelAuditLogger, options: OtelAuditOptions = {}): AuditSink {
  if (typeof logger?.emit !== 'function') {
    const message = 'must be a logger of OpenTelemetry: logs.getLogger(name).';
    const faults = [{ path: 'logger', code: 'INVALID_VALUE', message } as const];
    throw new ConfigError('INVALID_CONFIG', 'The OpenTelemetry audit sink has faults:', faults);
  }
  checkNames('The options of otelAudit', options, ['flush']);
  const { flush } = options;
  let last: Promise<unknown> = Promise.resolve();
  return {
    async write(events) {
      if (events.length === 0) return;
      // Copies, since the SDK holds them for a while; and what cannot be JSON fails the batch as a whole.
      const records = events.map((event) =>
        recordOf(JSON.parse(JSON.stringify(event)) as AuditEvent),
      );
      const emit = async () => {
        // Of all of them before the first one is emitted: the logger would drop one without a word.
        for (const record of records) refuseDropped(logger, record);
        for (const record of records) logger.emit(record);
        await flush?.();
      };
      // One after the other: a flush of the SDK returns at once while another one is under way.
      const writing = flush ? last.then(emit) : emit();
      last = writing.catch(() => undefined);
      await writing;
    },
  };
}

function refuseDropped(logger: OtelAuditLogger, record: OtelAuditRecord): void {
  const { severityNumber, severityText, eventName } = record;
  if (logger.enabled?.({ severityNumber, eventName }) !== false) return;
  throw new EngineError(
    'AUDIT_SINK_FAILED',
    `The OpenTelemetry logger drops ${eventName} (${severityText}): no provider of logs is registered, it was shut down, or it is set to drop such records.`,
  );
}

/** Fields by which one searches. The rest is in the body. */
const searched = [
  'retry_category',
  'operation',
  'attempt_number',
  'total_attempts',
  'max_attempts',
  'delay_seconds',
  'exception_type',
  'final_exception_type',
  'reason',
  'action',
  'tenant_id',
  'correlation_id',
  'trace_id',
];

const warnings: ReadonlySet<string> = new Set([
  'retry_exhausted',
  'retry_abandoned',
  'events_dropped',
]);

function recordOf(event: AuditEvent): OtelAuditRecord {
  const attributes: OtelAuditRecord['attributes'] = {};
  for (const name of searched) {
    const value = event[name];
    if (typeof value === 'string' || typeof value === 'number')
      attributes[`redrive.${name}`] = value;
  }
  const isWarning = warnings.has(event.event_type);
  return {
    eventName: `redrive.${event.event_type}`,
    timestamp: new Date(event.timestamp),
    // By OpenTelemetry's numbers.
    severityNumber: isWarning ? 13 : 9,
    severityText: isWarning ? 'WARN' : 'INFO',
    body: event as OtelAuditRecord['body'],
    attributes,
  };
}
