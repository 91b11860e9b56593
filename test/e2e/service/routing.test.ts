/** Routing in whole processes: decisions that survive a reload, that several share, and that can be made again. */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeService, sharedServer } from '@redrive/services/vitest';
import { expect, test, vi } from 'vitest';
import { RedriveProcess, TemporaryFolder } from './redrive-process.ts';

// Several processes in one test: on a busy machine each takes seconds to start.
vi.setConfig({ testTimeout: 90_000 });

const backoff = { strategy: 'fixed', base_ms: 50, jitter: false };
const policy = (version: string, more: object = {}) =>
  JSON.stringify({
    version,
    providers: [
      { name: 'primary', weight: 50 },
      { name: 'second', weight: 50 },
      { name: 'backup', weight: 0 },
    ],
    fallbacks: [{ when: { status: ['timeout', '5xx'] }, to: 'backup', retry: 1, backoff }],
    sticky: { enabled: true, session_key: 'user', ttl: '10m' },
    circuit_breaker: { enabled: true, failure_threshold: 3, timeout_ms: 60_000 },
    ...more,
  });

/** As editors and deployments write: the file is whole whenever somebody looks. */
function publish(folder: TemporaryFolder, text: string): void {
  const path = join(folder.path, 'routing', 'llm.json');
  writeFileSync(`${path}.tmp`, text);
  renameSync(`${path}.tmp`, path);
}

function serve(folder: TemporaryFolder, env: Record<string, string> = {}): RedriveProcess {
  return new RedriveProcess(['serve'], folder.path, {
    HTTP_PORT: '0',
    REDRIVE_LOG_FORMAT: 'json',
    ROUTING_DIR: './routing',
    ...env,
  });
}

interface Answer {
  result: string;
  provider?: string;
  seed: number;
  context: object;
  explanation: { reason: string; policy_version: string };
}

async function post<T>(url: string, path: string, body: object): Promise<T> {
  const response = await fetch(`${url}/api/v1/route/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ policy_id: 'llm', ...body }),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(text);
  return JSON.parse(text) as T;
}

test('requests are driven by HTTP, over a reload and a restart, and every decision comes out the same again', async () => {
  using folder = new TemporaryFolder();
  mkdirSync(join(folder.path, 'routing'));
  publish(folder, policy('1.0'));
  await using first = serve(folder);
  const url = await first.ready();

  // A request that fails everywhere, as a program in another language would drive it.
  let answer = await post<Answer>(url, 'decide', { context: { request_id: 'r-1', user: 'ada' } });
  const results = [answer.result];
  for (const status of ['timeout', '503', 'timeout']) {
    await post(url, 'outcome', { provider: answer.provider, status, session: 'ada' });
    const context = { ...answer.context, status };
    answer = await post<Answer>(url, 'decide', { context, seed: answer.seed });
    results.push(answer.result);
  }
  expect(results).toEqual(['ok', 'retry', 'ok', 'error']);

  // A breaker opens, and a new version of the policy keeps it.
  for (let i = 0; i < 3; i++) await post(url, 'outcome', { provider: 'primary', status: 500 });
  publish(folder, policy('1.1'));
  await first.line((line) => line.includes('routing policy loaded') && line.includes('"1.1"'));
  for (let i = 0; i < 20; i++) {
    const { provider, explanation } = await post<Answer>(url, 'decide', { context: {} });
    expect(provider).toBe('second');
    expect(explanation.policy_version).toBe('1.1');
  }

  // A bad version keeps the good one, and the doctor finds it.
  publish(folder, '{"version": "1.2", "providers": []}');
  await first.logged('bad routing policy: the last good one stays in force');
  expect((await post<Answer>(url, 'decide', { context: {} })).explanation.policy_version).toBe(
    '1.1',
  );
  const doctor = new RedriveProcess(['doctor', '--url', url], folder.path, {
    ROUTING_DIR: './routing',
  });
  expect(await doctor.exit).not.toBe(0);
  expect(doctor.lines.join('\n')).toContain('llm.json: INVALID_POLICY');
  publish(folder, policy('1.2'));
  await first.line((line) => line.includes('routing policy loaded') && line.includes('"1.2"'));

  await post(url, 'outcome', { provider: 'second', status: 'ok', session: 'ada', latency_ms: 40 });
  expect(await first.stop()).toBe(0);

  await using second = serve(folder);
  const again = await second.ready();
  const sticky = await post<Answer>(again, 'decide', { context: { user: 'ada' } });
  expect(sticky).toMatchObject({ provider: 'second', explanation: { reason: 'sticky' } });
  const inline = { policy_id: undefined, policy: JSON.parse(policy('9.9')) as object };
  await post(again, 'decide', { ...inline, context: { request_id: 'own' } });
  await second.stop();

  // The trail of both processes, read from the store itself.
  await using third = serve(folder);
  const last = await third.ready();
  const verify = new RedriveProcess(
    ['audit', 'verify', '--strict', '--json', '--url', last],
    folder.path,
  );
  expect(await verify.exit).toBe(0);
  const report = JSON.parse(verify.lines.join('')) as { checked: number; same: number };
  // 4 of the request, 20 and 1 of the breaker's story, the session's, and the inline one.
  expect(report).toMatchObject({ checked: 27, same: 27 });
});

describeService('Redis', () => {
  test('instances with nothing else in common share sessions through Redis', async () => {
    using one = new TemporaryFolder();
    using two = new TemporaryFolder();
    const env = { REDIS_URL: await sharedServer('Redis') };
    for (const folder of [one, two]) {
      mkdirSync(join(folder.path, 'routing'));
      publish(folder, policy('1.0', { circuit_breaker: { enabled: false } }));
    }
    await using first = serve(one, env);
    await using second = serve(two, env);
    const urls = await Promise.all([first.ready(), second.ready()]);
    const user = `user-${Date.now()}`;
    for (const provider of ['primary', 'second', 'primary']) {
      await post(urls[0], 'outcome', { provider, status: 'ok', session: user });
      const answer = await post<Answer>(urls[1], 'decide', { context: { user } });
      expect(answer).toMatchObject({ provider, explanation: { reason: 'sticky' } });
    }
    const [log] = first.lines.filter((line) => line.includes(user));
    expect(log).toBeUndefined();
  });
});
