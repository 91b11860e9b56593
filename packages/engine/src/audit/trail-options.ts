import { ConfigError, type Fault } from 'redrive';
import { type Fields, readFields } from 'redrive/internal';
import { EngineError } from '../errors.ts';
import { type AuditOptions, type AuditSink, REGISTER_AGAIN_MS } from '../ports/audit.ts';

export interface TrailSettings {
  /** Absent: the trail is off. */
  sink?: AuditSink;
  successes: boolean;
  strict: boolean;
  /** Absent: events are kept for good. */
  retentionMs?: number;
}

const fields = {
  successes: { kind: 'boolean', default: false },
  strict: { kind: 'boolean', default: false },
  retention: { kind: 'duration', min: REGISTER_AGAIN_MS },
} as const satisfies Fields;

/** What the option `audit` says. `own` is the store's own sink. */
export function trailSettings(
  audit: boolean | AuditSink | AuditOptions | undefined,
  own: AuditSink | undefined,
): TrailSettings {
  const off = { successes: false, strict: false };
  if (audit === undefined || audit === false) return off;
  // Anything else would be taken for options that say nothing.
  if (audit !== true && Object(audit) !== audit) throw noSink();
  if (audit !== true && isSink(audit)) return { ...off, sink: audit };
  const { sink = own, ...rest } = audit === true ? {} : audit;
  const faults: Fault[] = [];
  const names = [...Object.keys(fields), 'sink'];
  const values = readFields(rest, fields, names, 'audit', faults);
  if (faults.length > 0) throw new ConfigError('INVALID_CONFIG', 'The audit has faults:', faults);
  if (!isSink(sink)) throw noSink();
  const retentionMs = values['retention'] as number | undefined;
  return {
    sink,
    successes: values['successes'] === true,
    strict: values['strict'] === true,
    ...(retentionMs === undefined ? {} : { retentionMs }),
  };
}

function noSink(): EngineError {
  const message = 'There is nowhere to write the audit trail: give a sink with a method write.';
  const faults = [{ path: 'audit', code: 'INVALID_ENGINE', message } as const];
  return new EngineError('INVALID_ENGINE', message, { faults });
}

function isSink(value: unknown): value is AuditSink {
  return typeof (value as AuditSink | undefined)?.write === 'function';
}
