/** Servers that do not behave. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { Delivery, Outcome, Run } from '../../ports/delivery.ts';
import type { Task } from '../../model/task.ts';
import { http } from './index.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const clean of cleanups.splice(0)) await clean();
});

/** A server that sees bytes: `speak` is called for every piece that a connection brings. */
async function serve(speak: (socket: Socket, count: number, data: Buffer) => void) {
  const sockets: Socket[] = [];
  const pieces: string[] = [];
  const server = createServer((socket) => {
    const count = sockets.push(socket);
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      pieces.push(data.toString('latin1'));
      speak(socket, count, data);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { origin, sockets, pieces, server };
}

function local(): Required<Delivery> {
  const delivery = http({ allow: ['loopback'] });
  cleanups.push(() => delivery.close());
  return delivery;
}

function taskFor(address: string, payload: Uint8Array = Buffer.from('hello')): Task {
  const task = { messageId: 'the-id', destination: { kind: 'http', address }, payload };
  return task as unknown as Task;
}

const noSignal = new AbortController().signal;

function runOf(run: Partial<Run> = {}): Run {
  return { signal: noSignal, attempt: 1, maxAttempts: 4, remainingMs: 20_000, ...run };
}

/** Not by `once`, for which an error would be the end. */
async function closed(socket: Socket): Promise<void> {
  if (socket.closed) return;
  await new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
  });
}

function failureOf(outcome: Outcome) {
  if (outcome.type !== 'failed') throw new Error(`not failed but ${outcome.type}`);
  return outcome.failure;
}

describe('a server that does not answer', () => {
  it('costs no more than the time that is left, and the connection is cut', async () => {
    const { origin, sockets } = await serve(() => undefined);
    const failure = failureOf(await local().deliver(taskFor(origin), runOf({ remainingMs: 50 })));
    expect(failure).toMatchObject({ class: 'transient', code: 'TIMEOUT' });
    expect(failure).not.toHaveProperty('notExecuted');
    await closed(sockets[0]!);
  });

  it('is given up just before the time is over, so that what is known can be told', async () => {
    const { origin } = await serve((socket) =>
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n'),
    );
    const delivery = local();
    const over = setTimeout(200, 'too late');
    const delivered = delivery.deliver(taskFor(origin), runOf({ remainingMs: 200 }));
    expect(await Promise.race([over, delivered])).toEqual({ type: 'done' });
  });

  it('is left at once on an abort', async () => {
    const { origin, sockets, server } = await serve((socket) => socket.emit('asked'));
    const abort = new AbortController();
    const connected = once(server, 'connection');
    const delivered = local().deliver(taskFor(origin), runOf({ signal: abort.signal }));
    await connected;
    await once(sockets[0]!, 'asked');
    abort.abort();
    expect(failureOf(await delivered)).toMatchObject({ class: 'technical', code: 'ABORT_ERR' });
    await closed(sockets[0]!);
  });

  it('is a timeout too where the abort says that the time is up', async () => {
    const { origin } = await serve(() => undefined);
    const outcome = await local().deliver(
      taskFor(origin),
      runOf({ signal: AbortSignal.timeout(50) }),
    );
    expect(failureOf(outcome)).toMatchObject({ class: 'transient', code: 'TIMEOUT' });
  });

  it('is not asked where the delivery is over before it began', async () => {
    const { origin, sockets } = await serve(() => undefined);
    const aborted = await local().deliver(taskFor(origin), runOf({ signal: AbortSignal.abort() }));
    expect(failureOf(aborted)).toMatchObject({ code: 'ABORT_ERR', notExecuted: true });
    const late = await local().deliver(taskFor(origin), runOf({ remainingMs: 0 }));
    expect(failureOf(late)).toMatchObject({ code: 'TIMEOUT', notExecuted: true });
    expect(sockets).toHaveLength(0);
  });

  it('may have any time there is', async () => {
    const { origin } = await serve((socket) => socket.write('HTTP/1.1 204 Fine\r\n\r\n'));
    const outcome = await local().deliver(taskFor(origin), runOf({ remainingMs: Infinity }));
    expect(outcome).toEqual({ type: 'done' });
  });
});

