/** The member as a part of the service, and on its own. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CyodaServer, type CyodaServerOptions } from '@redrive/services/cyoda';
import { describe, expect, it, onTestFinished } from 'vitest';
import { run } from '../cli/run.ts';
import { createService } from '../service.ts';
import { readSettings } from '../settings/read.ts';
import { runMember } from './alone.ts';
import { after, before } from './stage.test.ts';

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'redrive-cyoda-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

async function serverOf(options: CyodaServerOptions = {}): Promise<CyodaServer> {
  const server = await CyodaServer.start(options);
  onTestFinished(() => server.stop());
  return server;
}

async function settingsOf(cwd: string, env: Record<string, string>) {
  const reading = await readSettings({ env: { HTTP_PORT: '0', ...env }, cwd });
  if (!reading.ok) throw new Error(JSON.stringify(reading.faults));
  return reading.settings;
}

describe('a service with CYODA_URL', () => {
  async function serviceOf(env: Record<string, string>) {
    const cwd = folder();
    writeFileSync(join(cwd, 'token'), 'a-secret-token');
    let log = '';
    const settings = await settingsOf(cwd, { CYODA_TOKEN_FILE: 'token', ...env });
    const service = createService(settings, { logTo: { write: (text: string) => (log += text) } });
    onTestFinished(() => service.stop());
    const { url } = await service.start();
    await service.ready;
    const page = async (path: string) => (await fetch(url + path)).text();
    return { service, page, log: () => log };
  }

  it('joins, answers, shows it, and drains on stop', async () => {
    const cyoda = await serverOf({ token: 'a-secret-token', legalEntity: 'acme' });
    const env = { CYODA_URL: cyoda.url, CYODA_TAGS: 'retry', CYODA_LEGAL_ENTITY: 'acme' };
    const { service, page, log } = await serviceOf(env);
    const stream = await cyoda.joined();
    expect(stream.join).toMatchObject({ tags: ['retry'], joinedLegalEntityId: 'acme' });
    const answer = await stream.criterion('isRetryDelayElapsed', after);
    expect(answer).toMatchObject({ matches: true });
    await stream.criterion('isRetryDelayElapsed', undefined);
    await stream.schedule('nextRetryTime', {});
    const metrics = await page('/metrics');
    expect(metrics).toContain('cyoda_member_connected 1');
    expect(metrics).toContain('cyoda_joins_total{result="joined"} 1');
    expect(metrics).toContain('cyoda_requests_total{outcome="matched"} 1');
    expect(metrics).toContain('cyoda_requests_total{outcome="failed"} 1');
    expect(metrics).toContain(
      'criterion_evaluations_total{criterion="isRetryDelayElapsed",result="match"} 1',
    );
    expect(metrics).toContain(
      'criterion_errors_total{criterion="nextRetryTime",code="DATA_UNAVAILABLE"} 1',
    );
    expect(await page('/health/ready')).toContain('"cyoda"');
    const asked = Array.from({ length: 200 }, () =>
      stream.criterion('isRetryDelayElapsed', before),
    );
    await stream.keepAlive();
    await service.stop();
    await Promise.all(asked);
    expect(cyoda.faults).toEqual([]);
    expect(log()).not.toContain('a-secret-token');
  });

  it('is ready without the Cyoda server, and says what is wrong', async () => {
    const cyoda = await serverOf();
    await cyoda.stop();
    const { page } = await serviceOf({ CYODA_URL: cyoda.url });
    const ready = JSON.parse(await page('/health/ready')) as {
      status?: string;
      checks: { name: string; ok: boolean; detail?: string }[];
    };
    expect(ready.checks.every(({ ok }) => ok)).toBe(true);
    expect(ready.checks.find(({ name }) => name === 'cyoda')?.detail).toContain('not joined');
    expect(await page('/metrics')).toContain('cyoda_member_connected 0');
  });

  it('has no gauge and no check without CYODA_URL', async () => {
    const { page } = await serviceOf({});
    expect(await page('/metrics')).not.toMatch(/^cyoda_member_connected/m);
    expect(await page('/health/ready')).not.toContain('"cyoda"');
  });
});

describe('a member on its own', () => {
  it('answers, counts what failed, and leaves when it is told', async () => {
    const cyoda = await serverOf();
    const until = Promise.withResolvers<void>();
    const lines: Record<string, unknown>[] = [];
    const settings = await settingsOf(folder(), {
      CYODA_URL: cyoda.url,
      REDRIVE_LOG_FORMAT: 'json',
    });
    const running = runMember(cyoda.url, settings, until.promise, {
      write: (text: string) => lines.push(JSON.parse(text) as Record<string, unknown>),
    });
    const stream = await cyoda.joined();
    expect(await stream.criterion('isRetryDelayElapsed', after)).toMatchObject({ matches: true });
    const failed = await stream.criterion(
      'isRetryDelayElapsed',
      {},
      { fields: { entityId: 'e7' } },
    );
    expect(failed).toMatchObject({ success: true, matches: false });
    until.resolve();
    await running;
    expect(lines).toContainEqual(
      expect.objectContaining({ code: 'DATA_UNAVAILABLE', entity_id: 'e7', level: 'warn' }),
    );
    expect(lines.at(-1)).toMatchObject({ requests: { matched: 1, failed: 1 } });
    expect(cyoda.faults).toEqual([]);
  });

  it.each([
    [['cyoda'], /--url/, 2],
    [['cyoda', '--url', 'http://localhost:9090'], / --url: /, 78],
    [['cyoda', '--url', 'grpc://localhost', '--tags', 'a b'], /CYODA_TAGS|--tags/, 78],
  ])('%j says what is wrong', async (args, message, exit) => {
    let said = '';
    const code = await run(args, {
      out: (text) => (said += text),
      err: (text) => (said += text),
      env: {},
      cwd: folder(),
      isTty: false,
      columns: 80,
      input: () => Promise.resolve(new Uint8Array()),
    });
    expect(said).toMatch(message);
    expect(said).not.toContain('--cyoda');
    expect(code).toBe(exit);
  });
});
