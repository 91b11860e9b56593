import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Client, clientOf, ProblemError } from './client.ts';
import type { Io } from './command.ts';
import { tempFolder } from './stage.test.ts';

type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void;

const open: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

describe('the client', () => {
  it('asks with the token, and reads the answer', async () => {
    const seen: string[] = [];
    const client = await clientOn((request, response, body) => {
      seen.push(`${request.method} ${request.url} ${request.headers.authorization} ${body}`);
      json(response, 200, { ok: true });
    }, 'secret');
    expect(await client.get('/api/v1/lanes', { a: 1, b: undefined, c: 'x y' })).toEqual({
      ok: true,
    });
    await client.post('/x', { a: 1 });
    await client.put('/x', { b: 2 });
    await client.patch('/x', { c: 3 });
    await client.delete('/x', { queue: 'q' });
    expect(seen).toEqual([
      'GET /api/v1/lanes?a=1&c=x+y Bearer secret ',
      'POST /x Bearer secret {"a":1}',
      'PUT /x Bearer secret {"b":2}',
      'PATCH /x Bearer secret {"c":3}',
      'DELETE /x?queue=q Bearer secret ',
    ]);
  });

  it('keeps numbers that are longer than a number can be', async () => {
    const client = await clientOn((_, response) => response.end('{"id":12345678901234567890}'));
    expect(JSON.stringify(await client.get('/'))).toBe('{"id":12345678901234567890}');
  });

  it('follows cursors up to the limit, and asks for no more than that', async () => {
    const asked: string[] = [];
    const client = await clientOn((request, response) => {
      asked.push(request.url!);
      const from = Number(new URL(request.url!, 'http://x').searchParams.get('cursor') ?? 0);
      const limit = Number(new URL(request.url!, 'http://x').searchParams.get('limit'));
      const items = Array.from({ length: limit }, (_, i) => from + i);
      json(response, 200, { items, next_cursor: String(from + limit) });
    });
    const items: number[] = [];
    for await (const item of client.items(isNumber, '/list', { state: 'open' }, 150))
      items.push(item);
    expect(items).toHaveLength(150);
    expect(items.at(-1)).toBe(149);
    expect(asked).toEqual(['/list?state=open&limit=100', '/list?state=open&limit=50&cursor=100']);
  });

  it('goes on past a page with nothing in it, and ends where there is no cursor', async () => {
    const pages = [
      { items: [], next_cursor: 'a' },
      { items: [1], next_cursor: null },
    ];
    const client = await clientOn((_, response) => json(response, 200, pages.shift()));
    const items: number[] = [];
    for await (const item of client.items(isNumber, '/list', {}, 10)) items.push(item);
    expect(items).toEqual([1]);
  });

  it('has the time of the server, where its clock is far from ours', async () => {
    const skewed = new Date(Date.now() + 3_600_000);
    const client = await clientOn((_, response) => {
      response.setHeader('date', skewed.toUTCString());
      json(response, 200, {});
    });
    expect(Math.abs(client.nowMs() - Date.now())).toBeLessThan(1000);
    await client.get('/');
    expect(Math.abs(client.nowMs() - skewed.getTime())).toBeLessThan(60_000);
  });
});

