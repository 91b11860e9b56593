import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import {
  type AddressInfo,
  createServer as createSocketServer,
  type Server as NetServer,
} from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { certificate, startProxy } from '@redrive/services';
import { CyodaServer, StreamGone } from '@redrive/services/cyoda';
import { virtualClock } from 'redrive/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { after, before, joined, memberOf, stage } from './stage.test.ts';
import { tokenSource } from './token.ts';

const yearMs = 365 * 86_400_000;

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'redrive-cyoda-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

describe('a member', () => {
  it('joins again after the server has cut the connection', async () => {
    const clock = virtualClock();
    const scene = await stage({ clock });
    const { server, logged, counts } = scene;
    const first = await joined(scene);
    server.cut();
    await first.untilGone();
    expect(await logged('CYODA_STREAM_LOST')).toMatchObject({ level: 'warn' });
    await clock.advance('1s');
    const second = await server.joined();
    expect(await second.criterion('isRetryDelayElapsed', after)).toMatchObject({ matches: true });
    expect(counts).toMatchObject({ joined: 2, CYODA_STREAM_LOST: 1 });
  });

  it('joins again after the server has ended the stream', async () => {
    const clock = virtualClock();
    const scene = await stage({ clock });
    (await joined(scene)).end();
    expect((await scene.logged('CYODA_STREAM_LOST')).message).toContain('ended the stream');
    await clock.advance('1s');
    await scene.server.joined();
  });

  it('serves on after GOAWAY until the server ends the stream, then joins over a new connection', async () => {
    const clock = virtualClock();
    const scene = await stage({ clock });
    const first = await joined(scene);
    scene.server.goAway();
    expect(await first.criterion('isRetryDelayElapsed', after)).toMatchObject({ matches: true });
    first.end();
    await scene.logged('CYODA_STREAM_LOST');
    await clock.advance('1s');
    const second = await scene.server.joined();
    expect(second.http2.session).not.toBe(first.http2.session);
  });

  it('lets go what was asked on a stream that was reset, and answers nothing of it on the next', async () => {
    const clock = virtualClock();
    const scene = await stage({ clock });
    const { server, logged } = scene;
    const first = await joined(scene);
    first.http2.pause();
    const asked = Array.from({ length: 500 }, () => first.criterion('isRetryDelayElapsed', after));
    first.sendHalf('EntityCriteriaCalculationRequest', JSON.stringify({ requestId: 'half' }));
    const outcomes = await Promise.allSettled(asked);
    const lost = outcomes.filter(({ status }) => status === 'rejected');
    expect(lost.length).toBeGreaterThan(0);
    for (const { reason } of lost as PromiseRejectedResult[]) {
      expect(reason).toBeInstanceOf(StreamGone);
    }
    await logged('CYODA_STREAM_LOST');
    await clock.advance('1s');
    const second = await server.joined();
    await second.keepAlive();
    expect(await second.criterion('isRetryDelayElapsed', before)).toMatchObject({ matches: false });
    expect(second.answered).toBe(1);
    expect(server.faults).toEqual([]);
  });

  it('waits longer and longer while streams end as soon as they were joined', async () => {
    const clock = virtualClock();
    const { server, member, logged } = await stage({ clock });
    member.start();
    const attempts: unknown[] = [];
    for (let n = 0; n < 6; n++) {
      (await server.joined()).end();
      const { attempt, delay_ms: delayMs } = (await logged('CYODA_STREAM_LOST')).fields;
      attempts.push(attempt);
      await clock.advance(Number(delayMs));
    }
    expect(attempts).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('counts from the beginning after a stream that served for ten seconds', async () => {
    const clock = virtualClock();
    const { server, member, logged } = await stage({ clock });
    member.start();
    (await server.joined()).end();
    await logged('CYODA_STREAM_LOST');
    await clock.advance('2s');
    const steady = await server.joined();
    await steady.keepAlive();
    await clock.advance('10s');
    await steady.keepAlive();
    steady.end();
    expect((await logged('CYODA_STREAM_LOST')).fields['attempt']).toBe(1);
  });

  it('waits for a server that is not there, and joins when it is', async () => {
    const clock = virtualClock();
    const gone = await CyodaServer.start();
    const port = Number(new URL(gone.url).port);
    await gone.stop();
    const { member, logged } = memberOf(gone.url, { clock });
    member.start();
    const first = await logged('CYODA_UNREACHABLE');
    await clock.advance(Number(first.fields['delay_ms']));
    const second = await logged('CYODA_UNREACHABLE');
    await using server = await CyodaServer.start({ port });
    await clock.advance(Number(second.fields['delay_ms']));
    expect(await server.joined()).toMatchObject({ isGone: false });
  });

  it('gives up a server that accepts connections and says nothing', async () => {
    const clock = virtualClock();
    const silent = createSocketServer((socket) => void socket.on('error', () => undefined));
    const { member, logged } = memberOf(await listening(silent), { clock });
    const connected = once(silent, 'connection');
    member.start();
    await connected;
    await clock.advance('30s');
    expect(await logged('CYODA_SILENT')).toMatchObject({ level: 'warn' });
  });

  it('says that an HTTP/2 server without the service is not Cyoda', async () => {
    const web = createHttp2Server((_, response) => {
      response.statusCode = 404;
      response.end('no such page');
    });
    const { member, logged } = memberOf(await listening(web));
    member.start();
    expect(await logged('CYODA_NOT_CYODA')).toMatchObject({ level: 'error' });
  });

  it('survives a server that speaks HTTP/1', async () => {
    const web = createServer((_, response) => void response.end('a web page'));
    const { member, logged } = memberOf(await listening(web));
    member.start();
    expect((await logged('CYODA_STREAM_LOST')).message).toContain('before the greeting');
  });

  it('stands beside others: a server may ask any of them', async () => {
    const scene = await stage();
    const other = memberOf(scene.server.url);
    const streams = [await joined(scene), await joined({ ...other, server: scene.server })];
    expect(new Set(streams.map(({ memberId }) => memberId)).size).toBe(2);
    const asked = Array.from({ length: 100 }, (_, n) =>
      streams[n % 2]!.criterion('isRetryDelayElapsed', after),
    );
    expect((await Promise.all(asked)).every(({ matches }) => matches)).toBe(true);
    await other.member.stop();
    expect(scene.server.members).toHaveLength(1);
    expect(scene.server.faults).toEqual([]);
  });
});

async function listening(server: NetServer): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return `grpc://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('the token', () => {
  it('is read again on every join, and never logged', async () => {
    const clock = virtualClock();
    const tokenFile = join(folder(), 'token');
    writeFileSync(tokenFile, 'old-secret\n');
    const { server, member, logged, lines } = await stage(
      { clock, tokenSource: tokenSource({ tokenFile }) },
      { token: 'new-secret' },
    );
    member.start();
    const line = await logged('CYODA_UNAUTHENTICATED');
    expect(line).toMatchObject({
      level: 'error',
      message: expect.stringContaining('CYODA_TOKEN_FILE'),
    });
    // Seldom: no waiting heals it, only somebody who renews the token.
    expect(line.fields['delay_ms']).toBeGreaterThanOrEqual(30_000);
    writeFileSync(tokenFile, 'new-secret\n');
    await clock.advance(Number(line.fields['delay_ms']));
    const stream = await server.joined();
    await stream.keepAlive();
    expect(server.shownTokens).toEqual(['old-secret', 'new-secret']);
    expect(JSON.stringify([lines, member.state])).not.toMatch(/(old|new)-secret/);
  });

  it('that cannot be read is said loudly and read again', async () => {
    const clock = virtualClock();
    const tokenFile = join(folder(), 'token');
    const { server, member, logged } = await stage({
      clock,
      tokenSource: tokenSource({ tokenFile }),
    });
    member.start();
    const line = await logged('CYODA_TOKEN_UNREADABLE');
    expect(line).toMatchObject({ level: 'error', message: expect.stringContaining('ENOENT') });
    writeFileSync(tokenFile, 'secret\nsecond line');
    await clock.advance('40s');
    expect((await logged('CYODA_TOKEN_UNREADABLE')).message).not.toContain('secret');
    writeFileSync(tokenFile, 'secret');
    await clock.advance('40s');
    await server.joined();
    expect(server.shownTokens).toEqual(['secret']);
  });

  it('is the one that was given where there is no file', async () => {
    const scene = await stage({ tokenSource: tokenSource({ token: 'abc' }) }, { token: 'abc' });
    await joined(scene);
    expect(scene.server.shownTokens).toEqual(['abc']);
  });
});

describe('a stop', () => {
  it('answers what has come, then leaves', async () => {
    const scene = await stage();
    const stream = await joined(scene);
    const asked = Array.from({ length: 1000 }, () =>
      stream.criterion('isRetryDelayElapsed', after),
    );
    // Read after all of them, and acknowledged before their answers.
    await stream.keepAlive();
    await scene.member.stop();
    const answers = await Promise.all(asked);
    expect(answers.every(({ matches }) => matches)).toBe(true);
    expect(scene.server.faults).toEqual([]);
    expect(scene.counts).toEqual({ joined: 1, 'request matched': 1000 });
    expect(scene.member.state).toEqual({ status: 'stopped' });
  });

  it('waits no longer than 2 s for a server that does not read', async () => {
    const clock = virtualClock();
    const scene = await stage({ clock });
    const stream = await joined(scene);
    stream.http2.pause();
    const asked = Array.from({ length: 2000 }, () =>
      stream.criterion('isRetryDelayElapsed', after),
    );
    const outcomes = Promise.allSettled(asked);
    await scene.counted('request matched', 2000);
    const stopped = scene.member.stop();
    await clock.advance('2s');
    await stopped;
    await outcomes;
    expect(stream.isGone).toBe(true);
  });

  it('ends a wait, and a join that was not greeted, at once', async () => {
    const clock = virtualClock();
    const { server, member } = await stage({ clock }, { greet: 'none' });
    member.start();
    await server.joined();
    await member.stop();
    const away = memberOf(server.url, { clock });
    await server.stop();
    away.member.start();
    await away.logged('CYODA_UNREACHABLE');
    await away.member.stop();
    expect(clock.pending).toBe(0);
  });

  it('may come twice, and before the start', async () => {
    const { server, member } = await stage();
    await Promise.all([member.stop(), member.stop()]);
    member.start();
    expect(member.state).toEqual({ status: 'stopped' });
    expect(server.connections).toBe(0);
  });

  it('leaves no timer and no connection behind', async () => {
    const clock = virtualClock();
    const scene = await stage({ clock });
    const stream = await joined(scene);
    const gone = stream.untilGone();
    await scene.member.stop();
    await gone;
    expect(clock.pending).toBe(0);
  });
});

describe('grpcs', () => {
  const tls = certificate('localhost', Date.now() - yearMs, Date.now() + yearMs);

  it('joins over TLS', async () => {
    const scene = await stage({ tls: { ca: tls.cert } }, { tls });
    const stream = await joined(scene);
    expect(scene.server.url).toMatch(/^grpcs:/);
    expect(await stream.criterion('isRetryDelayElapsed', after)).toMatchObject({ matches: true });
  });

  it('does not join a server whose certificate nobody has signed', async () => {
    const { server, member, lines, counted } = await stage({}, { tls });
    member.start();
    await Promise.race([counted('CYODA_UNREACHABLE', 1), counted('CYODA_STREAM_LOST', 1)]);
    expect(lines.at(-1)?.message).toMatch(/certificate/i);
    expect(server.shownTokens).toEqual([]);
  });
});

it('a network that stalls is noticed by silence', async () => {
  const clock = virtualClock();
  await using server = await CyodaServer.start();
  await using proxy = await startProxy(server.url.replace('grpc:', 'tcp:'));
  const scene = { server, ...memberOf(proxy.url.replace('tcp:', 'grpc:'), { clock }) };
  await joined(scene);
  proxy.stall();
  await clock.advance('30s');
  await scene.logged('CYODA_SILENT');
  proxy.resume();
  await clock.advance('1s');
  expect(await server.joined()).toMatchObject({ isGone: false });
});

it('a server that closes the stream without an answer or an error is joined again', async () => {
  const http2 = createHttp2Server().listen(0, '127.0.0.1');
  onTestFinished(() => void http2.close());
  await once(http2, 'listening');
  http2.on('stream', (stream) => stream.close(0));
  const { port } = http2.address() as AddressInfo;
  const clock = virtualClock();
  const { member, logged } = memberOf(`grpc://127.0.0.1:${port}`, { clock });
  member.start();
  expect(await logged('CYODA_STREAM_LOST')).toMatchObject({ fields: { attempt: 1 } });
  await clock.advance('1s');
  expect(await logged('CYODA_STREAM_LOST')).toMatchObject({ fields: { attempt: 2 } });
});
