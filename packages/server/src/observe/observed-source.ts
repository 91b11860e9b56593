import { type Link, ROOT_CONTEXT, type Span, SpanKind } from '@opentelemetry/api';
import type { Broker, Consumer, Reading, Received, SourceOptions } from '@redrive/engine';
import type { ServiceMetrics } from './metrics.ts';
import { activeTracer, endSpan } from './tracing.ts';
import { readTraceparent } from './traceparent.ts';
import { replaced } from './wrapped.ts';

interface Parts {
  metrics: Pick<ServiceMetrics, 'tookIn' | 'entered' | 'redelivered'>;
}

/** What is known of a message between its reading and its acknowledgement. */
interface Batch {
  span?: Span;
  /** Why those went to the inbox that could not be read. */
  readonly unreadable: Map<Received, string>;
}

const MAX_LINKS = 128;

/**
 * The same source, with what it takes in counted and traced. Messages that are read together are stored and acknowledged
 * together: that is one batch, and one span.
 */
export function observedSource(options: SourceOptions, { metrics }: Parts): SourceOptions {
  const { broker, source, read } = options;
  const batches = new WeakMap<Received, Batch>();
  let reading: Batch | undefined;

  function batchOfNow(): Batch {
    if (!reading) {
      reading = { unreadable: new Map() };
      const span = beginSpan(broker, source);
      if (span) reading.span = span;
      // They are all read in one go.
      queueMicrotask(() => (reading = undefined));
    }
    return reading;
  }

  function observedRead(message: Received): Reading {
    const batch = batchOfNow();
    batches.set(message, batch);
    let reason = 'UNREADABLE';
    try {
      const result = read(message);
      if (result.type === 'failure') return result;
      reason = result.item.reason;
      batch.unreadable.set(message, reason);
      return result;
    } catch (error) {
      batch.unreadable.set(message, reason);
      throw error;
    }
  }

  function acknowledged(messages: readonly Received[]): void {
    let unreadable = 0;
    for (const message of messages) {
      const reason = batches.get(message)?.unreadable.get(message);
      if (reason === undefined) continue;
      unreadable += 1;
      metrics.entered(reason);
    }
    metrics.tookIn(source, 'unreadable', unreadable);
    metrics.tookIn(source, 'taken', messages.length - unreadable);
    metrics.redelivered(messages.filter(({ redelivered }) => redelivered).length);
    endSpans(messages);
  }

  function returned(messages: readonly Received[]): void {
    metrics.tookIn(source, 'returned', messages.length);
    endSpans(messages, { code: 'RETURNED', message: 'Not stored, and given back to the broker.' });
  }

  function endSpans(messages: readonly Received[], failure?: { code: string; message: string }) {
    for (const batch of new Set(messages.map((message) => batches.get(message)))) {
      if (!batch?.span) continue;
      const of = messages.filter((message) => batches.get(message) === batch);
      batch.span.setAttribute('messaging.batch.message_count', of.length);
      batch.span.addLinks(linksOf(of));
      endSpan(batch.span, failure);
      delete batch.span;
    }
  }

  const consume: Broker['consume'] = async (...args) =>
    observedConsumer(await broker.consume(...args), acknowledged, returned);
  return { ...options, broker: replaced(broker, { consume }), read: observedRead };
}

function observedConsumer(
  consumer: Consumer,
  acknowledged: (messages: readonly Received[]) => void,
  returned: (messages: readonly Received[]) => void,
): Consumer {
  return {
    async ack(messages) {
      await consumer.ack(messages);
      acknowledged(messages);
    },
    async requeue(messages) {
      returned(messages);
      await consumer.requeue(messages);
    },
    stop: () => consumer.stop(),
  };
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
