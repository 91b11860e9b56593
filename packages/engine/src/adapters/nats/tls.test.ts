import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { certificate, type NatsServer, startNats } from '@redrive/services';
import { describeService } from '@redrive/services/vitest';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { nats, type NatsOptions } from './index.ts';

const DAY_MS = 86_400_000;
const quiet = () => undefined;
const log = { debug: quiet, info: quiet, warn: quiet, error: quiet };

describeService('NATS 2.15', () => {
  let folder: string;
  let caFile: string;
  let secure: NatsServer;
  let plain: NatsServer;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'redrive-tls-'));
    // The server may run as another user.
    chmodSync(folder, 0o755);
    const { key, cert } = certificate('localhost', Date.now() - DAY_MS, Date.now() + DAY_MS);
    caFile = join(folder, 'cert.pem');
    writeFileSync(caFile, cert, { mode: 0o644 });
    writeFileSync(join(folder, 'key.pem'), key, { mode: 0o644 });
    const tls = `tls { cert_file: "${caFile}", key_file: "${join(folder, 'key.pem')}" }`;
    secure = await startNats({ settings: [tls] });
    plain = await startNats();
  });
  afterAll(async () => {
    await Promise.all([secure.stop(), plain.stop()]);
    rmSync(folder, { recursive: true, force: true });
  });

  async function stateOf(server: NatsServer, protocol: string, options: Partial<NatsOptions> = {}) {
    const { username, password, port } = new URL(server.url);
    const url = `${protocol}://${username}:${password}@localhost:${port}`;
    const broker = nats({ url, log, ...options });
    await broker.open();
    const { state } = broker;
    await broker.close();
    return state;
  }

  it('connects over TLS to a server whose authority it knows', async () => {
    const state = await stateOf(secure, 'tls', { tls: { caFile } });
    expect(state).toMatchObject({ state: 'connected' });
  });

  it('does not trust a server whose authority it does not know', async () => {
    const state = await stateOf(secure, 'tls');
    expect(state).toMatchObject({ state: 'connecting' });
    expect(state.why).toMatch(/certificate/);
  });

  it.each([
    ['tls', {}],
    ['nats', { tls: {} }],
  ])('sends no password to a server without TLS, by %s: and %j', async (protocol, options) => {
    const state = await stateOf(plain, protocol, options);
    expect(state).toMatchObject({ state: 'connecting' });
    expect(state.why).toContain('tls');
  });
});
