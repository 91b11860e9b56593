/** What the tests of tracing share: an SDK as a user would set it up, and its spans in memory. */
import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type Context,
  context,
  type ContextManager,
  ROOT_CONTEXT,
  trace,
} from '@opentelemetry/api';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { activeTracer } from './trace/tracing.ts';

export const traceId = '0af7651916cd43dd8448eb211c80319c';
export const spanId = 'b7ad6b7169203331';
export const traceparent = `00-${traceId}-${spanId}-01`;

/** What an SDK brings along: without it no span is ever the active one. */
class Contexts implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>();
  active() {
    return this.#storage.getStore() ?? ROOT_CONTEXT;
  }
  with<A extends unknown[], F extends (...args: A) => ReturnType<F>>(
    active: Context,
    run: F,
    self?: ThisParameterType<F>,
    ...args: A
  ): ReturnType<F> {
    return this.#storage.run(active, () => run.call(self, ...args));
  }
  bind<T>(_active: Context, target: T) {
    return target;
  }
  enable() {
    return this;
  }
  disable() {
    return this;
  }
}

export const exporter = new InMemorySpanExporter();

function register(): void {
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  trace.setGlobalTracerProvider(provider);
  context.setGlobalContextManager(new Contexts());
}

/** For every test of a file. */
export function withTracing(): void {
  beforeEach(register);
  afterEach(() => {
    trace.disable();
    context.disable();
    exporter.reset();
  });
}

export const spans = (name: string): ReadableSpan[] =>
  exporter.getFinishedSpans().filter((span) => span.name === name);
export const idOf = (span: ReadableSpan) => {
  const { traceId: of, spanId: own } = span.spanContext();
  return `00-${of}-${own}-01`;
};

it('a tracer is there while somebody has set one up', () => {
  // It also runs in the files that import this one, where one is set up before every test.
  trace.disable();
  context.disable();
  exporter.reset();
  expect(activeTracer()).toBeUndefined();
  register();
  activeTracer()?.startSpan('one').end();
  expect(spans('one')).toHaveLength(1);
  trace.disable();
  expect(activeTracer()).toBeUndefined();
});