describe('when it does not go well', () => {
  it('says that nobody is there, and what to do', async () => {
    const client = await clientOn(() => {});
    await open.pop()!();
    await expect(client.get('/')).rejects.toMatchObject({
      exit: 69,
      code: 'UNAVAILABLE',
      message: expect.stringMatching(
        /^http:\/\/127\.0\.0\.1:\d+ cannot be reached \(ECONNREFUSED\)\. Is it running\? redrive serve/,
      ),
    });
  });

  it('says why where there is no code for it', async () => {
    const client = new Client({ url: 'http://127.0.0.1:6000', timeoutMs: 5000 });
    await expect(client.get('/')).rejects.toThrow('cannot be reached (bad port)');
  });

  it('does not wait for ever', async () => {
    const client = await clientOn(() => {}, undefined, 50);
    await expect(client.get('/')).rejects.toMatchObject({
      exit: 69,
      message: expect.stringContaining('did not answer within 0.05 s'),
    });
  });

  it('does not wait for ever for the rest of an answer', async () => {
    const client = await clientOn((_, response) => response.write('{'), undefined, 50);
    await expect(client.get('/')).rejects.toMatchObject({ exit: 69, code: 'UNAVAILABLE' });
  });

  it.each([
    [401, 77, 'Give a token: REDRIVE_TOKEN'],
    [403, 77, 'a role that does not allow it'],
    [404, 1, 'No such task.'],
    [409, 1, 'No such task.'],
    [429, 69, 'No such task.'],
    [503, 69, 'No such task.'],
  ])('turns status %i into exit code %i and a sentence', async (status, exit, sentence) => {
    const client = await clientOn((_, response) => {
      response.setHeader('retry-after', '7');
      json(response, status, { code: 'SOME_CODE', detail: 'No such task.', status });
    });
    const error: unknown = await client.get('/').catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ProblemError);
    expect(error).toMatchObject({ exit, code: 'SOME_CODE', retryAfterMs: 7000 });
    expect((error as Error).message).toContain(sentence);
  });

  it('says that a token is not known there', async () => {
    const client = await clientOn((_, response) => json(response, 401, { code: 'X' }), 'wrong');
    await expect(client.get('/')).rejects.toThrow('REDRIVE_TOKENS of the server has the hashes');
  });

  it('says the only fault once', async () => {
    const message = 'There is no lane nope.';
    const errors = [{ in: 'path', path: '/lane', code: 'X', message }];
    const client = await clientOn((_, response) =>
      json(response, 400, { code: 'INVALID_REQUEST', detail: message, errors }),
    );
    const refused = await client.get('/').catch((error: unknown) => error);
    expect((refused as Error).message).toBe(message);
  });

  it('lists every fault of a request, and obeys nothing that is in it', async () => {
    const errors = [
      { in: 'body', path: '/items/0', code: 'X', message: 'is \u001b[31mwrong' },
      { in: 'body', path: '', code: 'X', message: 'all of it' },
      { odd: true },
    ];
    const client = await clientOn((_, response) =>
      json(response, 400, { code: 'INVALID_REQUEST', detail: 'Two\u009b faults.', errors }),
    );
    await expect(client.get('/')).rejects.toThrow(
      'Two\\x9b faults (INVALID_REQUEST):\n  /items/0: is \\x1b[31mwrong\n  all of it\n  {"odd":true}',
    );
  });

  it.each([
    ['a page', 200, '<html>'],
    ['a page that says no', 404, '<html>'],
    ['JSON of somebody else', 500, '{"error":"x"}'],
    ['a redirect', 302, ''],
  ])('notices that %s is not the answer of Redrive', async (_, status, body) => {
    const client = await clientOn((__, response) => {
      response.writeHead(status, { location: 'http://elsewhere.example/' });
      response.end(body);
    });
    await expect(client.get('/')).rejects.toMatchObject({ exit: 69, code: 'NOT_REDRIVE' });
  });

  it('does not read without end', async () => {
    const block = Buffer.alloc(1024 * 1024, 0x20);
    const client = await clientOn((_, response) => {
      for (let i = 0; i < 70; i++) response.write(block);
      response.end();
    });
    await expect(client.get('/')).rejects.toMatchObject({ code: 'ANSWER_TOO_LARGE' });
  });
});

