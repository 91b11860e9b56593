import {
  type Attributes,
  context,
  type Context,
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  type SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
  type TracerProvider,
} from '@opentelemetry/api';
import type { TaskContext } from '@redrive/engine';
import { withoutCredentials } from '../log/redact.ts';
import { readTraceparent } from './traceparent.ts';

const NAME = 'redrive';
/** So many messages are remembered with the span of their last execution. */
const MAX_REMEMBERED = 10_000;

/** What a span of one execution is about. */
interface Execution {
  name: 'redrive.deliver' | 'redrive.publish';
  kind: SpanKind;
  messageId: string;
  /** As it came: the trace of whoever made the message. */
  traceparent: unknown;
  attributes: Attributes;
}

/** The tracer of whoever has set one up; undefined: nobody has, and nothing is to be done. */
export function activeTracer(): Tracer | undefined {
  const provider: MaybeStandIn = trace.getTracerProvider();
  return provider.getDelegateTracer ? provider.getDelegateTracer(NAME) : provider.getTracer(NAME);
}

/** What stands in until there is a real one says whether there is. */
type MaybeStandIn = TracerProvider & { getDelegateTracer?(name: string): Tracer | undefined };

/** Spans of executions: each belongs to the trace of its message, and points to the one before it. */
export class Tracing {
  readonly #last = new Map<string, SpanContext>();

  /** Undefined where nobody wants to know: then all stays as it came. */
  begin(tracer: Tracer, execution: Execution): Span | undefined {
    const { name, kind, messageId, traceparent, attributes } = execution;
    const parent = readTraceparent(traceparent);
    const before = this.#last.get(messageId);
    const links: Link[] = before ? [{ context: before }] : [];
    const origin = parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT;
    const span = tracer.startSpan(name, { kind, attributes, links }, origin);
    if (!span.isRecording()) return undefined;
    this.#remember(messageId, span.spanContext());
    return span;
  }

  #remember(messageId: string, span: SpanContext): void {
    // Again at the end: those that were seen longest ago go first.
    this.#last.delete(messageId);
    if (this.#last.size >= MAX_REMEMBERED) this.#last.delete(this.#last.keys().next().value!);
    this.#last.set(messageId, span);
  }
}

/** Runs it as a part of that span, for whatever looks at the active one. */
export function within<T>(span: Span, run: () => T): T {
  const active: Context = trace.setSpan(context.active(), span);
  return context.with(active, run);
}

export function endSpan(
  span: Span,
  failure?: { class?: string; code?: string; message?: string; status?: number },
): void {
  if (failure) {
    const { code, message, status } = failure;
    span.setAttribute('error.type', code ?? failure.class ?? '_OTHER');
    if (status !== undefined) span.setAttribute('http.response.status_code', status);
    const text = message === undefined ? {} : { message: withoutCredentials(message) };
    span.setStatus({ code: SpanStatusCode.ERROR, ...text });
  }
  span.end();
}

/** Where a message's trace is written: by itself, or among its headers. */
export function traceparentOf(of: TaskContext | undefined): unknown {
  return of?.traceparent ?? of?.headers?.['traceparent'];
}
