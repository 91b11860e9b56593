/**
 * A program of its own that outlives the process it works for: when that is gone, however it ended,
 * its standard input ends, and the guard stops the servers and removes the folders left behind.
 */
import { rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Charge, Order } from './guarded.ts';

const PATIENCE_MS = 10_000;
const LOOK_EVERY_MS = 20;

const charges = new Map<string, Charge>();

for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line) as Order;
  if (order.kind === 'watch') charges.set(order.charge.folder, order.charge);
  else charges.delete(order.folder);
}
await Promise.all(Array.from(charges.values(), cleanUp));

async function cleanUp({ folder, pid, quitSignal }: Charge): Promise<void> {
  if (pid !== undefined) {
    send(pid, quitSignal);
    for (let waitedMs = 0; isAlive(pid) && waitedMs < PATIENCE_MS; waitedMs += LOOK_EVERY_MS) {
      await sleep(LOOK_EVERY_MS);
    }
    send(pid, 'SIGKILL');
  }
  // The children of a killed server may write for another moment.
  rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}

function send(pid: number, signal: NodeJS.Signals): void {
  if (isAlive(pid)) process.kill(pid, signal);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
