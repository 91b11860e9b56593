/**
 * The library on any server runtime: plain scripts without a test framework, so that Node.js, Bun and Deno all run them. Prints one
 * line of JSON per check, with `ok` or what went wrong.
 */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:net';
import { classify, createBulkhead, retry, retryFetch } from '../../packages/core/src/index.ts';
import { retry as smallRetry } from '../../packages/core/src/small.ts';

const quick = { maxAttempts: 3, base: 0 } as const;

/** A server that answers each connection with the next text; `cut` breaks the connection off after it. */
async function serve(answers: readonly string[]): Promise<{ url: string; server: Server }> {
  let served = 0;
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      const next = answers[Math.min(served, answers.length - 1)] ?? '';
      served += 1;
      const text = next.endsWith('cut') ? next.slice(0, -3) : next;
      if (text === '') socket.destroy();
      else socket.end(text);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve());
  });
  const address = server.address();
  assert(typeof address === 'object' && address);
  return { server, url: `http://127.0.0.1:${address.port}/` };
}

function answer(status: string, body: string, headers = ''): string {
  return `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: ${body.length}\r\n${headers}\r\n${body}`;
}

async function on(
  answers: readonly string[],
  work: (url: string) => Promise<unknown>,
): Promise<unknown> {
  const { server, url } = await serve(answers);
  try {
    return await work(url);
  } finally {
    server.close();
  }
}

async function failureOf(work: () => Promise<unknown>): Promise<ReturnType<typeof classify>> {
  return work().then(
    () => assert.fail('it worked'),
    (error: unknown) => classify(error),
  );
}

const checks: Record<string, () => Promise<unknown>> = {
  'a 503 is tried again': () =>
    on([answer('503 Busy', 'no'), answer('200 OK', 'yes')], async (url) => {
      const response = await retryFetch(url, {}, quick);
      assert.equal(await response.text(), 'yes');
    }),
  'the last 503 is returned with its body': () =>
    on([answer('503 Busy', 'no')], async (url) => {
      const response = await retryFetch(url, {}, quick);
      assert.equal(response.status, 503);
      assert.equal(await response.text(), 'no');
    }),
  'the last 503 is thrown': () =>
    on([answer('503 Busy', 'no')], async (url) => {
      const call = retryFetch(url, {}, quick, { lastResponse: 'throw' });
      await assert.rejects(call, { code: 'EXHAUSTED', attempts: 3 });
    }),
  'a Retry-After is honoured': () =>
    on([answer('429 Slow', '', 'Retry-After: 3600\r\n')], async (url) => {
      const call = retryFetch(url, {}, quick, { lastResponse: 'throw' });
      await assert.rejects(call, { code: 'RETRY_AFTER_TOO_LONG', retryAfterMs: 3_600_000 });
    }),
  'a connection that is closed without an answer is tried again': () =>
    on(['cut', answer('200 OK', 'yes')], async (url) => {
      assert.equal((await retryFetch(url, {}, quick)).status, 200);
    }),
  'a POST is not sent twice after a 503': () =>
    on([answer('503 Busy', ''), answer('200 OK', '')], async (url) => {
      const response = await retryFetch(url, { method: 'POST', body: 'x' }, quick);
      assert.equal(response.status, 503);
    }),
  'the body of a Request is sent each time': () =>
    on([answer('503 Busy', ''), answer('200 OK', '')], async (url) => {
      const request = new Request(url, { method: 'PUT', body: 'mine' });
      assert.equal((await retryFetch(request, undefined, quick)).status, 200);
    }),
  'a stream is sent once': () =>
    on([answer('503 Busy', ''), answer('200 OK', '')], async (url) => {
      const body = new Blob(['once']).stream();
      const init = { method: 'PUT', body, duplex: 'half' } as RequestInit;
      assert.equal((await retryFetch(url, init, quick)).status, 503);
    }),
  'an abort ends a wait': () =>
    on([answer('503 Busy', '')], async (url) => {
      const controller = new AbortController();
      const listeners = { wait: () => controller.abort(new Error('enough')) };
      const init = { signal: controller.signal };
      const call = retryFetch(url, init, { base: '1h' }, { on: listeners });
      await assert.rejects(call, { code: 'ABORTED' });
    }),
  'a connection that is refused was surely not executed': async () => {
    const { server, url } = await serve([]);
    await new Promise((resolve) => {
      server.close(resolve);
    });
    const failure = await failureOf(() => fetch(url));
    assert.equal(failure.class, 'transient');
    assert.equal(failure.notExecuted, true);
  },
  'a body that is cut off is transient': () =>
    on(['HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabccut'], async (url) => {
      const failure = await failureOf(async () => (await fetch(url)).text());
      assert.equal(failure.class, 'transient');
    }),
  'a URL that cannot be read is a mistake': async () => {
    await assert.rejects(retryFetch('http://'), TypeError);
  },
  'a bulkhead bounds what runs at once': async () => {
    const bulkhead = createBulkhead({ maxConcurrent: 2, maxQueue: 10 });
    let [running, most] = [0, 0];
    const work = async () => {
      most = Math.max(most, ++running);
      await Promise.resolve();
      running -= 1;
    };
    await Promise.all(Array.from({ length: 8 }, () => retry(work, {}, { bulkhead })));
    assert.equal(most, 2);
  },
  'redrive/small retries': async () => {
    let calls = 0;
    const result = await smallRetry(() => (++calls < 3 ? Promise.reject(new Error('x')) : calls), {
      base: '1ms',
    });
    assert.equal(result, 3);
  },
};

for (const [name, check] of Object.entries(checks)) {
  let outcome = 'ok';
  try {
    await check();
  } catch (error) {
    outcome = String(error);
  }
  console.log(JSON.stringify({ name, outcome }));
}
