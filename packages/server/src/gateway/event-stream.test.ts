import { describe, expect, it } from 'vitest';
import { EventPreamble } from './event-preamble.ts';
import { json, provider, rawProvider, stage } from './stage.test.ts';

const sse = (text: string) =>
  `HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nConnection: close\r\n\r\n${text}`;
const chunked = (...texts: string[]) =>
  `HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n${texts.map((text) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`).join('')}`;

const role =
  'data: {"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n';
const word = 'data: {"choices":[{"delta":{"content":"hé"}}]}\n\n';
const overloaded = 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n';

describe('an event stream', () => {
  it('passes untouched, byte for byte, as it comes', async () => {
    const text = `: ping\r\n\r\n${role}id: 1\nretry: 5\n\n${word}data: [DONE]\n\n\ufeff`;
    const one = await rawProvider(sse(text));
    const { ask } = await stage({ providers: { one } });
    const reply = await ask({ body: 'x' });
    expect(reply.body.equals(Buffer.from(text))).toBe(true);
    expect(reply.headers['content-type']).toBe('text/event-stream; charset=utf-8');
    expect(reply.headers['content-length']).toBeUndefined();
  });

  it('reaches the client event by event, not at its end', async () => {
    const open: ((text: string) => void)[] = [];
    const one = await provider((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      open.push((text) => response.write(text));
      response.write(word);
    });
    const { url } = await stage({ providers: { one } });
    const response = await fetch(`${url}/gateway/llm/a`, { method: 'POST', body: 'x' });
    const reader = response.body!.getReader();
    const read = async () => Buffer.from((await reader.read()).value ?? []).toString();
    expect(await read()).toBe(word);
    open[0]?.('data: 2\n\n');
    expect(await read()).toBe('data: 2\n\n');
    await reader.cancel();
  });

  it.each([
    ['a comment', ': hello\n\n'],
    ['a ping', 'event: ping\ndata: {"type":"ping"}\n\n'],
    ['a start', 'event: message_start\ndata: {"type":"message_start","message":{}}\n\n'],
    ['a role', role],
    ['half an event', 'data: {"choi'],
    ['nothing', ''],
  ])('that is cut after %s falls back: nothing has gone out yet', async (_, text) => {
    const one = await rawProvider(chunked(...(text === '' ? [] : [text])), (socket) =>
      socket.destroy(),
    );
    const two = await rawProvider(sse(word));
    const { ask } = await stage({
      providers: { one, two },
      fields: { one: { retry_unsafe: true } },
    });
    const reply = await ask({ body: 'x' });
    expect(reply).toMatchObject({ status: 200, text: word, isWhole: true });
    expect(reply.headers['x-redrive-explanation']).toContain('one connection_error, two ok');
  });

  it('that stalls after its preamble falls back by timeout_ms', async () => {
    const one = await rawProvider(chunked(': wait\n\n'), () => undefined);
    const two = await rawProvider(sse(word));
    const { ask } = await stage({
      providers: { one, two },
      fields: { one: { retry_unsafe: true } },
      policy: { timeout_ms: 80 },
    });
    expect((await ask({ body: 'x' })).headers['x-redrive-explanation']).toContain(
      'one timeout, two ok',
    );
  });

  it('that begins with an error falls back', async () => {
    const one = await rawProvider(chunked('event: ping\ndata: {}\n\n', overloaded, '0'));
    const two = await rawProvider(sse(word));
    const { ask } = await stage({
      providers: { one, two },
      fields: { one: { retry_unsafe: true } },
    });
    expect((await ask({ body: 'x' })).headers['x-redrive-explanation']).toContain(
      'one 529, two ok',
    );
  });

  it('that begins with an error is passed on whole where nobody else is left', async () => {
    const text = `event: ping\ndata: {}\n\n${overloaded}data: more\n\n`;
    const one = await rawProvider(sse(text));
    const { ask } = await stage({ providers: { one } });
    expect(await ask({ body: 'x' })).toMatchObject({
      status: 200,
      text,
      headers: { 'x-should-retry': 'false' },
    });
  });

  it('that is cut after its content destroys the client’s connection', async () => {
    const one = await rawProvider(chunked(role, word), (socket) => socket.destroy());
    const two = await provider(json({}));
    const { ask, router } = await stage({
      providers: { one, two },
      fields: { one: { retry_unsafe: true } },
    });
    expect(await ask({ body: 'x' })).toMatchObject({
      status: 200,
      text: role + word,
      isWhole: false,
    });
    expect(two.got).toEqual([]);
    expect(router.health()['one']).toMatchObject({ failures: 1 });
  });
});

describe('the preamble', () => {
  const verdictOf = (...chunks: string[]) => {
    const preamble = new EventPreamble();
    let verdict: unknown;
    for (const chunk of chunks) verdict = preamble.add(Buffer.from(chunk));
    return verdict;
  };

  it.each([
    ['harmless', ['data: {"a":1}']],
    ['content', ['data: {"a":1}', '\n', '\n']],
    ['content', ['data: [DONE]\n\n']],
    ['content', ['data: "x"\r\n\r\n']],
    ['content', ['data: {"choices":[]}\n\n']],
    ['content', ['data: {"choices":[{"delta":{"role":"assistant","tool_calls":[{}]}}]}\n\n']],
    ['content', ['data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n']],
    ['harmless', ['event: response.created\ndata: {"type":"response.created"}\n\n']],
    ['content', ['event: response.output_text.delta\ndata: {"delta":"x"}\n\n']],
    ['harmless', ['retry: 10\n\n:\n\n']],
    ['content', [`: ${'x'.repeat(70_000)}`]],
  ])('is %s: %j', (kind, chunks) => {
    expect(verdictOf(...chunks)).toEqual({ kind });
  });

  it.each([
    [500, 'event: error\ndata: oh\n\n'],
    [429, 'data: {"error":{"type":"rate_limit_error"}}\n\n'],
    [503, 'data: {"error":{"code":503}}\n\n'],
    [500, 'data: {"type":"error","error":{"code":"x"}}\n\n'],
    [500, 'data: {"error":{"code":200}}\n\n'],
    [500, 'event: response.failed\ndata: {"type":"response.failed"}\n\n'],
  ])('with an error has the status %i: %j', (status, text) => {
    expect(verdictOf(text)).toEqual({ kind: 'error', status });
  });
});
