import { trace } from '@opentelemetry/api';
import type { Delivery, Outcome, Received, SourceOptions, Task } from '@redrive/engine';
import {
  createTestBroker,
  createTestEngine,
  type TestEngineOptions,
} from '@redrive/engine/testing';
import { describe, expect, it } from 'vitest';
import { createObservers } from '../index.ts';
import { createLog } from '../log/log.ts';
import { exporter, idOf, spanId, spans, traceId, traceparent, withTracing } from '../spans.test.ts';

withTracing();

const observers = () =>
  createObservers({
    settings: { serviceName: 's', logLevel: 'silent', logFormat: 'json' } as never,
    instance: 'i-1',
  });

/** An HTTP receiver that fails until it has been asked so often. */
function receiver(failures: number) {
  const seen: (string | undefined)[] = [];
  const deliver = async ({ context: of }: Task): Promise<Outcome> => {
    seen.push(of?.traceparent);
    if (seen.length > failures) return { type: 'done' };
    const failure = {
      class: 'transient',
      code: 'HTTP_503',
      status: 503,
      message: 'down http://a:b@c',
    };
    return { type: 'failed', failure } as Outcome;
  };
  return { seen, delivery: { kind: 'http', deliver } satisfies Delivery };
}

const engineOf = (options: TestEngineOptions) =>
  createTestEngine({ policy: { maxAttempts: 4, base: '1s' }, ...options });

describe('a delivery', () => {
  it('belongs to the trace of its message, in every retry, and so does the header that goes out', async () => {
    const { seen, delivery } = receiver(2);
    const engine = engineOf({ deliveries: [observers().delivery(delivery)] });
    const { id } = await engine.submit(
      'https://api.example.com/a?key=x',
      { a: 1 },
      { context: { traceparent } },
    );
    await engine.advance('1h');
    const delivered = spans('redrive.deliver');
    expect(delivered.map((span) => span.spanContext().traceId)).toEqual([
      traceId,
      traceId,
      traceId,
    ]);
    expect(delivered.map((span) => span.parentSpanContext?.spanId)).toEqual([
      spanId,
      spanId,
      spanId,
    ]);
    expect(seen).toEqual(delivered.map(idOf));
    expect(new Set(seen)).toHaveLength(3);
    // Each points to the one before it.
    expect(delivered.map((span) => span.links.map(({ context: of }) => of.spanId))).toEqual([
      [],
      [delivered[0]!.spanContext().spanId],
      [delivered[1]!.spanContext().spanId],
    ]);
    expect(delivered[2]).toMatchObject({
      status: { code: 0 },
      attributes: {
        'messaging.message.id': id,
        'messaging.destination.name': 'https://api.example.com',
        'http.request.method': 'POST',
        'redrive.attempt': 3,
        'redrive.lane': 'https://api.example.com',
      },
    });
    expect(delivered[0]).toMatchObject({
      status: { code: 2, message: 'down http://***@c' },
      attributes: { 'error.type': 'HTTP_503', 'http.response.status_code': 503 },
    });
    expect((await engine.get(id))?.context?.traceparent).toBe(traceparent);
  });

  it('of a message without a trace begins one', async () => {
    const { seen, delivery } = receiver(0);
    const engine = engineOf({ deliveries: [observers().delivery(delivery)] });
    await engine.submit('https://api.example.com/', {});
    await engine.drain();
    const [span] = spans('redrive.deliver');
    expect(span!.parentSpanContext).toBeUndefined();
    expect(seen).toEqual([idOf(span!)]);
  });

  it('is the active span while it runs, so that what is logged there has its ids', async () => {
    const lines: string[] = [];
    const settings = {
      serviceName: 's',
      instance: 'i',
      logLevel: 'info',
      logFormat: 'json',
    } as const;
    const log = createLog(settings, { write: (line) => lines.push(line) });
    const deliver = async (): Promise<Outcome> => {
      await Promise.resolve();
      log.info('in delivery');
      throw new Error('x');
    };
    const engine = engineOf({ deliveries: [observers().delivery({ kind: 'http', deliver })] });
    await engine.submit('https://api.example.com/', {}, { context: { traceparent } });
    await engine.drain();
    log.info('outside');
    const [span] = spans('redrive.deliver');
    expect(JSON.parse(lines[0]!)).toMatchObject({
      trace_id: traceId,
      span_id: span!.spanContext().spanId,
    });
    expect(JSON.parse(lines[1]!)).not.toHaveProperty('trace_id');
    expect(span).toMatchObject({ attributes: { 'error.type': 'THREW' } });
  });

  it('that nobody samples goes out as it came', async () => {
    const { seen, delivery } = receiver(0);
    const engine = engineOf({ deliveries: [observers().delivery(delivery)] });
    const unsampled = `00-${traceId}-${spanId}-00`;
    await engine.submit('https://api.example.com/', {}, { context: { traceparent: unsampled } });
    await engine.drain();
    expect([seen, exporter.getFinishedSpans()]).toEqual([[unsampled], []]);
  });

  it('costs nothing and goes out as it came where nobody has set up tracing', async () => {
    trace.disable();
    const { seen, delivery } = receiver(0);
    const engine = engineOf({ deliveries: [observers().delivery(delivery)] });
    await engine.submit('https://api.example.com/', {}, { context: { traceparent } });
    await engine.drain();
    expect([seen, exporter.getFinishedSpans()]).toEqual([[traceparent], []]);
  });
});

