/** What real sockets hardly show: the parts of the gateway by themselves. */
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { RouteAttemptRecord, RouteExplanation } from 'redrive';
import { describe, expect, it } from 'vitest';
import { Answer } from './answer.ts';
import { answerHeaders, requestHeaders } from './forwarded-headers.ts';
import { KeptBodies } from './request-body.ts';
import { routeHeaders } from './route-headers.ts';

const messageOf = (headers: Record<string, string> = {}): IncomingMessage => {
  const message = new IncomingMessage(new Socket());
  message.statusCode = 200;
  Object.assign(message.headers, headers);
  return message;
};

describe('headers', () => {
  it('that Node could not write make an answer unusable', () => {
    expect(answerHeaders(['x-fine', 'caf\u00e9'], 200)).toEqual(['x-fine', 'caf\u00e9']);
    expect(answerHeaders(['x-bad', 'a\u0000b'], 200)).toBeUndefined();
    expect(answerHeaders(['x-bad', 'a\r\nb'], 200)).toBeUndefined();
    expect(answerHeaders(['x bad', 'a'], 200)).toBeUndefined();
    expect(answerHeaders(['content-length', '0'], 204)).toEqual([]);
  });

  it('that a body is read by cannot be taken away by connection', () => {
    const rawHeaders = [
      'Connection: content-type, Idempotency-Key, x-a',
      'Content-Type: a/b',
      'Idempotency-Key: k',
      'X-A: 1',
    ].flatMap((line) => line.split(': '));
    const headers = requestHeaders({ rawHeaders, host: 'h', own: new Map(), length: undefined });
    expect(headers).toEqual(['host', 'h', 'Content-Type', 'a/b', 'Idempotency-Key', 'k']);
    expect(answerHeaders(['connection', 'content-length', 'content-length', '3'], 200)).toEqual([
      'content-length',
      '3',
    ]);
  });

  it('explain in one line of ASCII, of 512 characters at most', () => {
    const attempt = { provider: 'one', outcome: 'ok' } as RouteAttemptRecord;
    const explained = (step: string) => {
      const explanation = { reason: 'sticky', steps: [step] } as unknown as RouteExplanation;
      return routeHeaders({ attempts: [attempt], explanation, provider: 'one' }).at(-1);
    };
    expect(explained('key = \u00fc\r\nx-evil: 1')).toBe('one ok; sticky: key = ???x-evil: 1');
    expect(explained('x'.repeat(1000))).toMatch(/^one ok; sticky: x{493}\.\.\.$/);
    expect(routeHeaders({ attempts: [] })).toEqual(['x-redrive-attempts', '0']);
  });
});

describe('an answer', () => {
  it('that is destroyed without a word has no end', async () => {
    const response = messageOf({ 'content-type': 'text/event-stream' });
    const answer = Answer.of(response, 1000)!;
    expect(await answer.next()).toMatchObject({ done: false, value: answer });
    const next = answer.next();
    response.destroy();
    await expect(next).rejects.toMatchObject({ code: 'STREAM_CUT' });
  });

  it('that nobody reads any more is destroyed', async () => {
    const response = messageOf();
    await Answer.of(response, 1000)!.return();
    expect(response.destroyed).toBe(true);
  });
});

describe('kept bodies', () => {
  const { signal } = new AbortController();

  it('are counted while they come in and while they are kept', async () => {
    const bodies = new KeptBodies(10, 15);
    const request = messageOf({ 'content-length': '10' });
    const reading = bodies.read(request, signal);
    expect(bodies.bytes).toBe(10);
    // There is no room for a second one: it is streamed.
    const other = messageOf({ 'transfer-encoding': 'chunked' });
    expect(await bodies.read(other, signal)).toMatchObject({ kind: 'stream' });
    request.push('1234');
    request.push(null);
    const body = (await reading)!;
    expect(body).toEqual({ kind: 'kept', bytes: Buffer.from('1234') });
    expect(bodies.bytes).toBe(4);
    bodies.free(body);
    expect(bodies.bytes).toBe(0);
  });

  it('are forgotten when the client goes away', async () => {
    const bodies = new KeptBodies(10, 15);
    const request = messageOf({ 'content-length': '10' });
    const reading = bodies.read(request, signal);
    request.push('1234');
    request.destroy();
    expect(await reading).toBeUndefined();
    expect(bodies.bytes).toBe(0);
  });
});
