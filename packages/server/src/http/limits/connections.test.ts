import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { Task } from '@redrive/engine';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { CONNECTIONS, type ConnectionLimits, Connections } from './connections.ts';
import { stage } from '../harness.test.ts';

/** A busy machine may take its time; the test's own limit ends what never comes. */
const until = <T>(look: () => T): Promise<T> => vi.waitFor(look, { timeout: 10_000, interval: 5 });

const clients: Client[] = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.socket.destroy();
});

/** A connection whose every byte the test decides on. */
class Client {
  readonly socket: Socket;
  #text = '';

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1');
    this.socket.setEncoding('utf8');
    this.socket.on('data', (text: string) => (this.#text += text));
    // The end of a connection is what some tests wait for, however it comes.
    this.socket.on('error', () => undefined);
    clients.push(this);
  }

  get isOpen(): boolean {
    return this.socket.readyState === 'open';
  }

  write(text: string): void {
    this.socket.write(text);
  }

  ask(path: string): Promise<string> {
    this.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    return this.answer();
  }

  /** The next whole answer. */
  answer(): Promise<string> {
    return until(() => {
      const [, head = '', length = '0'] =
        /^(HTTP[^]*?content-length: (\d+)[^]*?\r\n\r\n)/i.exec(this.#text) ?? [];
      const end = head.length + Number(length);
      if (head === '' || this.#text.length < end) throw new Error('There is no whole answer yet.');
      const answer = this.#text.slice(0, end);
      this.#text = this.#text.slice(end);
      return answer;
    });
  }

  ended(): Promise<void> {
    return until(() => {
      if (!this.socket.closed) throw new Error('It is still open.');
    });
  }
}

/** Clients of a server, each of which the server has seen before the next comes. */
function arriving(server: Server, port: () => number) {
  const sockets: Socket[] = [];
  server.on('connection', (socket) => sockets.push(socket));
  return {
    async join(): Promise<Client> {
      const before = sockets.length;
      const client = new Client(port());
      await until(() => expect(sockets.length).toBe(before + 1));
      return client;
    },
    /** Ends a client, and waits until the server has seen that. */
    async leave(client: Client, index = sockets.length - 1): Promise<void> {
      client.socket.destroy();
      await until(() => expect(sockets[index]!.closed).toBe(true));
    },
    /** Waits until the server has read what its latest client, or that one, wrote. */
    async hasRead(bytes: number, index = sockets.length - 1): Promise<void> {
      await until(() => expect(sockets[index]!.bytesRead).toBe(bytes));
    },
  };
}

const never = Number.MAX_SAFE_INTEGER;

/** Node ends no connection by itself, however long a busy machine takes: what ends is ended by the rule under test. */
function withoutTimeouts(server: Server): void {
  Object.assign(server, { keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0, timeout: 0 });
}

async function listening(connections: Partial<ConnectionLimits>) {
  const staged = await stage({ connections: { ...CONNECTIONS, ...connections } });
  const { app } = staged;
  withoutTimeouts(app.server);
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  return { ...staged, ...arriving(app.server, () => Number(port)) };
}

const HALF = 'GET /health/live HTTP/1.1\r\nHost: localhost\r\n';

describe('at the limit of connections', () => {
  it('the longest-idle connection makes room for a new one', async () => {
    const { join, logged } = await listening({ max: 3, reserve: 0, unfinishedMs: never });
    const [first, second, third] = [await join(), await join(), await join()];
    for (const client of [first, second, third, first]) await client.ask('/');
    const fourth = new Client(Number(third.socket.remotePort));
    // Node itself drops the first that comes over its limit, and that makes room.
    await fourth.ended();
    await second.ended();
    const fifth = await join();
    expect(await fifth.ask('/')).toContain('200 OK');
    expect([first, second, third, fifth].map(({ isOpen }) => isOpen)).toEqual([
      true,
      false,
      true,
      true,
    ]);
    expect(await first.ask('/')).toContain('200 OK');
    expect(logged.join('')).toContain('the limit of connections is reached');
  });

  it('nobody is turned away as long as there are idle ones', async () => {
    const { join } = await listening({ max: 3, reserve: 1, unfinishedMs: never });
    const all: Client[] = [];
    for (let i = 0; i < 20; i++) {
      const client = await join();
      all.push(client);
      expect(await client.ask('/')).toContain('200 OK');
    }
    await until(() => expect(all.filter(({ isOpen }) => isOpen)).toHaveLength(3));
    expect(all.slice(-3).every(({ isOpen }) => isOpen)).toBe(true);
  });

  it('a request under way is never cut off, and a probe is answered all the same', async () => {
    const { join, engine } = await listening({ max: 2, reserve: 2, unfinishedMs: 0 });
    const asked: PromiseWithResolvers<Task[]>[] = [];
    engine.list = () => {
      const question = Promise.withResolvers<Task[]>();
      asked.push(question);
      return question.promise;
    };
    const busy = [await join(), await join()];
    const answers = busy.map((client) => client.ask('/api/v1/retries'));
    await until(() => expect(asked).toHaveLength(2));

    const probe = await join();
    const probed = await probe.ask('/health/ready');
    expect(probed).toContain('200 OK');
    expect(probed).toContain('connection: close');
    await probe.ended();
    const another = await join();
    const refused = await another.ask('/');
    expect(refused).toContain('HTTP/1.1 503');
    expect(refused).toContain('"code":"TOO_MANY_CONNECTIONS"');
    expect(refused).toContain('retry-after: 5');
    await another.ended();

    for (const { resolve } of asked) resolve([]);
    for (const answer of await Promise.all(answers)) expect(answer).toContain('200 OK');
    const last = await join();
    expect(await last.ask('/')).toContain('200 OK');
  });

  it('one that sends on and on without an answer is refused and closed, and another is served', async () => {
    const { join, engine } = await listening({ pipelined: 3 });
    const answers: PromiseWithResolvers<Task[]>[] = [];
    engine.list = () => {
      const answer = Promise.withResolvers<Task[]>();
      answers.push(answer);
      return answer.promise;
    };
    const greedy = await join();
    greedy.write('GET /api/v1/retries HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(50));
    await until(() => expect(answers).toHaveLength(3));
    expect(await (await join()).ask('/health/live')).toContain('200 OK');
    expect(answers).toHaveLength(3);
    for (const { resolve } of answers) resolve([]);
    for (let n = 0; n < 3; n++) expect(await greedy.answer()).toContain('200 OK');
    const refused = await greedy.answer();
    expect(refused).toContain('HTTP/1.1 429');
    expect(refused).toContain('"code":"RATE_LIMITED"');
    expect(refused).toContain('connection: close');
    await greedy.ended();
  });

  it('one that came when there was no room is served once there is', async () => {
    const { join, leave, engine } = await listening({ max: 1, reserve: 1, unfinishedMs: never });
    const free = Promise.withResolvers<Task[]>();
    const asked = Promise.withResolvers<void>();
    engine.list = () => {
      asked.resolve();
      return free.promise;
    };
    const busy = await join();
    const answer = busy.ask('/api/v1/retries');
    await asked.promise;
    const waiting = await join();
    free.resolve([]);
    await answer;
    await leave(busy, 0);
    expect(await waiting.ask('/')).toContain('200 OK');
  });

  it('the beginning of a request keeps a connection that was idle', async () => {
    const { join, hasRead } = await listening({ max: 2, reserve: 1, unfinishedMs: never });
    const [first, second] = [await join(), await join()];
    const bytes = Buffer.byteLength('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    for (const client of [first, second]) await client.ask('/');
    first.write(HALF);
    await hasRead(bytes + HALF.length, 0);
    const third = await join();
    expect(await third.ask('/')).toContain('200 OK');
    await second.ended();
    first.write('\r\n');
    expect(await first.answer()).toContain('200 OK');
  });
});

describe('requests that never end', () => {
  const limits = { ...CONNECTIONS, max: 3, reserve: 1, unfinishedMs: 1000 };

  async function slowServer() {
    let nowMs = 0;
    const responses: ServerResponse[] = [];
    const server = createServer((_, response) => void responses.push(response));
    const connections = new Connections({ ...limits, now: () => nowMs });
    connections.watch(server);
    withoutTimeouts(server);
    const overLimit: boolean[] = [];
    server.on('request', ({ socket }) => overLimit.push(connections.isOverLimit(socket)));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    return {
      ...arriving(server, () => port),
      advance: (ms: number) => (nowMs += ms),
      overLimit,
      responses,
      end: () => server.close(),
    };
  }

  it.each([
    ['half a request', HALF],
    ['nothing', ''],
  ])('keep others out for a moment only: %s', async (_, text) => {
    const { join, leave, hasRead, advance, overLimit, end } = await slowServer();
    const slow: Client[] = [];
    for (let i = 0; i < limits.max; i++) {
      const client = await join();
      client.write(text);
      await hasRead(text.length);
      slow.push(client);
      advance(100);
    }
    // The oldest is 999 ms old: it may still be on its way.
    advance(699);
    const early = await join();
    early.write(`${HALF}\r\n`);
    await until(() => expect(overLimit).toEqual([true]));
    expect(slow.every(({ isOpen }) => isOpen)).toBe(true);
    await leave(early);

    advance(1);
    const late = await join();
    late.write(`${HALF}\r\n`);
    await until(() => expect(overLimit).toEqual([true, false]));
    await slow[0]!.ended();
    expect(slow.slice(1).every(({ isOpen }) => isOpen)).toBe(true);
    end();
  });

  it('keep a connection whose earlier request was answered', async () => {
    const { join, responses, end } = await slowServer();
    const busy = await join();
    busy.write(`${HALF}\r\n${HALF}\r\n`);
    await until(() => expect(responses).toHaveLength(2));
    responses[0]!.end('first');
    expect(await busy.answer()).toContain('first');
    const idle = await join();
    idle.write(`${HALF}\r\n`);
    await until(() => expect(responses).toHaveLength(3));
    responses[2]!.end('ok');
    await idle.answer();
    await join();
    await join();
    await idle.ended();
    responses[1]!.end('second');
    expect(await busy.answer()).toContain('second');
    end();
  });

  it('keep others out for a moment only, also where one came before', async () => {
    const { join, leave, hasRead, advance, responses, end } = await slowServer();
    const slow = await join();
    slow.write(`${HALF}\r\n`);
    await until(() => expect(responses).toHaveLength(1));
    responses[0]!.end('ok');
    await slow.answer();
    slow.write(HALF);
    await hasRead(2 * HALF.length + 2);
    const busy = [await join(), await join()];
    for (const client of busy) client.write(`${HALF}\r\n`);
    await until(() => expect(responses).toHaveLength(3));
    // From this look on the second request counts as unfinished.
    await leave(await join());
    advance(999);
    await leave(await join());
    expect(slow.isOpen).toBe(true);
    advance(1);
    await join();
    await slow.ended();
    expect(busy.every(({ isOpen }) => isOpen)).toBe(true);
    end();
  });

  it('end an idle connection first', async () => {
    const { join, advance, responses, end } = await slowServer();
    const slow = await join();
    slow.write(HALF);
    const idle = await join();
    idle.write(`${HALF}\r\n`);
    await until(() => expect(responses).toHaveLength(1));
    responses[0]!.end('ok');
    await idle.answer();
    const silent = await join();
    advance(5000);
    await join();
    await idle.ended();
    expect([slow, silent].every(({ isOpen }) => isOpen)).toBe(true);
    await join();
    await slow.ended();
    end();
  });
});