describe('a server that cuts the connection', () => {
  it('is not there: nothing ran', async () => {
    const { origin, server } = await serve(() => undefined);
    server.close();
    await once(server, 'close');
    const failure = failureOf(await local().deliver(taskFor(origin), runOf()));
    expect(failure).toMatchObject({ class: 'transient', code: 'ECONNREFUSED', notExecuted: true });
  });

  it('when asked: nobody knows what ran, and it is not asked again', async () => {
    const { origin, sockets } = await serve((socket) => socket.resetAndDestroy());
    const failure = failureOf(await local().deliver(taskFor(origin), runOf()));
    expect(failure).toMatchObject({ class: 'transient', code: 'ECONNRESET' });
    expect(failure).not.toHaveProperty('notExecuted');
    expect(sockets).toHaveLength(1);
  });

  it('that was idle consumes no attempt, and the next one is new', async () => {
    const { origin, sockets, pieces } = await serve((socket, count) => {
      const isSecond = count === 1 && pieces.length > 1;
      if (isSecond) socket.destroy();
      else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
    });
    const delivery = local();
    expect(await delivery.deliver(taskFor(origin), runOf())).toEqual({ type: 'done' });
    const failure = failureOf(await delivery.deliver(taskFor(origin), runOf({ attempt: 2 })));
    expect(failure).toMatchObject({ class: 'transient', code: 'ECONNRESET', counted: false });
    expect(pieces).toHaveLength(2);
    expect(await delivery.deliver(taskFor(origin), runOf({ attempt: 2 }))).toEqual({
      type: 'done',
    });
    expect(sockets).toHaveLength(2);
    expect(pieces[1]).toBe(pieces[2]);
  });

  it('that was idle is not followed by another that was idle as long', async () => {
    const first: Socket[] = [];
    const { origin, sockets, pieces } = await serve((socket) => {
      const answer = 'HTTP/1.1 204 OK\r\n\r\n';
      if (first.length < 2) first.push(socket);
      else if (first.includes(socket)) socket.destroy();
      else socket.write(answer);
      if (first.length === 2 && pieces.length === 2) for (const each of first) each.write(answer);
    });
    const delivery = local();
    await Promise.all([1, 2].map(() => delivery.deliver(taskFor(origin), runOf())));
    expect(await delivery.deliver(taskFor(origin), runOf())).toMatchObject({ type: 'failed' });
    expect(await delivery.deliver(taskFor(origin), runOf())).toEqual({ type: 'done' });
    expect(sockets).toHaveLength(3);
    expect(pieces).toHaveLength(4);
  });

  it('after the status has said what counts', async () => {
    const { origin } = await serve((socket) => {
      socket.write('HTTP/1.1 500 No\r\ncontent-length: 100\r\n\r\nhalf', () => socket.destroy());
    });
    const outcome = await local().deliver(taskFor(origin), runOf());
    expect(outcome).toMatchObject({ failure: { code: 'HTTP_500' }, answer: 'half' });
  });

  it('after a 2xx has taken the task', async () => {
    const { origin } = await serve((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf', () => socket.destroy());
    });
    expect(await local().deliver(taskFor(origin), runOf())).toEqual({ type: 'done' });
  });
});

describe('a server that writes what is no answer', () => {
  it.each([
    ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n', /^HPE_/],
    ['bytes', '\0\0\0\0', /^HPE_/],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n', /^HPE_/],
    [
      'too large a header',
      `HTTP/1.1 200 OK\r\nx-a: ${'x'.repeat(100_000)}\r\n\r\n`,
      /^HPE_HEADER_OVERFLOW$/,
    ],
    [
      'a switch of protocols',
      'HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
      /^CONNECTION_FAILED$/,
    ],
  ])('but %s is transient', async (_, text, code) => {
    const { origin } = await serve((socket) => socket.write(text));
    const failure = failureOf(await local().deliver(taskFor(origin), runOf()));
    expect(failure).toMatchObject({ class: 'transient', code: expect.stringMatching(code) });
  });

  it('may announce the answer first', async () => {
    const { origin } = await serve((socket) => {
      socket.write('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n');
      socket.write('HTTP/1.1 204 Fine\r\n\r\n');
    });
    expect(await local().deliver(taskFor(origin), runOf())).toEqual({ type: 'done' });
  });

  it('after its answer loses the connection, not the next task', async () => {
    const answer = 'HTTP/1.1 204 Fine\r\n\r\n';
    const { origin, sockets } = await serve((socket, count) => {
      socket.write(
        count === 1 ? `${answer}HTTP/1.1 500 Forged\r\ncontent-length: 0\r\n\r\n` : answer,
      );
    });
    const delivery = local();
    expect(await delivery.deliver(taskFor(origin), runOf())).toEqual({ type: 'done' });
    expect(await delivery.deliver(taskFor(origin), runOf())).toEqual({ type: 'done' });
    expect(sockets).toHaveLength(2);
  });
});

