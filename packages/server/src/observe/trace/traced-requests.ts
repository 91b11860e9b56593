import {
  context,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  ROOT_CONTEXT,
} from '@opentelemetry/api';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { activeTracer } from './tracing.ts';
import { readTraceparent, writeTraceparent } from './traceparent.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Where what this request submits belongs: its own span, else what its caller sent. */
    traceparent: string | undefined;
  }
}

/** Asked all the time by machines, or open for hours: nobody wants these among the traces. */
const untraced = /^\/(metrics|health\/|api\/v1\/events)/;

/** Called from the hooks of the API: hooks of its own would cost every request, traced or not. */
export interface RequestTracing {
  begin(request: FastifyRequest, reply: FastifyReply): void;
  end(request: FastifyRequest, status: number): void;
}

/**
 * A span for every request, within the trace of its caller. `request.traceparent` is what a submit gives to its tasks where
 * the caller gave none with the task itself.
 */
export function traceRequests(app: FastifyInstance): RequestTracing {
  const spans = new WeakMap<FastifyRequest, Span>();
  app.decorateRequest('traceparent', undefined);

  // Not before the body is read: what comes with its last byte knows nothing of what was active at the first.
  app.addHook('preValidation', (request, _reply, done) => {
    const span = spans.get(request);
    if (span) context.with(trace.setSpan(context.active(), span), done);
    else done();
  });
  return { begin, end };

  function begin(request: FastifyRequest, reply: FastifyReply): void {
    const sent = request.headers['traceparent'];
    const caller = sent === undefined ? undefined : readTraceparent(sent);
    if (caller) request.traceparent = sent as string;
    const tracer = activeTracer();
    if (!tracer || untraced.test(request.url)) return;
    const route = request.routeOptions.url;
    const name = route === undefined ? request.method : `${request.method} ${route}`;
    const attributes = {
      'http.request.method': request.method,
      ...(route === undefined ? {} : { 'http.route': route }),
    };
    const origin = caller ? trace.setSpanContext(ROOT_CONTEXT, caller) : ROOT_CONTEXT;
    const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, origin);
    if (!span.isRecording()) return;
    spans.set(request, span);
    request.traceparent = writeTraceparent(span.spanContext());
    // Where it has not ended by then, the caller has gone before its answer.
    reply.raw.once('close', () => end(request, undefined));
  }

  /** Without a status: the caller has gone. */
  function end(request: FastifyRequest, status: number | undefined): void {
    const span = spans.get(request);
    if (!span) return;
    spans.delete(request);
    if (status !== undefined) span.setAttribute('http.response.status_code', status);
    if (status === undefined || status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end();
  }
}
