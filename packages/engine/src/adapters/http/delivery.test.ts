import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterEach, describe, expect, it } from 'vitest';
import type { Delivery, Outcome, Run } from '../../ports/delivery.ts';
import type { Task, TaskContext } from '../../model/task.ts';
import { http, type HttpOptions, type Secret } from './index.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const clean of cleanups.splice(0)) await clean();
});

interface Heard {
  method: string | undefined;
  url: string | undefined;
  headers: IncomingMessage['headers'];
  body: Buffer;
}

/** A server that keeps what it hears before it answers. */
async function serve(answer: RequestListener) {
  const heard: Heard[] = [];
  let connections = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method, url, headers } = request;
      heard.push({ method, url, headers, body: Buffer.concat(chunks) });
      answer(request, response);
    });
  });
  server.on('connection', () => connections++);
  return { heard, origin: await listen(server), server, connections: () => connections };
}

async function listen(server: Server, host = '127.0.0.1'): Promise<string> {
  server.listen(0, host);
  await once(server, 'listening');
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const hasIPv6 = Object.values(networkInterfaces()).some((each) =>
  each?.some(({ address }) => address === '::1'),
);
const never = (): void => undefined;
const ok: RequestListener = (_, response) => void response.writeHead(204).end();

function local(options: HttpOptions = {}): Required<Delivery> {
  const delivery = http({ allow: ['loopback'], ...options });
  cleanups.push(() => delivery.close());
  return delivery;
}

function taskFor(address: string, context?: TaskContext, payload = 'hello'): Task {
  const task = {
    messageId: '7f0c3b8e-51a8-4f5c-9a53-0f6f4f8b1c11',
    destination: { kind: 'http', address },
    payload: Buffer.from(payload),
    context,
  };
  return task as unknown as Task;
}

const noSignal = new AbortController().signal;

function runOf(run: Partial<Run> = {}): Run {
  return { signal: noSignal, attempt: 1, maxAttempts: 4, remainingMs: 20_000, ...run };
}

function failureOf(outcome: Outcome) {
  if (outcome.type !== 'failed') throw new Error(`not failed but ${outcome.type}`);
  return outcome.failure;
}

describe('an HTTP delivery', () => {
  it('brings the payload byte for byte, and says what it is', async () => {
    const { origin, heard } = await serve(ok);
    const context = { headers: { 'x-tenant': 'acme' }, contentType: 'application/json' };
    const task = {
      ...taskFor(`${origin}/a%20b?c=d#e`, context),
      payload: Uint8Array.of(0, 255, 10, 13),
    };
    expect(await local().deliver(task, runOf({ attempt: 3 }))).toEqual({ type: 'done' });
    expect(heard).toEqual([
      {
        method: 'POST',
        url: '/a%20b?c=d',
        body: Buffer.of(0, 255, 10, 13),
        headers: {
          host: origin.slice('http://'.length),
          connection: 'keep-alive',
          'accept-encoding': 'identity',
          'content-length': '4',
          'content-type': 'application/json',
          'idempotency-key': task.messageId,
          'user-agent': 'redrive',
          'x-redrive-attempt': '3',
          'x-redrive-max-attempts': '4',
          'x-redrive-message-id': task.messageId,
          'x-tenant': 'acme',
        },
      },
    ]);
  });

  it.each([200, 201, 202, 204, 206, 299])('is done after %i', async (status) => {
    const { origin } = await serve((_, response) => void response.writeHead(status).end());
    expect(await local().deliver(taskFor(origin), runOf())).toEqual({ type: 'done' });
  });

  it.each(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])('sends %s', async (method) => {
    const { origin, heard } = await serve((_, response) => void response.end('fine'));
    expect(await local().deliver(taskFor(origin, { method }), runOf())).toEqual({ type: 'done' });
    const hasBody = method !== 'GET' && method !== 'HEAD';
    expect(heard).toMatchObject([{ method, body: Buffer.from(hasBody ? 'hello' : '') }]);
  });

  it('keeps the status, the wait that is asked for, and the answer of a failure', async () => {
    const { origin } = await serve((_, response) => {
      response.writeHead(503, { 'retry-after': '30' }).end('{"error":"busy"}');
    });
    expect(await local().deliver(taskFor(origin), runOf())).toEqual({
      type: 'failed',
      failure: {
        class: 'transient',
        code: 'HTTP_503',
        status: 503,
        retryAfterMs: 30_000,
        message: `${origin} answered 503.`,
      },
      answer: '{"error":"busy"}',
    });
  });

  it("measures a date against the server's own", async () => {
    const { origin } = await serve((_, response) => {
      const headers = {
        date: 'Tue, 01 Jan 2030 12:00:00 GMT',
        'retry-after': 'Tue, 01 Jan 2030 12:00:09 GMT',
      };
      response.writeHead(429, headers).end();
    });
    const failure = failureOf(await local().deliver(taskFor(origin), runOf()));
    expect(failure).toMatchObject({ retryAfterMs: 9000, notExecuted: true });
  });

  it('follows no redirect', async () => {
    const target = await serve(ok);
    const { origin } = await serve((_, response) => {
      response.writeHead(307, { location: `${target.origin}/next` }).end();
    });
    const failure = failureOf(await local().deliver(taskFor(origin), runOf()));
    expect(failure).toMatchObject({ class: 'technical', code: 'HTTP_307' });
    expect(failure.message).toContain(`points to ${target.origin}: redirects are not followed`);
    expect(target.connections()).toBe(0);
  });

  it('sends nothing that it cannot send', async () => {
    const { origin, connections } = await serve(ok);
    const tasks = [
      taskFor('ftp://example.com'),
      taskFor(origin.replace('http://', 'http://user:hunter2@')),
      taskFor(origin, { method: 'TRACE' }),
      taskFor(origin, { headers: { 'x-a': 'b\r\nx-c: d' } }),
    ];
    for (const task of tasks) {
      const failure = failureOf(await local().deliver(task, runOf()));
      expect(failure).toMatchObject({
        class: 'technical',
        code: 'INVALID_REQUEST',
        notExecuted: true,
      });
      expect(failure.message).not.toContain('hunter2');
    }
    expect(connections()).toBe(0);
  });
});

