/** What the tests of the gateway share: providers on real sockets that fail as told, and a gateway in front of them. */
import {
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import { guardedConnections, type HttpOptions } from '@redrive/engine/http';
import pino from 'pino';
import { createRouter, parseRoutingPolicy, type RoutingPolicyDocument } from 'redrive';
import { afterEach, expect, it } from 'vitest';
import type { Token } from '../settings/settings.ts';
import { Gateway, type GatewayRouter } from './gateway.ts';
import type { Finished } from './gateway-call.ts';
import { ProviderRegistry } from './provider-registry.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

/** What a provider got. */
export interface Got {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  rawHeaders: string[];
  body: Buffer;
}

type Answerer = (request: IncomingMessage, response: ServerResponse, got: Got) => unknown;

export interface TestProvider {
  url: string;
  got: Got[];
  server: Server;
  /** Resolves when so many requests have come in whole. */
  arrived(count: number): Promise<void>;
}

/** A provider that answers its requests one after another by the list; the last entry repeats. */
export async function provider(...answers: Answerer[]): Promise<TestProvider> {
  const got: Got[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  let turn = 0;
  const server = createServer((req, res) => {
    const answer = answers[Math.min(turn++, answers.length - 1)]!;
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('error', () => undefined);
    req.on('end', () => {
      const { method = '', url = '', headers, rawHeaders } = req;
      const one = { method, url, headers, rawHeaders, body: Buffer.concat(chunks) };
      got.push(one);
      for (const each of waiting) if (got.length >= each.count) each.resolve();
      answer(req, res, one);
    });
  });
  await listen(server);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    got,
    server,
    arrived: (count) =>
      new Promise((resolve) => {
        if (got.length >= count) resolve();
        else waiting.push({ count, resolve });
      }),
  };
}

/** A provider that writes these bytes to every connection once a request has begun, and then does that. */
export async function rawProvider(
  text: string | Buffer,
  then: (socket: Socket) => unknown = (socket) => socket.end(),
): Promise<{ url: string; sockets: Socket[] }> {
  const sockets: Socket[] = [];
  const server = createTcpServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.once('data', () => {
      socket.write(text, () => then(socket));
    });
  });
  await listen(server);
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sockets };
}

export async function listen(
  server: Server | ReturnType<typeof createTcpServer>,
  port = 0,
  host = '127.0.0.1',
): Promise<void> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => {
    server.listen(port, host, resolve);
  });
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => {
      server.close(resolve);
    });
  });
}

export const json =
  (body: unknown, status = 200, headers: Record<string, string> = {}): Answerer =>
  (_, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(body));
  };

export const hang: Answerer = () => undefined;
export const cut: Answerer = ({ socket }) => socket.destroy();

/** Where nobody listens. */
export async function nowhere(): Promise<{ url: string }> {
  const server = createTcpServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return { url: `http://127.0.0.1:${port}` };
}

interface StageOptions {
  maxKeptBytes?: number;
  concurrency?: number;
  idleMs?: number;
  providers: Record<string, { url: string }>;
  /** More fields of providers in their file. */
  fields?: Record<string, object>;
  policy?: Partial<RoutingPolicyDocument>;
  tokens?: Token[];
  env?: Record<string, string>;
  http?: HttpOptions;
}

/** A gateway with one policy, `llm`: the first provider gets everything, and each next one is the fallback of all before. */
export async function stage(options: StageOptions) {
  const { providers, fields = {}, policy = {}, tokens = [], env = {}, idleMs = 10_000 } = options;
  const { maxKeptBytes = 1024 * 1024, concurrency = 100 } = options;
  const logged: string[] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => logged.push(line) });
  const connections = guardedConnections({ allow: ['loopback'], ...options.http });
  cleanups.push(() => connections.close());
  const file = Object.fromEntries(
    Object.entries(providers).map(([name, { url }]) => [name, { base_url: url, ...fields[name] }]),
  );
  const text = JSON.stringify(file);
  const read = () => Promise.resolve({ signature: '1', text });
  const book = new ProviderRegistry({ read, env, idleMs, connections, log });
  await book.reload();
  expect(book.fault).toBeUndefined();
  const names = Object.keys(providers);
  const document: RoutingPolicyDocument = {
    version: '1.0',
    providers: names.map((name, i) => ({ name, weight: i === 0 ? 100 : 0 })),
    fallbacks: names.slice(1).map((to) => ({
      when: { status: ['timeout', 'connection_error', '5xx', 'rate_limit'] },
      to,
      retry: 0,
    })),
    timeout_ms: 5000,
    ...policy,
  };
  const parsed = parseRoutingPolicy(document, { id: 'llm' });
  const router: GatewayRouter = createRouter(parsed, book.optionsFor(parsed));
  const finished: Finished[] = [];
  const waiting: (() => void)[] = [];
  const gateway = new Gateway({
    routers: { get: (id) => (id === 'llm' ? router : undefined), has: (id) => id === 'llm' },
    tokens,
    maxKeptBytes,
    concurrency,
    idleMs,
    log,
    finished: (one) => {
      finished.push(one);
      for (const wake of waiting) wake();
    },
  });
  const server = createServer((req, res) => gateway.handle(req, res));
  await listen(server);
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    port,
    gateway,
    router,
    logged,
    finished,
    ask: (ask: Ask = {}) => send(port, ask),
    /** Until so many requests have ended. */
    async ended(count: number): Promise<Finished[]> {
      while (finished.length < count) {
        await new Promise<void>((resolve) => {
          waiting.push(resolve);
        });
      }
      return finished;
    },
  };
}

export interface Ask {
  method?: string;
  path?: string;
  headers?: Record<string, string | string[]>;
  body?: string | Buffer;
  /** Without content-length. */
  chunked?: boolean;
}

export interface Reply {
  status: number;
  headers: IncomingMessage['headers'];
  rawHeaders: string[];
  body: Buffer;
  text: string;
  /** False: the connection broke before the end. */
  isWhole: boolean;
}

export function send(port: number, ask: Ask): Promise<Reply> {
  const { method = 'POST', path = '/gateway/llm/v1/chat', headers = {}, body, chunked } = ask;
  return new Promise((resolve, reject) => {
    const length =
      body === undefined || chunked ? {} : { 'content-length': Buffer.byteLength(body) };
    const sent = request({
      port,
      host: '127.0.0.1',
      method,
      path,
      headers: { ...length, ...headers },
      agent: false,
    });
    sent.on('error', reject);
    sent.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', () => undefined);
      response.on('close', () => {
        const whole = Buffer.concat(chunks);
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          rawHeaders: response.rawHeaders,
          body: whole,
          text: whole.toString(),
          isWhole: response.complete,
        });
      });
    });
    if (chunked) {
      sent.write(body ?? '');
      sent.end();
    } else sent.end(body);
  });
}

/** Writes bytes as they are and gives back all that comes. */
export function raw(
  port: number,
  text: string,
  then?: (write: (more: string) => void) => unknown,
): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')));
    socket.write(text, 'latin1', () => void then?.((more) => socket.write(more, 'latin1')));
  });
}

it('the stage passes a request on', async () => {
  const one = await provider(json({ fine: true }));
  const { ask } = await stage({ providers: { one } });
  expect(await ask({ body: 'x' })).toMatchObject({ status: 200, text: '{"fine":true}' });
});
