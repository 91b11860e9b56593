import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createService, type Service } from '../service.ts';
import { readSettings } from '../settings/read.ts';

let cwd: string;
let service: Service | undefined;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'redrive-routing-'));
  mkdirSync(join(cwd, 'routing'));
});
afterEach(async () => {
  await service?.stop();
  service = undefined;
  rmSync(cwd, { recursive: true, force: true });
});

const policy = {
  version: '1.0',
  weights: { a: 50, b: 50 },
  sticky: { enabled: true },
  circuit_breaker: { enabled: true, failure_threshold: 1 },
};
const write = (text: string) => writeFileSync(join(cwd, 'routing', 'llm.json'), text);

/** A service with ROUTING_DIR. `said` resolves when its log has this text. */
async function started(env: Record<string, string> = { ROUTING_DIR: 'routing' }) {
  const reading = await readSettings({ env: { HTTP_PORT: '0', ...env }, cwd });
  if (!reading.ok) throw new Error(JSON.stringify(reading.faults));
  let log = '';
  let wake = () => {};
  const logTo = {
    write: (text: string) => {
      log += text;
      wake();
    },
  };
  service = createService(reading.settings, { logTo });
  const { url } = await service.start();
  await service.ready;
  const said = async (text: string) => {
    while (!log.includes(text)) {
      const { promise, resolve } = Promise.withResolvers<void>();
      wake = resolve;
      await promise;
    }
  };
  const ask = async (path: string, body?: unknown): Promise<{ status: number; body: unknown }> => {
    const response = await fetch(url + path, {
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
      headers: { 'content-type': 'application/json' },
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json');
    return { status: response.status, body: isJson ? (JSON.parse(text) as unknown) : text };
  };
  return { ask, said };
}

describe('a service with ROUTING_DIR', () => {
  it('answers by its policies from its first moment, and counts', async () => {
    write(JSON.stringify(policy));
    const { ask } = await started();
    const { status } = await ask('/api/v1/route/decide', { policy_id: 'llm', context: {} });
    expect(status).toBe(200);
    const report = { policy_id: 'llm', provider: 'a', status: 'timeout' };
    await ask('/api/v1/route/outcome', report);
    const { body } = await ask('/metrics');
    expect(body).toMatch(
      /^redrive_route_decisions_total\{policy="llm",result="ok",provider="[ab]"} 1$/m,
    );
    expect(body).toContain(
      'redrive_route_outcomes_total{policy="llm",provider="a",status="timeout"} 1',
    );
    expect(body).toContain(
      'redrive_route_provider_state{policy="llm",provider="a",state="open"} 1',
    );
  });

  it('is ready with a bad policy, and says so until it is good', async () => {
    write('{ bad');
    const { ask, said } = await started();
    const routing = async () => {
      const { status, body } = await ask('/health/ready');
      expect(status).toBe(200);
      const { checks } = body as { checks: { name: string; detail?: string }[] };
      return checks.find(({ name }) => name === 'routing');
    };
    expect(await routing()).toEqual({
      name: 'routing',
      ok: true,
      detail: expect.stringMatching(/^llm\.json: INVALID_JSON: .* It is not in force\.$/),
    });
    write(JSON.stringify(policy));
    await said('routing policy loaded');
    expect(await routing()).toEqual({ name: 'routing', ok: true });
  });

  it('keeps sessions over a restart', async () => {
    write(JSON.stringify(policy));
    const first = await started();
    const session = { session: 'ada', status: 'ok' };
    await first.ask('/api/v1/route/outcome', { policy_id: 'llm', provider: 'b', ...session });
    await service?.stop();
    const second = await started();
    const context = { session_id: 'ada' };
    const { body } = await second.ask('/api/v1/route/decide', { policy_id: 'llm', context });
    expect(body).toMatchObject({ provider: 'b', explanation: { reason: 'sticky' } });
  });

  it('has no check of routing without the folder', async () => {
    const { ask } = await started({});
    expect(JSON.stringify((await ask('/health/ready')).body)).not.toContain('routing');
  });
});
