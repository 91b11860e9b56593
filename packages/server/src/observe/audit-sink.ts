/** The sink of the audit trail that the settings choose; undefined: that of the store. */
import type { AuditSink } from '@redrive/engine';
import type { NatsConnection } from '@nats-io/transport-node';
import type { Logger } from 'pino';
import { createRetryManager } from 'redrive';
import type { Settings } from '../settings/settings.ts';

/** Below the five seconds that the trail gives a batch, so that its error says what is wrong. */
const CONNECT_MS = 3000;

export async function auditSinkOf(
  settings: Settings,
  name: string,
  log: Logger,
): Promise<AuditSink | undefined> {
  const { audit, auditSink } = settings;
  if (!audit) return undefined;
  switch (auditSink) {
    case 'store':
      return undefined;
    case 'nats':
    case 'nats-core':
      return natsSink(settings, name);
    case 'log': {
      const { pinoAudit } = await import('@redrive/engine/pino');
      return pinoAudit(log);
    }
    case 'opentelemetry':
      return otelSink();
  }
}

/** Connects at the first batch, and again when the connection has ended: until then a batch fails, and is tried again. */
async function natsSink(settings: Settings, name: string): Promise<AuditSink> {
  const { auditSink, auditSubject: subject } = settings;
  const { connectWithRetry, natsAudit } = await import('@redrive/engine/nats');
  const { natsConnection } = await import('../nats-wiring.ts');
  const { url, ...credentials } = natsConnection(settings);
  // The trail tries again by itself.
  const manager = createRetryManager({ categories: { NATS_CONNECT: { maxAttempts: 1 } } });
  const options = { ...credentials, manager, name: `${name} audit`, timeoutMs: CONNECT_MS };
  let opening: Promise<{ connection: NatsConnection; sink: AuditSink }> | undefined;
  const open = async () => {
    const connection = await connectWithRetry(url, options);
    const sink = natsAudit(connection, { subject, jetStream: auditSink === 'nats' });
    return { connection, sink };
  };
  return {
    async write(events) {
      const current = (opening ??= open());
      try {
        const { sink } = await current;
        await sink.write(events);
      } catch (error) {
        const isOver = await current.then(
          ({ connection }) => connection.isClosed(),
          () => true,
        );
        if (isOver && opening === current) opening = undefined;
        throw error;
      }
    },
    async close() {
      const opened = await opening?.catch(() => undefined);
      await opened?.connection.close();
    },
  };
}

async function otelSink(): Promise<AuditSink> {
  const { logs } = await import('@opentelemetry/api-logs');
  const { otelAudit } = await import('@redrive/engine/opentelemetry');
  return otelAudit(logs.getLogger('redrive'), {
    // Not part of the API: a provider of the SDK has it.
    async flush() {
      const provider = logs.getLoggerProvider() as { forceFlush?: () => Promise<void> };
      await provider.forceFlush?.();
    },
  });
}
