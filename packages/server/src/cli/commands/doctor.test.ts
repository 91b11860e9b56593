import { describe, expect, it } from 'vitest';
import { call, stage, tempFolder } from '../stage.test.ts';

describe('redrive doctor', () => {
  it('finds that a running service is well', async () => {
    const { redrive, folder, url } = await stage();
    const { code, out, err } = await redrive('doctor', { env: { REDRIVE_DATA_DIR: folder } });
    expect(err).toBe('');
    expect(code).toBe(0);
    expect(out).toContain(`✔ server        ${url} is ready.`);
    // How full the disk of this machine is, is another matter.
    expect(out.replaceAll(/^.*\bdisk\b.*$/gm, '')).not.toMatch(/^[✗!]/m);
  });

  it('warns of tasks for queues where there is no broker', async () => {
    const { redrive, folder } = await stage();
    await redrive(['submit', 'queue:orders', '1']);
    expect((await redrive('lanes list')).out).toMatch(/queue:orders +NO_HANDLER .*cannot deliver/);
    const { code, out } = await redrive('doctor', { env: { REDRIVE_DATA_DIR: folder } });
    expect(code).toBe(0);
    expect(out).toContain('! broker        Nobody delivers to queue:orders');
  });

  it('takes an empty REDRIVE_URL for none, and a data folder', async () => {
    const cwd = tempFolder();
    const env = { REDRIVE_URL: '', HTTP_PORT: '9' };
    const { out } = await call('doctor --data-dir elsewhere', { env, cwd, columns: 200 });
    expect(out).toContain('No server answers at http://127.0.0.1:9 ');
    expect(out).toContain('elsewhere/redrive.db yet');
  });

  it('says what is broken, first, and what to do: exit code 1', async () => {
    const env = { REDRIVE_URL: 'http://127.0.0.1:9', HTTP_PORT: 'x', RABBITMQ_URL: 'nonsense' };
    const { code, out } = await call('doctor', { env, cwd: tempFolder(), columns: 80 });
    expect(code).toBe(1);
    expect(out).toMatch(/^✗ configuration HTTP_PORT: /);
    expect(out).toMatch(
      /! server {8}No server answers at http:\/\/127\.0\.0\.1:9[\s\S]*→ redrive serve starts it/,
    );
    expect(out).toContain('2 things are broken.');
  });

  it('tells programs all of it', async () => {
    const cwd = tempFolder();
    const { out, code } = await call('doctor --json', {
      env: { REDRIVE_HOST: '::1', HTTP_PORT: '9' },
      cwd,
    });
    expect(code).toBe(0);
    const { ok, findings } = JSON.parse(out) as {
      ok: boolean;
      findings: { about: string; what: string }[];
    };
    expect(ok).toBe(true);
    expect(findings.find(({ about }) => about === 'server')!.what).toContain('http://[::1]:9');
  });

  it('looks on this machine for a server that listens everywhere', async () => {
    const token = 'a:reader:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b';
    const env = { REDRIVE_HOST: '0.0.0.0', HTTP_PORT: '9', REDRIVE_TOKENS: token };
    const { out } = await call('doctor', { env, cwd: tempFolder() });
    expect(out).toContain('No server answers at http://127.0.0.1:9 ');
    expect(out).toContain('It works, with 1 warning.');
  });
});
