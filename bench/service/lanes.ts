import { sqlite } from '@redrive/engine/sqlite';
import { laneOf, type NewTask } from '@redrive/engine';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { BATCH, timed } from '../engine/player.ts';
import { noiseNote } from '../engine/turns.ts';
import type { Case, Verdict } from '../result.ts';
import { payloadOf } from './stage/messages.ts';
import { redrive, Running } from './stage/program.ts';

const MAX_BYTES = 250e6;
/** Of the backlog of a million, which is what the other cases have. */
const SHARE = 0.1;
const LOOK_MS = 250;
const KEEP_ALIVE_MS = 1000;

/** Every origin is a lane of its own, and the whole of 127.0.0.0/8 is this machine. */
export const lanes: Case = {
  name: 'lanes',
  about:
    'what the process takes of the memory with 100 000 HTTP origins, a task each: while they wait, and while they are delivered',
  async run({ backlog, spanMs }) {
    const origins = Math.ceil(backlog * SHARE);
    const folder = mkdtempSync(join(tmpdir(), 'redrive-bench-'));
    const arrived = new Set<string>();
    const server = createServer((request, response) => {
      request.resume().on('end', () => {
        arrived.add(String(request.headers['idempotency-key']));
        response.end();
      });
    });
    server.keepAliveTimeout = KEEP_ALIVE_MS;
    server.listen(0, '0.0.0.0');
    await once(server, 'listening');
    try {
      const { port } = server.address() as AddressInfo;
      const dueMs = Date.now() + spanMs * 2 + origins / 10;
      await fill(join(folder, 'redrive.db'), port, origins, dueMs);
      await using running = await Running.start(redrive, { env: { REDRIVE_DATA_DIR: folder } });
      const { residentBytes: startBytes } = running.memory();
      await sleep(Math.max(0, dueMs - Date.now() - LOOK_MS));
      const { residentBytes: waitingBytes } = running.memory();
      await sleep(Math.max(0, dueMs - Date.now()));
      const beginMs = performance.now();
      while (arrived.size < origins) await sleep(LOOK_MS);
      const tookMs = performance.now() - beginMs;
      const { peakBytes } = running.memory();
      return {
        metric: 'bytes',
        redrive: peakBytes,
        peers: { start: startBytes, waiting: waitingBytes },
        verdicts: [judge('waiting', waitingBytes), judge('delivered', peakBytes)],
        notes: [
          `${origins.toLocaleString('en')} origins, delivered in ${(tookMs / 1000).toFixed(1)} s`,
          noiseNote(),
        ],
      };
    } finally {
      server.close();
      server.closeAllConnections();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

async function fill(file: string, port: number, origins: number, dueMs: number): Promise<void> {
  const store = sqlite(file);
  await store.open();
  const starts = Array.from({ length: Math.ceil(origins / BATCH) }, (_, batch) => batch * BATCH);
  await timed(starts, (start) => {
    const size = Math.min(BATCH, origins - start);
    return store.insert(
      Array.from({ length: size }, (_, i) => taskOf(start + i, port, dueMs - Date.now())),
    );
  });
  await store.close();
}

function taskOf(n: number, port: number, dueInMs: number): NewTask {
  const host = `127.${16 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`;
  const destination = { kind: 'http', address: `http://${host}:${port}/` } as const;
  return {
    messageId: randomUUID(),
    destination,
    lane: laneOf(destination),
    payload: payloadOf(n),
    status: 'pending',
    attempt: 0,
    maxAttempts: 4,
    uncounted: 0,
    delayMs: dueInMs,
    generation: 0,
    claims: 0,
    arrived: false,
    cancelling: false,
    blocked: false,
    due: { inMs: dueInMs },
  };
}

function judge(when: string, bytes: number): Verdict {
  return {
    target: `${when}: under ${MAX_BYTES / 1e6} MB`,
    measured: `${(bytes / 1e6).toFixed(0)} MB`,
    met: bytes < MAX_BYTES,
  };
}
