import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { createService } from '../service.ts';
import { readSettings } from '../settings/read.ts';
import { examineGateway } from '../upkeep/doctor-gateway.ts';
import { makeToken } from '../upkeep/token.ts';
import { hang, json, provider, send } from './stage.test.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

const policy = {
  version: '1.0',
  providers: [
    { name: 'one', weight: 100 },
    { name: 'two', weight: 0 },
  ],
  fallbacks: [{ when: { status: '5xx' }, to: 'two', retry: 0 }],
};

async function settingsOf(files: Record<string, unknown>, env: Record<string, string> = {}) {
  const home = mkdtempSync(join(tmpdir(), 'redrive-gateway-'));
  cleanups.push(() => rmSync(home, { recursive: true, force: true }));
  const write = (name: string, data: unknown) =>
    writeFileSync(join(home, name), typeof data === 'string' ? data : JSON.stringify(data));
  for (const [name, data] of Object.entries(files)) write(name, data);
  const reading = await readSettings({
    env: {
      ROUTING_DIR: home,
      ROUTING_GATEWAY: 'on',
      REDRIVE_DATA_DIR: join(home, 'data'),
      HTTP_PORT: '0',
      REDRIVE_LOG_LEVEL: 'info',
      ...env,
    },
    cwd: home,
  });
  if (!reading.ok) throw new Error(JSON.stringify(reading.faults));
  return { settings: reading.settings, warnings: reading.warnings, write };
}

async function start(files: Record<string, unknown>, env: Record<string, string> = {}) {
  const { settings, write } = await settingsOf(files, env);
  const logged: string[] = [];
  const service = createService(settings, {
    logTo: { write: (line: string) => logged.push(line) },
  });
  cleanups.push(() => service.stop());
  const { url } = await service.start();
  await service.ready;
  return { url, port: Number(new URL(url).port), service, write, logged };
}

