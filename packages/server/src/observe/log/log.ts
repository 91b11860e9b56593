import { isSpanContextValid, trace } from '@opentelemetry/api';
import type { Log } from '@redrive/engine';
import { type Logger, pino } from 'pino';
import type { Settings } from '../../settings/settings.ts';
import { snakeCase } from '../metrics/names.ts';
import { prettyLines } from './pretty.ts';
import { cleanData, withoutCredentials } from './redact.ts';
import { traceIdOf } from '../trace/traceparent.ts';

/** Where lines go: `process.stdout` is one. */
export interface LogOutput {
  write(text: string): unknown;
  readonly isTTY?: boolean;
}

type LogSettings = Pick<Settings, 'serviceName' | 'logLevel' | 'logFormat'> & { instance: string };

/** The log of the service: neither credentials nor payloads, whatever is handed in. */
export function createLog(settings: LogSettings, to: LogOutput): Logger {
  const { serviceName, instance, logLevel, logFormat } = settings;
  return pino(
    {
      level: logLevel,
      base: { service: serviceName, instance },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: {
        level: (level) => ({ level }),
        bindings: (bindings) => cleanFields(bindings),
        log: (fields) => cleanFields(fields),
      },
      serializers: { req: requestFields, res: replyFields, err: (error: unknown) => error },
      mixin: activeTrace,
      // The last gate: whatever way a URL took into the line, its credentials end here.
      hooks: { streamWrite: withoutCredentials },
    },
    logFormat === 'pretty' ? prettyLines(to, process.env) : to,
  );
}

/** The engine's log, with the names that all of the service uses. */
export function engineLog(log: Logger): Log {
  return {
    debug: (fields, message) => log.debug(wireFields(fields), message),
    info: (fields, message) => log.info(wireFields(fields), message),
    warn: (fields, message) => log.warn(wireFields(fields), message),
    error: (fields, message) => log.error(wireFields(fields), message),
  };
}

function wireFields(fields: object): Record<string, unknown> {
  const named: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (name === 'traceparent') named['trace_id'] = traceIdOf(value);
    else named[name === 'id' ? 'message_id' : snakeCase(name)] = value;
  }
  return named;
}

function cleanFields(fields: Record<string, unknown>): Record<string, unknown> {
  const { req, res, ...rest } = fields;
  return {
    ...(cleanData(rest) as Record<string, unknown>),
    // What stands under these names is large, and has serializers of its own.
    ...(req === undefined ? {} : { req }),
    ...(res === undefined ? {} : { res }),
  };
}

/** A line that is written within a span says so. */
function activeTrace(): object {
  const span = trace.getActiveSpan()?.spanContext();
  return span && isSpanContextValid(span) ? { trace_id: span.traceId, span_id: span.spanId } : {};
}

/** Neither headers nor body. */
function requestFields(request: unknown): unknown {
  const { method, url, ip } = Object(request) as { method?: unknown; url?: unknown; ip?: unknown };
  return { method: cleanData(method), url: cleanData(url), ip: cleanData(ip) };
}

function replyFields(reply: unknown): unknown {
  const { statusCode } = Object(reply) as { statusCode?: unknown };
  return { status: cleanData(statusCode) };
}
