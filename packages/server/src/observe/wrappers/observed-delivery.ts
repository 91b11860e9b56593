import { type Span, SpanKind, type Tracer } from '@opentelemetry/api';
import type { Delivery, Outcome, Run, Task } from '@redrive/engine';
import type { Clock } from 'redrive';
import type { ServiceMetrics } from '../metrics/metrics.ts';
import { activeTracer, endSpan, traceparentOf, type Tracing, within } from '../trace/tracing.ts';
import { writeTraceparent } from '../trace/traceparent.ts';
import { replaced } from './wrapped.ts';

interface Parts {
  metrics: Pick<ServiceMetrics, 'executed' | 'delivered'>;
  tracing: Tracing;
  clock: Clock;
}

/** The same delivery, with its executions measured, counted and traced. */
export function observedDelivery(delivery: Delivery, parts: Parts): Delivery {
  const { metrics, tracing, clock } = parts;

  async function deliver(task: Task, run: Run): Promise<Outcome> {
    const tracer = activeTracer();
    const span = tracer && begin(tracer, tracing, delivery.kind, task, run);
    const beganAt = clock.monotonic();
    let outcome: Outcome | undefined;
    try {
      outcome = span
        ? await within(span, () => delivery.deliver(withTrace(task, span), run))
        : await delivery.deliver(task, run);
      return outcome;
    } finally {
      // One that throws has failed: so the engine takes it, too.
      const type = outcome?.type ?? 'failed';
      metrics.delivered(delivery.kind, type, (clock.monotonic() - beganAt) / 1000);
      // Put off by a wish of its own, or not even begun: that neither worked nor failed.
      if (type !== 'snooze' && type !== 'away')
        metrics.executed(task.lane, type === 'done' || type === 'taken');
      if (span) endSpan(span, failureOf(outcome));
    }
  }

  return replaced(delivery, { deliver });
}

function begin(
  tracer: Tracer,
  tracing: Tracing,
  kind: string,
  task: Task,
  run: Run,
): Span | undefined {
  return tracing.begin(tracer, {
    name: 'redrive.deliver',
    kind: SpanKind.CLIENT,
    messageId: task.messageId,
    traceparent: traceparentOf(task.context),
    attributes: {
      'messaging.system': 'redrive',
      'messaging.operation.name': 'deliver',
      'messaging.operation.type': 'send',
      // Not the whole URL: its query may hold what nobody else should know.
      'messaging.destination.name': task.lane,
      'messaging.message.id': task.messageId,
      'messaging.message.body.size': task.payload.length,
      ...(kind === 'http' ? { 'http.request.method': task.context?.method ?? 'POST' } : {}),
      'redrive.attempt': run.attempt,
      'redrive.lane': task.lane,
    },
  });
}

function withTrace(task: Task, span: Span): Task {
  const traceparent = writeTraceparent(span.spanContext());
  return { ...task, context: { ...task.context, traceparent } };
}

function failureOf(outcome: Outcome | undefined) {
  if (!outcome) return { code: 'THREW' };
  return 'failure' in outcome ? outcome.failure : undefined;
}
