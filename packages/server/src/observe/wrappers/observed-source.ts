import { type Link, ROOT_CONTEXT, type Span, SpanKind } from '@opentelemetry/api';
import type {
  Broker,
  Consumer,
  Publication,
  Reading,
  Received,
  SourceOptions,
} from '@redrive/engine';
import { hasExpiration } from '../../scheduler/expiration.ts';
import type { ServiceMetrics } from '../metrics/metrics.ts';
import { activeTracer, endSpan } from '../trace/tracing.ts';
import { readTraceparent } from '../trace/traceparent.ts';
import { replaced } from './wrapped.ts';

interface Parts {
  metrics: Pick<ServiceMetrics, 'tookIn' | 'entered' | 'redelivered' | 'droppedExpiration'>;
}

const MAX_LINKS = 128;

/**
 * The same source, with what it takes in counted and traced. Messages that are read together are stored and acknowledged
 * together: that is one batch, and one span.
 */
export function observedSource(options: SourceOptions, { metrics }: Parts): SourceOptions {
  const { broker, source, read, oversized } = options;
  // Of the few messages of which something has to be known until they are acknowledged.
  const reasons = new WeakMap<Received, string>();
  const large = new WeakSet<Received>();
  const spans = new WeakMap<Received, Span>();
  const ended = new WeakSet<Span>();
  let isTraced = false;
  let reading: { span: Span | undefined } | undefined;

  function spanOfNow(): Span | undefined {
    if (!reading) {
      reading = { span: beginSpan(broker, source) };
      isTraced ||= reading.span !== undefined;
      // They are all read in one go.
      queueMicrotask(() => (reading = undefined));
    }
    return reading.span;
  }

  function observedRead(message: Received): Reading {
    const span = spanOfNow();
    if (span) spans.set(message, span);
    try {
      const result = read(message);
      if (result.type === 'unreadable') reasons.set(message, result.item.reason);
      return result;
    } catch (error) {
      reasons.set(message, 'UNREADABLE');
      throw error;
    }
  }

  function observedOversized(publicationOf: NonNullable<SourceOptions['oversized']>) {
    return (message: Received): Publication => {
      large.add(message);
      return publicationOf(message);
    };
  }

  function acknowledged(messages: readonly Received[]): void {
    let unreadable = 0;
    let tooLarge = 0;
    let redelivered = 0;
    let expiring = 0;
    for (const message of messages) {
      if (message.redelivered) redelivered += 1;
      if (hasExpiration(message)) expiring += 1;
      if (large.has(message)) tooLarge += 1;
      const reason = reasons.get(message);
      if (reason === undefined) continue;
      unreadable += 1;
      metrics.entered(reason);
    }
    metrics.tookIn(source, 'unreadable', unreadable);
    metrics.tookIn(source, 'oversized', tooLarge);
    metrics.tookIn(source, 'taken', messages.length - unreadable - tooLarge);
    metrics.redelivered(redelivered);
    metrics.droppedExpiration(source, expiring);
    endSpans(messages);
  }

  function returned(messages: readonly Received[]): void {
    metrics.tookIn(source, 'returned', messages.length);
    endSpans(messages, { code: 'RETURNED', message: 'Not stored, and given back to the broker.' });
  }

  function endSpans(messages: readonly Received[], failure?: { code: string; message: string }) {
    if (!isTraced) return;
    for (const [span, of] of Map.groupBy(messages, (message) => spans.get(message))) {
      if (!span || ended.has(span)) continue;
      ended.add(span);
      span.setAttribute('messaging.batch.message_count', of.length);
      span.addLinks(linksOf(of));
      endSpan(span, failure);
    }
  }

  const consume: Broker['consume'] = async (...args) =>
    observedConsumer(await broker.consume(...args), acknowledged, returned);
  return {
    ...options,
    broker: replaced(broker, { consume }),
    read: observedRead,
    ...(oversized ? { oversized: observedOversized(oversized) } : {}),
  };
}

function observedConsumer(
  consumer: Consumer,
  acknowledged: (messages: readonly Received[]) => void,
  returned: (messages: readonly Received[]) => void,
): Consumer {
  // All else stays its own: by its state one learns that nobody reads the queue.
  return replaced(consumer, {
    async ack(messages) {
      await consumer.ack(messages);
      acknowledged(messages);
    },
    async requeue(messages) {
      returned(messages);
      await consumer.requeue(messages);
    },
  });
}

function beginSpan(broker: Broker, source: string): Span | undefined {
  const span = activeTracer()?.startSpan(
    'redrive.intake',
    {
      kind: SpanKind.CONSUMER,
      attributes: {
        'messaging.system': broker.kind === 'queue' ? 'rabbitmq' : broker.kind,
        'messaging.operation.name': 'intake',
        'messaging.operation.type': 'process',
        'messaging.destination.name': source,
      },
    },
    ROOT_CONTEXT,
  );
  return span?.isRecording() ? span : undefined;
}

function linksOf(messages: readonly Received[]): Link[] {
  const links: Link[] = [];
  for (const { headers } of messages) {
    const context = readTraceparent(headers['traceparent']);
    if (context) links.push({ context });
    if (links.length === MAX_LINKS) break;
  }
  return links;
}
