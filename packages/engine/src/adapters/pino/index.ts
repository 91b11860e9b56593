import { ConfigError } from 'redrive';
import { EngineError } from '../../errors.ts';
import type { AuditSink } from '../../ports/audit.ts';
import { checkNames } from 'redrive/internal';

/** What is needed of a logger of pino. */
export interface AuditLogger {
  isLevelEnabled(level: string): boolean;
  flush(done?: (error?: Error | null) => void): void;
}

export interface PinoAuditOptions {
  /** The level of the lines (`info`). */
  level?: string;
}

type LogMethod = (fields: object, message: string) => void;

/**
 * An audit trail as lines of a log: the event is in `audit_event`, its type is the message. A batch is written when the
 * logger has flushed it.
 *
 * @example createEngine({ store, audit: pinoAudit(pino()) })
 */
export function pinoAudit(logger: AuditLogger, options: PinoAuditOptions = {}): AuditSink {
  checkNames('The options of pinoAudit', options, ['level']);
  const { level = 'info' } = options;
  const log: unknown = (logger as unknown as Record<string, unknown> | null)?.[level];
  if (typeof log !== 'function' || typeof logger.isLevelEnabled !== 'function') {
    const message = `must be a logger of pino with the level ${level}.`;
    const faults = [{ path: 'logger', code: 'INVALID_VALUE', message } as const];
    throw new ConfigError('INVALID_CONFIG', 'The pino audit sink has faults:', faults);
  }
  return {
    async write(events) {
      if (events.length === 0) return;
      // The logger would drop them without a word.
      if (!logger.isLevelEnabled(level)) {
        const message = `The logger does not write the level ${level}. Lower its level, or give the audit sink another one.`;
        throw new EngineError('AUDIT_SINK_FAILED', message);
      }
      // What cannot be JSON fails the batch as a whole: pino itself would write something else in its place.
      const copies = events.map((event) => JSON.parse(JSON.stringify(event)) as typeof event);
      for (const event of copies) {
        (log as LogMethod).call(logger, { audit_event: event }, event.event_type);
      }
      await flushed(logger);
    },
  };
}

function flushed(logger: AuditLogger): Promise<void> {
  return new Promise((resolve, reject) => {
    logger.flush((error) => (error ? reject(error) : resolve()));
  });
}