describe('a publish', () => {
  it('belongs to the trace of its message and hands it on to the consumer', async () => {
    const broker = createTestBroker();
    const engine = engineOf({ brokers: [observers().broker(broker)] });
    const to = { kind: 'queue', address: 'orders' };
    const { id } = await engine.submit(to, { a: 1 }, { context: { traceparent } });
    await engine.drain();
    const [span] = spans('redrive.publish');
    expect(span!.spanContext().traceId).toBe(traceId);
    expect(span!.parentSpanContext?.spanId).toBe(spanId);
    expect(broker.published[0]?.headers['traceparent']).toBe(idOf(span!));
    expect(span).toMatchObject({
      attributes: {
        'messaging.system': 'rabbitmq',
        'messaging.operation.name': 'publish',
        'messaging.destination.name': 'orders',
        'messaging.message.id': id,
        'messaging.batch.message_count': 1,
        'redrive.attempt': 0,
        'redrive.lane': 'queue:orders',
      },
    });
  });

  it('that nobody listens to has failed', async () => {
    const broker = createTestBroker();
    broker.answer = () => ({ outcome: 'unroutable' });
    const engine = engineOf({ brokers: [observers().broker(broker)] });
    await engine.submit({ kind: 'queue', address: 'orders' }, {});
    await engine.drain();
    expect(spans('redrive.publish')).toMatchObject([
      { status: { code: 2 }, attributes: { 'error.type': 'UNROUTABLE' } },
    ]);
  });

  it('of a review message has no span, and of an unsampled one neither', async () => {
    const broker = createTestBroker();
    const observed = observers().broker(broker);
    const retry = {
      'x-retry-scheduler': 'true',
      'x-message-id': 'm',
      traceparent: `00-${traceId}-${spanId}-00`,
    };
    const payload = new Uint8Array();
    const messages = [
      { address: 'review', payload, headers: {} },
      { address: 'orders', payload, headers: retry },
    ];
    await Promise.all(observed.publish(messages, { timeoutMs: 1 }));
    expect(exporter.getFinishedSpans()).toEqual([]);
    expect(broker.published).toEqual(messages);
  });

  it('of a broker of another kind is said to be of that system', async () => {
    const observed = observers().broker(createTestBroker('nats'));
    const headers = { 'x-retry-scheduler': 'true', 'x-message-id': 'm', 'x-retry-count': 2 };
    await observed.publish([{ address: 'a', payload: new Uint8Array(), headers }], {
      timeoutMs: 1,
    })[0];
    expect(spans('redrive.publish')).toMatchObject([
      { attributes: { 'messaging.system': 'nats' } },
    ]);
  });
});

/** What a consumer of the source gets, once so many are there. */
async function consumed(source: SourceOptions, count: number, put: () => void) {
  const messages: Received[] = [];
  const all = Promise.withResolvers<void>();
  const limits = { maxMessages: 200, maxBytes: 1_000_000 };
  const consumer = await source.broker.consume(source.source, limits, (one) => {
    if (messages.push(one) === count) all.resolve();
  });
  put();
  await all.promise;
  return { consumer, messages };
}

describe('intake', () => {
  it('is one span per batch, with a link to the trace of each message', async () => {
    const broker = createTestBroker();
    const engine = engineOf({ brokers: [broker] });
    const source = observers().source({
      broker,
      source: 'retry.scheduled',
      read: ({ headers }) => ({
        type: 'failure',
        report: {
          messageId: String(headers['id']),
          to: { kind: 'queue', address: 'orders' },
          payload: new Uint8Array(),
          failure: { class: 'transient' },
          attempt: 1,
        },
      }),
    });
    engine.consume(source);
    const id = (n: number) => `018f0000-0000-7000-8000-00000000000${n}`;
    broker.put('retry.scheduled', { headers: { id: id(1), traceparent } });
    broker.put('retry.scheduled', { headers: { id: id(2) } });
    await engine.drain();
    expect(spans('redrive.intake')).toMatchObject([
      {
        links: [{ context: { traceId, spanId } }],
        attributes: {
          'messaging.system': 'rabbitmq',
          'messaging.destination.name': 'retry.scheduled',
          'messaging.batch.message_count': 2,
        },
        status: { code: 0 },
      },
    ]);
  });

  it('that gives messages back has failed', async () => {
    const broker = createTestBroker('nats');
    const source = observers().source({
      broker,
      source: 'q',
      read: () => {
        throw new Error('x');
      },
    });
    const { consumer, messages } = await consumed(source, 1, () => broker.put('q', {}));
    expect(() => source.read(messages[0]!)).toThrow('x');
    await consumer.requeue(messages.splice(0));
    expect(spans('redrive.intake')).toMatchObject([
      { status: { code: 2 }, attributes: { 'error.type': 'RETURNED', 'messaging.system': 'nats' } },
    ]);
  });

  it('links at most 128 messages', async () => {
    const broker = createTestBroker();
    const source = observers().source({
      broker,
      source: 'q',
      read: () => ({ type: 'failure' }) as never,
    });
    const { consumer, messages } = await consumed(source, 150, () => {
      for (let i = 0; i < 150; i++) broker.put('q', { headers: { traceparent } });
    });
    for (const one of messages) source.read(one);
    await consumer.ack(messages);
    expect(spans('redrive.intake')[0]?.links).toHaveLength(128);
  });
});

it('the last spans of 10 000 messages are remembered, and no more', async () => {
  const observed = observers().broker(createTestBroker());
  const publish = (id: number) =>
    observed.publish(
      [
        {
          address: 'a',
          payload: new Uint8Array(),
          headers: { 'x-retry-scheduler': 'true', 'x-message-id': `m-${id}`, 'x-retry-count': 1 },
        },
      ],
      { timeoutMs: 1 },
    )[0];
  for (let i = 0; i <= 10_000; i++) void publish(i);
  await publish(1);
  await publish(0);
  const [known, forgotten] = spans('redrive.publish').slice(-2);
  expect([known!.links.length, forgotten!.links.length]).toEqual([1, 0]);
});