describe('the connections of an HTTP delivery', () => {
  it('are used again, also after a failure with a body', async () => {
    const { origin, connections, heard } = await serve((request, response) => {
      response.writeHead(request.url === '/bad' ? 500 : 200).end('x'.repeat(60_000));
    });
    const delivery = local();
    for (const path of ['/', '/bad', '/', '/bad'])
      await delivery.deliver(taskFor(origin + path), runOf());
    expect(heard).toHaveLength(4);
    expect(connections()).toBe(1);
  });

  it('are never more at once than the limits', async () => {
    const waiting: ServerResponse[] = [];
    let most = 0;
    const { origin, heard } = await serve((_, response) => {
      most = Math.max(most, waiting.push(response));
      if (waiting.length === 3) for (const each of waiting.splice(0)) each.end();
    });
    const delivery = local({ maxConnectionsPerOrigin: 3 });
    const outcomes = await Promise.all(
      Array.from({ length: 30 }, () => delivery.deliver(taskFor(origin), runOf())),
    );
    expect(outcomes.every(({ type }) => type === 'done')).toBe(true);
    expect(heard).toHaveLength(30);
    expect(most).toBe(3);
  });

  it('that are idle give way to another origin', async () => {
    const first = await serve(ok);
    const second = await serve(ok);
    const delivery = local({ maxConnections: 1, idle: '1h' });
    const closed = once(first.server, 'connection').then(([socket]) =>
      once(socket as never, 'close'),
    );
    expect(await delivery.deliver(taskFor(first.origin), runOf())).toEqual({ type: 'done' });
    expect(await delivery.deliver(taskFor(second.origin), runOf())).toEqual({ type: 'done' });
    await closed;
    expect(await delivery.deliver(taskFor(second.origin), runOf())).toEqual({ type: 'done' });
    expect(second.connections()).toBe(1);
  });

  it('that are in use again do not give way', async () => {
    const held: ServerResponse[] = [];
    const busy = await serve((_, response) => {
      if (busy.heard.length === 1) response.end();
      else held.push(response);
    });
    const [second, third] = [await serve(ok), await serve(ok)];
    const delivery = local({ maxConnections: 2 });
    await delivery.deliver(taskFor(busy.origin), runOf());
    const asked = once(busy.server, 'request');
    const delivered = delivery.deliver(taskFor(busy.origin), runOf());
    await asked;
    await delivery.deliver(taskFor(second.origin), runOf());
    await delivery.deliver(taskFor(third.origin), runOf());
    for (const response of held) response.end();
    expect(await delivered).toEqual({ type: 'done' });
    expect(busy.connections()).toBe(1);
  });

  it('may be silent for longer than an idle one is kept, while an answer is awaited', async () => {
    const { origin } = await serve((_, response) => void setTimeout(() => response.end(), 60));
    expect(await local({ idle: 5 }).deliver(taskFor(origin), runOf())).toEqual({ type: 'done' });
  });

  it('that are idle for too long are closed', async () => {
    const { origin, server } = await serve(ok);
    const closed = once(server, 'connection').then(([socket]) => once(socket as never, 'close'));
    expect(await local({ idle: 5 }).deliver(taskFor(origin), runOf())).toEqual({ type: 'done' });
    await closed;
  });

  it('that are all taken are waited for, in vain without counting an attempt', async () => {
    const { origin, server } = await serve(() => undefined);
    const delivery = local({ maxConnections: 1 });
    const abort = new AbortController();
    const asked = once(server, 'request');
    const first = delivery.deliver(taskFor(origin), runOf({ signal: abort.signal }));
    await asked;
    const second = await delivery.deliver(taskFor(origin), runOf({ remainingMs: 20 }));
    expect(failureOf(second)).toMatchObject({
      class: 'transient',
      code: 'NO_CONNECTION_FREE',
      counted: false,
      notExecuted: true,
    });
    const gone = new AbortController();
    const third = delivery.deliver(taskFor(origin), runOf({ signal: gone.signal }));
    gone.abort();
    expect(failureOf(await third)).toMatchObject({ code: 'ABORT_ERR', notExecuted: true });
    abort.abort();
    expect(failureOf(await first).code).toBe('ABORT_ERR');
  });

  it('are closed by close, and no new ones are opened', async () => {
    const { origin, server, connections } = await serve(ok);
    const closed = once(server, 'connection').then(([socket]) => once(socket as never, 'close'));
    const delivery = local();
    await delivery.deliver(taskFor(origin), runOf());
    await delivery.close();
    await closed;
    expect(failureOf(await delivery.deliver(taskFor(origin), runOf()))).toMatchObject({
      class: 'transient',
      code: 'DELIVERY_CLOSED',
      counted: false,
    });
    expect(connections()).toBe(1);
  });
});

