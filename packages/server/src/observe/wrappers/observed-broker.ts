import { type Span, SpanKind } from '@opentelemetry/api';
import type { Broker, Publication, Published } from '@redrive/engine';
import type { Clock } from 'redrive';
import type { ServiceMetrics } from '../metrics/metrics.ts';
import { activeTracer, endSpan, type Tracing } from '../trace/tracing.ts';
import { writeTraceparent } from '../trace/traceparent.ts';
import { replaced } from './wrapped.ts';

interface Parts {
  metrics: Pick<ServiceMetrics, 'published' | 'publishing' | 'executed'>;
  tracing: Tracing;
  clock: Clock;
}

/** The same broker, with its publishes measured, counted and traced. */
export function observedBroker(broker: Broker, { metrics, tracing, clock }: Parts): Broker {
  const publish: Broker['publish'] = (messages, options) => {
    const traced = beginSpans(broker, messages, tracing);
    const beganAt = clock.monotonic();
    const answers = broker.publish(traced ? traced.messages : messages, options);
    metrics.publishing(messages.length);
    for (const [i, message] of messages.entries()) {
      const span = traced?.spans[i];
      const settled = (published: Published) => {
        const { outcome } = published;
        metrics.published(outcome, (clock.monotonic() - beganAt) / 1000);
        // What was not even sent is no execution.
        if (isRetry(message) && outcome !== 'away') {
          metrics.executed(`${broker.kind}:${message.address}`, outcome === 'confirmed');
        }
        if (span) endSpan(span, failureOf(published));
      };
      // Whoever published has the answer as well; a broker that gives none has not confirmed.
      if (answers[i]) answers[i].then(settled, () => settled(unanswered));
      else settled(unanswered);
    }
    return answers;
  };
  return replaced(broker, { publish });
}

/** One span each; the message says to its consumer that it comes from there. Undefined: nobody wants to know. */
function beginSpans(broker: Broker, messages: readonly Publication[], tracing: Tracing) {
  const tracer = activeTracer();
  if (!tracer) return undefined;
  const spans: (Span | undefined)[] = [];
  const traced = messages.map((message, i) => {
    const { headers, address, payload } = message;
    if (!isRetry(message)) return message;
    const messageId = String(headers['x-message-id']);
    const span = tracing.begin(tracer, {
      name: 'redrive.publish',
      kind: SpanKind.PRODUCER,
      messageId,
      traceparent: headers['traceparent'],
      attributes: {
        'messaging.system': broker.kind === 'queue' ? 'rabbitmq' : broker.kind,
        'messaging.operation.name': 'publish',
        'messaging.operation.type': 'send',
        'messaging.destination.name': address,
        'messaging.message.id': messageId,
        'messaging.message.body.size': payload.length,
        'messaging.batch.message_count': messages.length,
        'redrive.attempt': Number(headers['x-retry-count']),
        'redrive.lane': `${broker.kind}:${address}`,
      },
    });
    if (!span) return message;
    spans[i] = span;
    const traceparent = writeTraceparent(span.spanContext());
    return { ...message, headers: { ...headers, traceparent } };
  });
  return { messages: traced, spans };
}

/** Of a task, and not a message of the outbox. */
function isRetry({ headers }: Publication): boolean {
  return headers['x-retry-scheduler'] === 'true';
}

const unanswered: Published = {
  outcome: 'unknown',
  failure: { class: 'transient', code: 'NO_ANSWER', message: 'The broker gave no answer.' },
};

function failureOf(published: Published) {
  if (published.outcome === 'confirmed') return undefined;
  return 'failure' in published ? published.failure : { code: 'UNROUTABLE' };
}
