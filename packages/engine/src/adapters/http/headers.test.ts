import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Run } from '../../ports/delivery.ts';
import type { Task, TaskContext } from '../../model/task.ts';
import { checkContext, requestHeaders } from './headers.ts';

const run: Run = { signal: AbortSignal.any([]), attempt: 2, maxAttempts: 5, remainingMs: 1000 };
const url = new URL('https://example.com:8443/hook');

function headersOf(
  context?: TaskContext,
  credentials?: [string, string][],
): Record<string, string> {
  const task = { messageId: 'the-id', payload: new Uint8Array(7), context } as unknown as Task;
  const list = requestHeaders(task, run, url, credentials);
  const pairs = Array.from(
    { length: list.length / 2 },
    (_, i) => [list[2 * i]!, list[2 * i + 1]!] as const,
  );
  const names = pairs.map(([name]) => name.toLowerCase());
  expect(new Set(names).size, 'every name once').toBe(names.length);
  return Object.fromEntries(pairs);
}

function faultsOf(context: unknown): string[] {
  return checkContext(context as TaskContext).map(({ path, message }) => `${path}: ${message}`);
}

describe('the headers of a request', () => {
  it('tell what it is, and which execution', () => {
    expect(headersOf()).toEqual({
      host: 'example.com:8443',
      'accept-encoding': 'identity',
      'idempotency-key': 'the-id',
      'x-redrive-message-id': 'the-id',
      'x-redrive-attempt': '2',
      'x-redrive-max-attempts': '5',
      'content-length': '7',
      'user-agent': 'redrive',
    });
  });

  it('carry the content type, the trace and the headers of the task', () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const headers = { 'X-Tenant': 'acme', 'User-Agent': 'shop/1', Accept: 'text/plain' };
    expect(headersOf({ contentType: 'application/json', traceparent, headers })).toMatchObject({
      'content-type': 'application/json',
      traceparent,
      'X-Tenant': 'acme',
      'User-Agent': 'shop/1',
      Accept: 'text/plain',
    });
  });

  it('leave out a trace that is none', () => {
    for (const traceparent of [
      '',
      'x',
      'a\r\nb: c',
      '00-00000000000000000000000000000000-b7ad6b7169203331-01',
    ]) {
      expect(headersOf({ traceparent })).not.toHaveProperty('traceparent');
    }
  });

  it('leave to the connection what belongs to it', () => {
    const headers = {
      Host: 'evil.example',
      'Content-Length': '0',
      'Transfer-Encoding': 'chunked',
      Connection: 'close',
      TE: 'trailers',
      Upgrade: 'h2c',
      Expect: '100-continue',
    };
    expect(headersOf({ headers })).toEqual(headersOf());
  });

  it("do not let a task replace ours or the credentials', in any case of letters", () => {
    const headers = {
      'IDEMPOTENCY-KEY': 'x',
      'X-Redrive-Attempt': '9',
      'X-Api-Key': 'mine',
      'Accept-Encoding': 'gzip',
    };
    expect(headersOf({ headers }, [['x-api-key', 'theirs']])).toEqual({
      ...headersOf(),
      'x-api-key': 'theirs',
    });
  });

  it('announce no body where there is none', () => {
    expect(headersOf({ method: 'get' })).not.toHaveProperty('content-length');
    expect(headersOf({ method: 'HEAD' })).not.toHaveProperty('content-length');
    expect(headersOf({ method: 'DELETE' })).toHaveProperty('content-length');
  });
});

describe('the context of a task', () => {
  it('may be empty, or have what a request can have', () => {
    expect(checkContext(undefined)).toEqual([]);
    expect(checkContext({})).toEqual([]);
    expect(
      checkContext({
        method: 'patch',
        headers: { 'x-a': '', 'x-b': 'tab\tand ~' },
        contentType: 'a/b',
        secret: 's',
      }),
    ).toEqual([]);
  });

  it.each(['TRACE', 'CONNECT', 'OPTIONS', 'G ET', '', 'POST\r\n', 7])(
    'has no method %s',
    (method) => {
      expect(faultsOf({ method })).toEqual([
        'context.method: is not one of POST, PUT, PATCH, DELETE, GET, HEAD.',
      ]);
    },
  );

  it.each(['a\r\nx: y', 'a\nb', 'a\rb', 'nul\0', 'ünïcode', '\u007f', 7, null, undefined])(
    'has no header value %j',
    (value) => {
      expect(faultsOf({ headers: { 'x-a': value } })[0]).toMatch(
        /^context\.headers\.x-a: is not a text/,
      );
    },
  );

  it.each(['', 'a b', 'a:b', 'a\r\nb', 'ü'])('has no header named %j', (name) => {
    expect(faultsOf({ headers: { [name]: 'v' } })[0]).toMatch(/is not the name of a header/);
  });

  it('has no credentials: they would be stored', () => {
    for (const name of ['Authorization', 'cookie', 'Proxy-Authorization']) {
      const [fault] = faultsOf({ headers: { [name]: 'hunter2' } });
      expect(fault).toMatch(/Name a `secret`/);
      expect(fault).not.toContain('hunter2');
    }
  });

  it('has no endless header', () => {
    expect(faultsOf({ headers: { 'x-a': 'x'.repeat(20_000) } })[0]).toMatch(/is not a text/);
  });

  it('has at most 64 headers and 16 KiB of them', () => {
    const many = Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`x-${i}`, '']));
    expect(faultsOf({ headers: many })).toEqual(['context.headers: has 65 headers, 64 at most.']);
    const large = { a: 'x'.repeat(9000), b: 'x'.repeat(9000) };
    expect(faultsOf({ headers: large })[0]).toMatch(/16384 at most/);
  });

  it('has a content type and a secret that are plain texts', () => {
    expect(faultsOf({ contentType: 'a\r\nb' })[0]).toMatch(/^context\.contentType/);
    expect(faultsOf({ secret: '' })[0]).toMatch(/^context\.secret/);
    expect(faultsOf({ secret: 7 })[0]).toMatch(/^context\.secret/);
    expect(faultsOf({ secret: 'x'.repeat(300) })[0]).toMatch(/^context\.secret/);
  });

  it('without faults never breaks out of its line, whatever it holds', () => {
    const text = fc.oneof(
      fc.string(),
      fc.string({ unit: 'binary' }),
      fc.constantFrom('a\r\nb', 'host', 'x-a'),
    );
    fc.assert(
      fc.property(fc.dictionary(text, text, { maxKeys: 5 }), (headers) => {
        if (checkContext({ headers }).length > 0) return;
        for (const part of Object.entries(headersOf({ headers })).flat()) {
          expect(part).toMatch(/^[\t\x20-\x7e]*$/);
        }
      }),
    );
  });
});