describe('the credentials of a task', () => {
  const secretsFor = (origin: string): Record<string, Secret> => ({
    bearer: { bearer: 'hunter2hunter2', origins: [origin] },
    key: { headers: { 'x-api-key': 'hunter2' }, origins: [origin] },
    elsewhere: { bearer: 'hunter2', origins: ['https://api.example.com'] },
  });

  it('are sent, and are nowhere else', async () => {
    const { origin, heard } = await serve((request, response) => {
      response.writeHead(500).end(JSON.stringify(request.headers));
    });
    const outcome = await local({ secrets: secretsFor(origin) }).deliver(
      taskFor(origin, { secret: 'bearer' }),
      runOf(),
    );
    expect(heard[0]?.headers.authorization).toBe('Bearer hunter2hunter2');
    expect(JSON.stringify(outcome)).toContain('\\"authorization\\":\\"[secret]\\"');
    expect(JSON.stringify(outcome)).not.toContain('hunter2');
  });

  it('cannot be replaced by a header of the task', async () => {
    const { origin, heard } = await serve(ok);
    const context = { secret: 'key', headers: { 'X-API-Key': 'forged' } };
    await local({ secrets: secretsFor(origin) }).deliver(taskFor(origin, context), runOf());
    expect(heard[0]?.headers['x-api-key']).toBe('hunter2');
  });

  it('that are missing or not for this origin keep the task here', async () => {
    const { origin, connections } = await serve(ok);
    const delivery = local({ secrets: secretsFor(origin) });
    const unknown = await delivery.deliver(taskFor(origin, { secret: 'nobody' }), runOf());
    expect(failureOf(unknown)).toMatchObject({
      class: 'transient',
      code: 'UNKNOWN_SECRET',
      counted: false,
    });
    const foreign = await delivery.deliver(taskFor(origin, { secret: 'elsewhere' }), runOf());
    expect(failureOf(foreign)).toMatchObject({ class: 'technical', code: 'SECRET_REFUSED' });
    expect(connections()).toBe(0);
  });

  it('that do not come in time are a timeout before anything ran', async () => {
    const { origin, connections } = await serve(ok);
    const delivery = local({ secrets: () => new Promise(never) });
    const outcome = await delivery.deliver(
      taskFor(origin, { secret: 'a' }),
      runOf({ remainingMs: 20 }),
    );
    expect(failureOf(outcome)).toMatchObject({ code: 'TIMEOUT', notExecuted: true });
    expect(connections()).toBe(0);
  });
});

