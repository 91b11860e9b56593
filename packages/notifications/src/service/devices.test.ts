import { createServer, type RequestListener } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { virtualClock } from 'redrive/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readDevice } from './device-answer.ts';
import { deviceService } from './devices.ts';

const quiet = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

async function served(
  listener: RequestListener,
  options: { cacheMs?: number; timeoutMs?: number } = {},
) {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const clock = virtualClock();
  const outcomes: string[] = [];
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/base/`;
  const devices = deviceService(
    { url, onAnswer: (one) => outcomes.push(one), ...options },
    { clock, log: quiet },
  );
  return { clock, devices, outcomes };
}

describe('the device service', () => {
  it('is asked for one device, and its answer is kept for a while', async () => {
    const asked: string[] = [];
    const { devices, clock, outcomes } = await served((request, response) => {
      asked.push(request.url!);
      response.end(
        JSON.stringify({ active: true, platform: 'ios', last_seen: '2026-01-05T12:00:00Z' }),
      );
    });
    const facts = { active: true, platform: 'apns', lastSeenMs: Date.UTC(2026, 0, 5, 12) };
    expect(await Promise.all([devices.look('a/b'), devices.look('a/b')])).toEqual([facts, facts]);
    expect(await devices.look('a/b')).toEqual(facts);
    expect(asked).toEqual(['/base/devices/a%2Fb']);
    await clock.advance('11s');
    await devices.look('a/b');
    expect(asked).toHaveLength(2);
    expect(outcomes).toEqual(['active', 'active']);
  });

  it('that is down says nothing, and is left in peace after a few failures', async () => {
    let asked = 0;
    const { devices, clock, outcomes } = await served((_, response) => {
      asked += 1;
      response.writeHead(asked <= 5 ? 503 : 200).end('{"active":false}');
    });
    for (let i = 0; i < 8; i++) expect(await devices.look(`d${i}`)).toEqual({});
    expect(asked).toBe(5);
    expect(outcomes.slice(-1)).toEqual(['open']);
    await clock.advance('11s');
    expect(await devices.look('d9')).toEqual({ active: false });
  });

  it('that gives no answer in time says nothing', async () => {
    const asked = Promise.withResolvers<void>();
    const { devices, clock, outcomes } = await served(() => asked.resolve());
    const looking = devices.look('d1');
    await asked.promise;
    await clock.advance('2s');
    expect(await looking).toEqual({});
    expect(outcomes).toEqual(['failed']);
  });

  it.each([
    [200, '{"active":true}', { active: true }],
    [200, '{"active":false,"platform":"android"}', { active: false, platform: 'fcm' }],
    [
      200,
      '{"active":true,"registered_at":1000,"last_seen":"x","platform":7}',
      { active: true, registeredAtMs: 1000 },
    ],
    [404, 'no', {}],
    [200, '{"active":"yes"}', undefined],
    [200, '[]', undefined],
    [200, 'null', undefined],
    [200, '<html>', undefined],
    [401, '{"active":true}', undefined],
  ])('%d %s is %j', (status, text, facts) => {
    expect(readDevice(status, text)).toEqual(facts);
  });

  it('that answers nonsense is counted, and the device counts as unknown', async () => {
    const { devices, outcomes } = await served((_, response) => response.end('{"active":1}'));
    expect(await devices.look('d1')).toEqual({});
    expect(outcomes).toEqual(['invalid']);
  });

  it('that sends without end is cut off', async () => {
    const { devices, outcomes } = await served((_, response) => {
      response.write(`{"active":true,"x":"${'x'.repeat(70_000)}`);
    });
    expect(await devices.look('d1')).toEqual({});
    expect(outcomes).toEqual(['failed']);
  });
});