it('serves the gateway and the API on one port, each with tokens of its own', async () => {
  const one = await provider(json({}, 503));
  const two = await provider(json({ fine: true }));
  const gateway = makeToken('chat', 'gateway');
  const reader = makeToken('ops', 'reader');
  const { port, url } = await start(
    {
      'llm.json': policy,
      'providers.json': {
        one: {
          base_url: one.url,
          retry_unsafe: true,
          headers: { authorization: 'Bearer ${KEY_ONE}' },
        },
        two: { base_url: two.url },
      },
      '.env': 'KEY_ONE=sk-one\n',
    },
    { REDRIVE_TOKENS: `${gateway.entry},${reader.entry}` },
  );
  const headers = { authorization: `Bearer ${gateway.token}` };
  const reply = await send(port, { body: 'x', headers });
  expect(reply).toMatchObject({
    status: 200,
    text: '{"fine":true}',
    headers: { 'x-redrive-provider': 'two' },
  });
  expect(one.got[0]?.headers['authorization']).toBe('Bearer sk-one');
  expect(two.got[0]?.headers['authorization']).toBeUndefined();

  const asked = (path: string, token: string) =>
    fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token}` } });
  expect((await asked('/api/v1/route/policies', gateway.token)).status).toBe(403);
  expect((await asked('/api/v1/route/policies', reader.token)).status).toBe(200);
  expect((await asked('/gateway/llm/x', reader.token)).status).toBe(403);
  const metrics = await (await asked('/metrics', reader.token)).text();
  expect(metrics).toContain('redrive_gateway_requests_total{policy="llm",outcome="answered"} 1');
  expect(metrics).toContain('redrive_gateway_first_byte_seconds_count{policy="llm"} 1');
  expect(metrics).toContain('redrive_gateway_requests_total{policy="",outcome="refused"} 1');
});

it('takes other providers into force when their file changes, and keeps the last good ones', async () => {
  const one = await provider(json({ from: 'one' }));
  const other = await provider(json({ from: 'other' }));
  const fileOf = (url: string) => ({ one: { base_url: url }, two: { base_url: url } });
  const { port, write, url, logged } = await start({
    'llm.json': policy,
    'providers.json': fileOf(one.url),
  });
  expect((await send(port, {})).text).toBe('{"from":"one"}');
  write('providers.json', fileOf(other.url));
  await vi.waitFor(
    async () => expect((await send(port, {})).text).toBe('{"from":"other"}'),
    15_000,
  );
  write('providers.json', '{');
  await vi.waitFor(async () => {
    expect(await (await fetch(`${url}/health/ready`)).text()).toContain(
      'providers.json was not taken: it is not JSON',
    );
  }, 15_000);
  expect((await send(port, {})).text).toBe('{"from":"other"}');
  expect(logged.join('')).toContain('bad providers.json: the last good one stays in force');
});

it('says of a policy which provider it misses', async () => {
  const { port, url, logged } = await start({
    'llm.json': policy,
    'providers.json': { one: { base_url: 'http://127.0.0.1:9' } },
  });
  expect(await send(port, {})).toMatchObject({ status: 404 });
  expect(await (await fetch(`${url}/health/ready`)).text()).toContain(
    "providers.json has no provider 'two'",
  );
  expect(logged.join('')).toContain("no provider 'two'");
});

it('is not ready while no policy can be served, says the true cause, and is ready when one can', async () => {
  const one = await provider(json({ from: 'one' }));
  const both = { one: { base_url: one.url }, two: { base_url: one.url } };
  const { port, url, write, logged } = await start({
    'llm.json': policy,
    'providers.json': { ...both, one: { base_url: one.url, headers: { a: '${NO_SUCH}' } } },
  });
  const ready = await fetch(`${url}/health/ready`);
  expect(ready.status).toBe(503);
  const { checks } = (await ready.json()) as { checks: { name: string; detail?: string }[] };
  const gateway = checks.find(({ name }) => name === 'gateway');
  expect(gateway).toMatchObject({ ok: false });
  expect(gateway?.detail).toMatch(
    /no request\. llm\.json: providers\.json was not taken.*The variable NO_SUCH is not set/,
  );
  expect(JSON.stringify(checks) + logged.join('')).not.toContain('has no provider');
  expect(logged.join('')).not.toMatch(/"msg":"ready"/);
  expect((await send(port, {})).text).toContain('its file or providers.json has a fault');
  write('providers.json', both);
  await vi.waitFor(async () => {
    expect((await fetch(`${url}/health/ready`)).status).toBe(200);
  }, 15_000);
  await vi.waitFor(() => expect(logged.join('')).toMatch(/"msg":"ready"/), 15_000);
});

it('ends what is under way when the service stops', async () => {
  const one = await provider(hang);
  const { port, service } = await start({
    'llm.json': { ...policy, fallbacks: [] },
    'providers.json': { one: { base_url: one.url }, two: { base_url: one.url } },
  });
  const asked = send(port, {}).catch((error: unknown) => error);
  await one.arrived(1);
  await service.stop();
  expect(await asked).toMatchObject({ code: 'ECONNRESET' });
});

it('is off unless it is asked for, and says what it needs', async () => {
  const { port } = await start({ 'llm.json': policy }, { ROUTING_GATEWAY: 'off' });
  expect(await send(port, {})).toMatchObject({ status: 404 });
  const { warnings } = await settingsOf({}, { ROUTING_DIR: '' });
  expect(warnings).toContain('ROUTING_GATEWAY: has no effect without ROUTING_DIR.');
});

it('is examined by the doctor', async () => {
  const good = await settingsOf({
    'llm.json': policy,
    'providers.json': { one: { base_url: 'http://127.0.0.1:9' } },
  });
  expect(await examineGateway(good.settings)).toMatchObject([
    { level: 'broken', what: "llm.json: the provider 'two' is not in providers.json." },
    { level: 'fine', what: '1 provider in providers.json.' },
    {
      level: 'note',
      what: 'A POST that a provider may have executed is not repeated: one.',
      advice:
        'For LLM calls set "retry_unsafe": true in providers.json, or send an idempotency-key.',
    },
  ]);
  good.write('providers.json', { one: { base_url: 'http://127.0.0.1:9', retry_unsafe: true } });
  expect((await examineGateway(good.settings)).filter(({ level }) => level === 'note')).toEqual([]);
  good.write('providers.json', {
    one: { base_url: 'http://10.0.0.1', headers: { a: '${NO_SUCH}' } },
  });
  expect((await examineGateway(good.settings)).map(({ what }) => what)).toEqual([
    expect.stringContaining('one.base_url: ADDRESS_REFUSED'),
    expect.stringContaining('one.headers.a: MISSING_VARIABLE: The variable NO_SUCH is not set'),
  ]);
  expect(await examineGateway({ ...good.settings, routingGateway: 'off' })).toEqual([]);
});
