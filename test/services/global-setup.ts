/**
 * The desk of a test run: it lives in vitest's own process, and test files ask it for servers. A
 * server starts when first asked for, serves all files, and stops with the run.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestProject } from 'vitest/node';
import { services, type SharedServer } from './index.ts';
import type { DeskAnswer } from './shared.ts';

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const servers = new Map<string, Promise<SharedServer>>();
  // Other users of the machine reach the desk too, but do not know where to ask.
  const secret = `/${randomBytes(16).toString('hex')}/`;
  const desk = createServer((request, response) => {
    void answer(request.url ?? '').then((text) => response.end(JSON.stringify(text)));
  });
  desk.listen(0, '127.0.0.1').unref();
  await once(desk, 'listening');
  const { port } = desk.address() as AddressInfo;
  project.provide('servicesDesk', `http://127.0.0.1:${port}${secret}`);

  return async () => {
    desk.close();
    const started = await Promise.allSettled(servers.values());
    const running = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    await Promise.all(running.map((server) => server.stop()));
  };

  async function answer(path: string): Promise<DeskAnswer> {
    const name = decodeURIComponent(path.slice(secret.length));
    const service = services.find((one) => one.name === name);
    if (!path.startsWith(secret) || !service?.share) return { error: `no shared ${name}` };
    try {
      const server = servers.get(name) ?? service.share();
      servers.set(name, server);
      return { url: (await server).url };
    } catch (error) {
      return { error: error instanceof Error ? error.message : String(error) };
    }
  }
}