describe('where the server is', () => {
  const given = { url: undefined, token: undefined, timeout: 1000 };

  it('is said by --url, then REDRIVE_URL, then by custom', () => {
    expect(
      clientOf({ ...given, url: 'http://a:1/' }, ioWith({ REDRIVE_URL: 'http://b' })).url,
    ).toBe('http://a:1');
    expect(clientOf(given, ioWith({ REDRIVE_URL: 'http://b' })).url).toBe('http://b');
    expect(clientOf(given, ioWith({})).url).toBe('http://127.0.0.1:8086');
  });

  it.each(['localhost:8086', 'ftp://x', 'nonsense'])('is not %s', (url) => {
    expect(() => clientOf({ ...given, url }, ioWith({}))).toThrow(
      `'${url}' is not the URL of a server.`,
    );
  });

  it('is opened by REDRIVE_TOKEN', async () => {
    let seen: string | undefined;
    const { url } = await clientOn((request, response) => {
      seen = request.headers.authorization;
      json(response, 200, {});
    });
    await clientOf({ ...given, url }, ioWith({ REDRIVE_TOKEN: 'of-env' })).get('/');
    expect(seen).toBe('Bearer of-env');
  });
});

describe('a token', () => {
  it('is taken without the line break that came with it', async () => {
    let seen: string | undefined;
    const { url } = await clientOn((request, response) => {
      seen = request.headers.authorization;
      json(response, 200, {});
    });
    await clientOf({ url, token: 'secret\n', timeout: 1e12 }, ioWith({})).get('/');
    expect(seen).toBe('Bearer secret');
  });

  it('that is none is refused, and not shown', () => {
    const given = { url: undefined, token: 'sec\nret', timeout: 1000 };
    expect(() => clientOf(given, ioWith({}))).toThrow(
      'The token has characters that no token has. redrive token makes one.',
    );
  });
});

describe('who asks', () => {
  it.each([
    [{ USER: 'ann' }, 'ann'],
    [{ USERNAME: 'bob' }, 'bob'],
    [{ USER: 'zoë' }, undefined],
    [{ USER: 'ann', REDRIVE_TOKEN: 'x' }, undefined],
    [{}, undefined],
  ])('is told by the environment %j: %s', async (env, name) => {
    let seen: unknown = 'nothing';
    const { url } = await clientOn((request, response) => {
      seen = request.headers['x-redrive-operator'];
      json(response, 200, {});
    });
    await clientOf({ url, token: undefined, timeout: 5000 }, ioWith(env)).get('/');
    expect(seen).toBe(name);
  });
});

const isNumber = (data: unknown): data is number => typeof data === 'number';

function ioWith(env: Record<string, string>): Io {
  return { env } as unknown as Io;
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

async function clientOn(answer: Answer, token?: string, timeoutMs = 20_000): Promise<Client> {
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (part: string) => (body += part));
    request.on('end', () => answer(request, response, body));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  open.push(
    () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  const { port } = server.address() as AddressInfo;
  const options = { url: `http://127.0.0.1:${port}`, timeoutMs };
  return new Client(token === undefined ? options : { ...options, token });
}

describe('where a command asks', () => {
  const where = (env: Record<string, string>, cwd: string, url?: string) =>
    clientOf({ url, token: undefined, timeout: 1000 }, { env, cwd }).url;

  it('is --url, else REDRIVE_URL, else the port of the environment or of .env, else 8086', () => {
    const folder = tempFolder();
    expect(where({}, folder)).toBe('http://127.0.0.1:8086');
    writeFileSync(join(folder, '.env'), 'HTTP_PORT=9001\nREDRIVE_URL=http://evil.example\n');
    expect(where({}, folder)).toBe('http://127.0.0.1:9001');
    expect(where({ HTTP_PORT: '9002' }, folder)).toBe('http://127.0.0.1:9002');
    expect(where({ HTTP_PORT: 'x' }, folder)).toBe('http://127.0.0.1:8086');
    const env = { HTTP_PORT: '9002', REDRIVE_URL: 'http://a.example:1' };
    expect(where(env, folder)).toBe('http://a.example:1');
    expect(where(env, folder, 'http://b.example:2')).toBe('http://b.example:2');
  });
});
