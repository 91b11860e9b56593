/** Free ports of 127.0.0.1 that stay free while their server restarts. */
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import type { Home } from './home.ts';

/** Below the ports that systems give to outgoing connections, which could take it meanwhile. */
const LOWEST = 20_000;
const HIGHEST = 32_000;
const MAX_LOOKS = 100;
const MAX_STARTS = 3;

/** Starts a server on a free port, and on another when one was taken between the look and the start. */
export async function startOnFreePort(
  home: Home,
  start: (port: number) => Promise<void>,
): Promise<number> {
  for (let starts = 1; ; starts++) {
    const port = await freePort();
    try {
      await start(port);
      return port;
    } catch (error) {
      const isTaken = /address already in use|eaddrinuse/i.test(home.logEnd());
      if (!isTaken || starts === MAX_STARTS) throw error;
    }
  }
}

export async function freePort(): Promise<number> {
  for (let looks = 0; looks < MAX_LOOKS; looks++) {
    const port = randomInt(LOWEST, HIGHEST);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port among ${MAX_LOOKS} tried from ${LOWEST} to ${HIGHEST}`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
