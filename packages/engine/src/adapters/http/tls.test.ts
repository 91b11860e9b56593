import { once } from 'node:events';
import { createServer as createPlainServer } from 'node:http';
import { createServer } from 'node:https';
import { type AddressInfo, createServer as createSocketServer, type Server } from 'node:net';
import type { TlsOptions } from 'node:tls';
import { certificate } from '@redrive/services';
import { afterEach, describe, expect, it } from 'vitest';
import type { Delivery, Outcome, Run } from '../../ports/delivery.ts';
import type { Task } from '../../model/task.ts';
import { http, type HttpOptions } from './index.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const clean of cleanups.splice(0)) await clean();
});

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => server.close());
  return `https://localhost:${(server.address() as AddressInfo).port}`;
}

async function serve(options: TlsOptions) {
  let asked = 0;
  let connections = 0;
  const server = createServer(options, (_, response) => {
    asked++;
    response.end('fine');
  });
  server.on('secureConnection', () => connections++);
  cleanups.push(() => server.closeAllConnections());
  return { origin: await listen(server), asked: () => asked, connections: () => connections };
}

function local(tls: HttpOptions['tls'] = {}): Required<Delivery> {
  const delivery = http({
    allow: ['loopback'],
    tls,
    resolve: () => Promise.resolve(['127.0.0.1']),
  });
  cleanups.push(() => delivery.close());
  return delivery;
}

function taskFor(address: string): Task {
  const task = {
    messageId: 'the-id',
    destination: { kind: 'http', address },
    payload: Buffer.from('x'),
  };
  return task as unknown as Task;
}

const run: Run = {
  signal: new AbortController().signal,
  attempt: 1,
  maxAttempts: 4,
  remainingMs: 20_000,
};

function failureOf(outcome: Outcome) {
  if (outcome.type !== 'failed') throw new Error(`not failed but ${outcome.type}`);
  return outcome.failure;
}

const yearMs = 365 * 86_400_000;
const good = certificate('localhost', Date.now() - yearMs, Date.now() + yearMs);

describe('an HTTPS delivery', () => {
  it('trusts the authority it is told to, and keeps the connection', async () => {
    const { origin, asked, connections } = await serve(good);
    const delivery = local({ ca: good.cert });
    expect(await delivery.deliver(taskFor(origin), run)).toEqual({ type: 'done' });
    expect(await delivery.deliver(taskFor(origin), run)).toEqual({ type: 'done' });
    expect(asked()).toBe(2);
    expect(connections()).toBe(1);
  });

  it('sends nothing to a server that nobody vouches for', async () => {
    const { origin, asked } = await serve(good);
    expect(failureOf(await local().deliver(taskFor(origin), run))).toMatchObject({
      class: 'transient',
      code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
      notExecuted: true,
    });
    expect(asked()).toBe(0);
  });

  it('sends nothing to a server of another name', async () => {
    const other = certificate('other.example', Date.now() - yearMs, Date.now() + yearMs);
    const { origin, asked } = await serve(other);
    expect(failureOf(await local({ ca: other.cert }).deliver(taskFor(origin), run))).toMatchObject({
      class: 'transient',
      code: 'ERR_TLS_CERT_ALTNAME_INVALID',
      notExecuted: true,
    });
    expect(asked()).toBe(0);
  });

  it('sends nothing under a certificate that has run out: the next one may be right', async () => {
    const old = certificate('localhost', Date.now() - 2 * yearMs, Date.now() - yearMs);
    const { origin, asked } = await serve(old);
    expect(failureOf(await local({ ca: old.cert }).deliver(taskFor(origin), run))).toMatchObject({
      class: 'transient',
      code: 'CERT_HAS_EXPIRED',
      notExecuted: true,
    });
    expect(asked()).toBe(0);
  });

  it('shows its own certificate to a server that asks', async () => {
    const { origin, asked } = await serve({ ...good, ca: good.cert, requestCert: true });
    const failure = failureOf(await local({ ca: good.cert }).deliver(taskFor(origin), run));
    expect(failure.class).toBe('transient');
    expect(asked()).toBe(0);
    expect(await local({ ca: good.cert, ...good }).deliver(taskFor(origin), run)).toEqual({
      type: 'done',
    });
    expect(asked()).toBe(1);
  });

  it('takes a server without TLS for one that is not there', async () => {
    const plain = createPlainServer((_, response) => void response.end());
    cleanups.push(() => plain.closeAllConnections());
    const failure = failureOf(await local().deliver(taskFor(await listen(plain)), run));
    expect(failure).toMatchObject({ class: 'transient', notExecuted: true });
  });

  it('does not wait longer than it has time for a handshake', async () => {
    const silent = createSocketServer((socket) => {
      socket.on('error', () => undefined);
      cleanups.push(() => socket.destroy());
    });
    const origin = await listen(silent);
    const failure = failureOf(await local().deliver(taskFor(origin), { ...run, remainingMs: 50 }));
    expect(failure).toMatchObject({ class: 'transient', code: 'TIMEOUT', notExecuted: true });
  });
});