describe('the address of a destination', () => {
  it('is not connected to where it is private, however it is written', async () => {
    const { origin, connections } = await serve(ok);
    const delivery = http();
    cleanups.push(() => delivery.close());
    const { port } = new URL(origin);
    for (const host of [
      '127.0.0.1',
      'localhost',
      '127.1',
      '0x7f.1',
      '2130706433',
      '0177.0.0.1',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '[64:ff9b::7f00:1]',
      '0.0.0.0',
      '10.0.0.1',
      '169.254.169.254',
      '[fe80::1]',
    ]) {
      const failure = failureOf(
        await delivery.deliver(taskFor(`http://${host}:${port}/`), runOf()),
      );
      expect(failure, host).toMatchObject({
        class: 'technical',
        code: 'ADDRESS_REFUSED',
        notExecuted: true,
      });
    }
    expect(connections()).toBe(0);
  });

  it('that is link-local stays refused where all else is allowed', async () => {
    const delivery = local({
      allow: ['loopback', 'private', '0.0.0.0/0', '::/0', 'meta.test'],
      resolve: () => Promise.resolve(['169.254.169.254']),
    });
    for (const host of ['meta.test', '169.254.169.254', '[::ffff:a9fe:a9fe]', '[fe80::1]']) {
      const failure = failureOf(await delivery.deliver(taskFor(`http://${host}/`), runOf()));
      expect(failure.code, host).toBe('ADDRESS_REFUSED');
    }
  });

  it('is connected to only where it is listed, if public ones are not wanted', async () => {
    const { origin, connections } = await serve(ok);
    const { port } = new URL(origin);
    const addresses: Record<string, string> = { 'a.test': '93.184.215.14', 'b.test': '127.0.0.1' };
    const delivery = local({
      public: false,
      allow: ['b.test', '10.0.0.0/8'],
      resolve: (host) => Promise.resolve([addresses[host]!]),
    });
    for (const host of ['a.test', '93.184.215.14', '[2606:2800::1]', '127.0.0.1']) {
      const failure = failureOf(
        await delivery.deliver(taskFor(`http://${host}:${port}/`), runOf()),
      );
      expect(failure, host).toMatchObject({ class: 'technical', code: 'ADDRESS_REFUSED' });
    }
    expect(connections()).toBe(0);
    expect(await delivery.deliver(taskFor(`http://b.test:${port}/`), runOf())).toEqual({
      type: 'done',
    });
  });

  it('is not looked up where the list does not admit the name', async () => {
    const asked: string[] = [];
    const delivery = local({
      public: false,
      allow: ['loopback', 'b.test'],
      resolve: (host) => {
        asked.push(host);
        return Promise.resolve(['10.0.0.1']);
      },
    });
    const outcome = await delivery.deliver(taskFor('http://data.evil.test/'), runOf());
    expect(failureOf(outcome)).toMatchObject({
      class: 'technical',
      code: 'ADDRESS_REFUSED',
      notExecuted: true,
      message: expect.stringContaining("The host 'data.evil.test' is not allowed."),
    });
    expect(asked).toEqual([]);
  });

  it('is refused when a task is submitted, where no list could ever allow it', () => {
    const codes = (options: HttpOptions, host: string) =>
      local(options)
        .check({ kind: 'http', address: `https://${host}/` }, undefined)
        .map(({ path, code, message }) => `${path} ${code} ${message}`);
    const named = { public: false, allow: ['b.test', '*.c.test'] };
    for (const host of ['a.test', 'db1', 'c.test', 'b.test.evil.test']) {
      expect(codes(named, host)).toEqual([
        `to ADDRESS_REFUSED The host '${host}' is not allowed. If it should be, name it in \`allow\`.`,
      ]);
    }
    for (const host of ['b.test', 'x.c.test', 'B.TEST.']) expect(codes(named, host)).toEqual([]);
    expect(codes(named, '93.184.215.14')).toEqual([
      expect.stringMatching(/ADDRESS_REFUSED The host '93.184.215.14' has a public address/),
    ]);
    const ranged = { public: false, allow: ['10.0.0.0/8'] };
    expect(codes(ranged, 'a.test')).toEqual([]);
    expect(codes(ranged, '10.1.2.3')).toEqual([]);
    expect(codes(ranged, '[::ffff:10.1.2.3]')).toEqual([]);
    expect(codes(ranged, '127.0.0.1')).toHaveLength(1);
    expect(codes({ public: false, allow: ['public'] }, 'a.test')).toEqual([]);
    expect(codes({ public: false, allow: ['public'] }, '1.1.1.1')).toEqual([]);
    expect(codes({ public: false, allow: ['loopback'] }, 'a.test')).toHaveLength(1);
    expect(codes({ public: false, allow: ['loopback'] }, 'localhost')).toEqual([]);
    // Where all public addresses are allowed, any name may have one; an address speaks for itself.
    expect(codes({ allow: [] }, 'a.test')).toEqual([]);
    expect(codes({ allow: [] }, '127.0.0.1')).toHaveLength(1);
  });

  it('is the one that was checked: nobody asks a second time', async () => {
    const { origin, heard } = await serve(ok);
    const { port } = new URL(origin);
    const asked: string[] = [];
    const delivery = local({
      resolve: (host) => {
        asked.push(host);
        // What a rebinding name server does: something else to everyone who asks again.
        return Promise.resolve(
          asked.length === 1 ? ['10.255.255.1', '127.0.0.1'] : ['10.255.255.1'],
        );
      },
    });
    const address = `http://rebind.test:${port}/`;
    expect(await delivery.deliver(taskFor(address), runOf())).toEqual({ type: 'done' });
    expect(asked).toEqual(['rebind.test']);
    expect(heard[0]?.headers.host).toBe(`rebind.test:${port}`);
    await delivery.close();
  });

  it('is checked again for each new connection', async () => {
    const { origin } = await serve(
      (_, response) => void response.writeHead(204, { connection: 'close' }).end(),
    );
    const { port } = new URL(origin);
    const answers = [['127.0.0.1'], ['10.255.255.1']];
    const delivery = local({ resolve: () => Promise.resolve(answers.shift() ?? []) });
    const address = `http://rebind.test:${port}/`;
    expect(await delivery.deliver(taskFor(address), runOf())).toEqual({ type: 'done' });
    expect(failureOf(await delivery.deliver(taskFor(address), runOf())).code).toBe(
      'ADDRESS_REFUSED',
    );
  });

  it.skipIf(!hasIPv6)('may be of IPv6', async () => {
    const { server, heard } = await serve(ok);
    server.close();
    await once(server, 'close');
    const { port } = new URL(await listen(server, '::1'));
    const delivery = local();
    expect(await delivery.deliver(taskFor(`http://[::1]:${port}/`), runOf())).toEqual({
      type: 'done',
    });
    expect(heard[0]?.headers.host).toBe(`[::1]:${port}`);
  });

  it('that cannot be found is transient, and nothing ran', async () => {
    const resolve = () =>
      Promise.reject(Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' }));
    const failure = failureOf(
      await local({ resolve }).deliver(taskFor('http://nowhere.test/'), runOf()),
    );
    expect(failure).toMatchObject({ class: 'transient', code: 'ENOTFOUND', notExecuted: true });
  });

  it('that is not found in time is a timeout before anything ran', async () => {
    const resolve = () => new Promise<string[]>(never);
    const task = taskFor('http://slow.test/');
    const failure = failureOf(await local({ resolve }).deliver(task, runOf({ remainingMs: 20 })));
    expect(failure).toMatchObject({ class: 'transient', code: 'TIMEOUT', notExecuted: true });
  });
});
