import { trace } from '@opentelemetry/api';
import fastify, { type FastifyInstance } from 'fastify';
import { describe, expect, it } from 'vitest';
import { exporter, idOf, spanId, spans, traceId, traceparent, withTracing } from '../spans.test.ts';
import { traceRequests } from './traced-requests.ts';

withTracing();

/** As the API calls it from its own hooks. */
function addTracing(app: FastifyInstance): void {
  const tracing = traceRequests(app);
  app.addHook('onRequest', (request, reply, done) => {
    tracing.begin(request, reply);
    done();
  });
  app.addHook('onResponse', (request, reply, done) => {
    tracing.end(request, reply.statusCode);
    done();
  });
}

describe('a request', () => {
  function appOf() {
    const app = fastify();
    addTracing(app);
    const active = () => trace.getActiveSpan()?.spanContext().spanId;
    app.post('/things/:id', (request) => ({
      traceparent: request.traceparent,
      active: active(),
    }));
    app.get('/boom', async () => {
      throw new Error('x');
    });
    app.get('/metrics', (request) => ({ traceparent: request.traceparent ?? null }));
    return app;
  }

  it('is a span in the trace of its caller, active in its handler, and what it submits belongs to it', async () => {
    const answer = await appOf().inject({
      method: 'POST',
      url: '/things/7?token=x',
      headers: { traceparent },
      payload: { a: 1 },
    });
    const [span] = spans('POST /things/:id');
    expect(span!.spanContext().traceId).toBe(traceId);
    expect(span!.parentSpanContext?.spanId).toBe(spanId);
    expect(span!.attributes).toEqual({
      'http.request.method': 'POST',
      'http.route': '/things/:id',
      'http.response.status_code': 200,
    });
    expect(answer.json()).toEqual({ traceparent: idOf(span!), active: span!.spanContext().spanId });
  });

  it('without a caller begins a trace; one that fails says so', async () => {
    const app = appOf();
    await app.inject('/boom');
    expect(spans('GET /boom')).toMatchObject([
      { status: { code: 2 }, attributes: { 'http.response.status_code': 500 } },
    ]);
    await app.inject('/nowhere');
    expect(spans('GET')).toMatchObject([{ status: { code: 0 }, parentSpanContext: undefined }]);
  });

  it('of a machine that only looks has no span', async () => {
    const answer = await appOf().inject('/metrics');
    expect([answer.json(), exporter.getFinishedSpans()]).toEqual([{ traceparent: null }, []]);
  });

  it('hands on what its caller sent where nobody has set up tracing', async () => {
    trace.disable();
    const headers = { traceparent };
    const answer = await appOf().inject({ method: 'POST', url: '/things/7', headers, payload: {} });
    expect(answer.json()).toEqual({ traceparent });
    const odd = { traceparent: 'no trace' };
    const other = await appOf().inject({ method: 'POST', url: '/things/7', headers: odd });
    expect(other.json()).toEqual({});
  });

  it('that nobody samples hands on what its caller sent', async () => {
    const unsampled = `00-${traceId}-${spanId}-00`;
    const headers = { traceparent: unsampled };
    const answer = await appOf().inject({ method: 'POST', url: '/things/7', headers, payload: {} });
    expect([answer.json(), exporter.getFinishedSpans()]).toEqual([{ traceparent: unsampled }, []]);
  });

  it('whose caller goes away ends as an error', async () => {
    const app = fastify();
    addTracing(app);
    const ended = Promise.withResolvers<void>();
    const began = Promise.withResolvers<void>();
    app.addHook('onRequestAbort', (_request, done) => {
      ended.resolve();
      done();
    });
    app.get('/slow', async () => {
      began.resolve();
      await new Promise<never>(() => {});
    });
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    const leaving = new AbortController();
    const answer = fetch(`${url}/slow`, { signal: leaving.signal });
    await began.promise;
    leaving.abort();
    await expect(answer).rejects.toThrow('abort');
    await ended.promise;
    expect(spans('GET /slow')).toMatchObject([{ status: { code: 2 } }]);
    await app.close();
  });
});
