/** The gateway as a process, in front of a provider whose certificate only this process is told to trust. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { certificate } from '@redrive/services';
import { expect, test, vi } from 'vitest';
import { RedriveProcess, TemporaryFolder } from './redrive-process.ts';

vi.setConfig({ testTimeout: 90_000 });

const HOUR_MS = 3_600_000;

test('a provider with a certificate of its own is asked by a process that trusts it, and by no other', async () => {
  using folder = new TemporaryFolder();
  const now = Date.now();
  const { key, cert } = certificate('localhost', now - HOUR_MS, now + HOUR_MS);
  const got: string[] = [];
  const provider = createServer({ key, cert }, (request, response) => {
    got.push(`${request.method} ${request.url} ${request.headers.authorization}`);
    request.resume().on('end', () => response.end('{"fine":true}'));
  });
  await new Promise<void>((resolve) => {
    provider.listen(0, '127.0.0.1', resolve);
  });
  const { port } = provider.address() as AddressInfo;
  const dir = join(folder.path, 'routing');
  mkdirSync(dir);
  writeFileSync(join(folder.path, 'ca.pem'), cert);
  writeFileSync(
    join(dir, 'llm.json'),
    JSON.stringify({ version: '1.0', providers: [{ name: 'one', weight: 100 }] }),
  );
  writeFileSync(
    join(dir, 'providers.json'),
    JSON.stringify({
      one: {
        base_url: `https://localhost:${port}/v1`,
        headers: { authorization: 'Bearer ${LLM_KEY}' },
      },
    }),
  );
  const serve = (env: Record<string, string>) =>
    new RedriveProcess(['serve'], folder.path, {
      HTTP_PORT: '0',
      REDRIVE_LOG_FORMAT: 'json',
      ROUTING_DIR: './routing',
      ROUTING_GATEWAY: 'on',
      LLM_KEY: 'sk-1',
      ...env,
    });
  const ask = (url: string) => fetch(`${url}/gateway/llm/chat`, { method: 'POST', body: 'x' });
  try {
    {
      await using wary = serve({});
      const answer = await ask(await wary.ready());
      expect(answer.status).toBe(502);
      expect(await answer.text()).toContain('one: connection_error');
      expect(got).toEqual([]);
    }
    await using trusting = serve({ NODE_EXTRA_CA_CERTS: join(folder.path, 'ca.pem') });
    const answer = await ask(await trusting.ready());
    expect([answer.status, await answer.text()]).toEqual([200, '{"fine":true}']);
    expect(got).toEqual(['POST /v1/chat Bearer sk-1']);
    await trusting.logged('A POST that a provider may have executed is not repeated: one.');
  } finally {
    provider.closeAllConnections();
    provider.close();
  }
});