describe('a body', () => {
  const head = (status: number) => `HTTP/1.1 ${status} X\r\ntransfer-encoding: chunked\r\n\r\n`;
  const piece = `${(8192).toString(16)}\r\n${'x'.repeat(8192)}\r\n`;

  /** Writes for as long as somebody reads. */
  function endless(socket: Socket, status: number): void {
    socket.write(head(status));
    const more = () => {
      while (socket.writable && socket.write(piece));
    };
    socket.on('drain', more);
    more();
  }

  it('without end is kept to 4 KiB, and cut', async () => {
    const { origin, sockets } = await serve((socket) => endless(socket, 500));
    const outcome = await local().deliver(taskFor(origin), runOf());
    expect(outcome).toMatchObject({ failure: { code: 'HTTP_500' }, answer: 'x'.repeat(4096) });
    await closed(sockets[0]!);
  });

  it('without end does not undo a success', async () => {
    const { origin, sockets } = await serve((socket) => endless(socket, 200));
    expect(await local().deliver(taskFor(origin), runOf())).toEqual({ type: 'done' });
    await closed(sockets[0]!);
  });

  it('that never comes does not undo a success, nor take longer than there is time', async () => {
    const { origin, sockets } = await serve((socket) => socket.write(head(200)));
    expect(await local().deliver(taskFor(origin), runOf({ remainingMs: 100 }))).toEqual({
      type: 'done',
    });
    await closed(sockets[0]!);
  });

  it('that comes too slowly is kept as far as it came', async () => {
    const { origin } = await serve((socket) => socket.write(`${head(422)}3\r\nslo\r\n`));
    const outcome = await local().deliver(taskFor(origin), runOf({ remainingMs: 100 }));
    expect(outcome).toMatchObject({
      failure: { class: 'business', code: 'HTTP_422' },
      answer: 'slo',
    });
  });

  it('that is missing is waited for only a while, whatever time there is', async () => {
    const { origin } = await serve((socket) => socket.write(head(200)));
    expect(await local().deliver(taskFor(origin), runOf({ remainingMs: 3_600_000 }))).toEqual({
      type: 'done',
    });
  });

  it.each([
    [200, { type: 'done' }],
    [500, { type: 'failed', failure: { code: 'HTTP_500' } }],
  ])('after %i does not matter to an abort: the status is known', async (status, expected) => {
    const abort = new AbortController();
    const answered = () => setImmediate(() => abort.abort());
    subscribe('http.client.response.finish', answered);
    cleanups.push(() => unsubscribe('http.client.response.finish', answered));
    const { origin, sockets } = await serve((socket) => socket.write(head(status)));
    const outcome = await local().deliver(taskFor(origin), runOf({ signal: abort.signal }));
    expect(outcome).toMatchObject(expected);
    await closed(sockets[0]!);
  });

  it('of a request that the server does not want to the end is not sent to the end', async () => {
    const { origin, sockets } = await serve((socket) => {
      socket.removeAllListeners('data').pause();
      socket.write('HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig');
    });
    const payload = new Uint8Array(64 * 1024 * 1024);
    const outcome = await local().deliver(taskFor(origin, payload), runOf());
    expect(outcome).toMatchObject({
      failure: { class: 'business', code: 'HTTP_413' },
      answer: 'big',
    });
    sockets[0]!.resume();
    await closed(sockets[0]!);
    expect(sockets[0]!.bytesRead).toBeLessThan(payload.length);
  });
});
