import { noiseNote } from '../engine/turns.ts';
import type { Case } from '../result.ts';
import { HttpClient } from '../service/http-client.ts';
import { redrive, Running } from '../service/stage/program.ts';
import { PATH, singleBody } from './entities.ts';

const PER_SECOND = 5000;
const CONNECTIONS = 64;
const MOST_MS = 25;

export const latency: Case = {
  name: 'latency',
  about: `p99 of single evaluations at ${PER_SECOND}/s, from the time when each was to be sent`,
  async run({ spanMs }) {
    const notes = [noiseNote()];
    await using running = await Running.start(redrive, {});
    const url = await running.url;
    await askEvenly(url, spanMs / 2);
    const found = (await askEvenly(url, spanMs)).toSorted((a, b) => a - b);
    const at = (share: number) => found[Math.ceil(found.length * share) - 1] ?? Number.NaN;
    const p99 = at(0.99);
    const shown = (share: number) => at(share).toFixed(2);
    return {
      metric: 'ms',
      redrive: p99,
      peers: {},
      verdicts: [
        { target: `p99 under ${MOST_MS} ms`, measured: `${shown(0.99)} ms`, met: p99 < MOST_MS },
      ],
      notes: [
        `${found.length} evaluations, in ms: median ${shown(0.5)}, p95 ${shown(0.95)}, p99.9 ${shown(0.999)}, most ${shown(1)}`,
        ...notes,
      ],
    };
  },
};

/** The ms that each answer took. What waits for a free connection waits on the bill of the service. */
async function askEvenly(url: string, forMs: number): Promise<number[]> {
  await using client = new HttpClient(url, PATH, singleBody(), CONNECTIONS, 200);
  const idle = [...client.connections];
  const took: number[] = [];
  const waiting: number[] = [];
  const total = Math.floor((PER_SECOND * forMs) / 1000);
  const startMs = performance.now();
  const done = Promise.withResolvers<void>();
  let sent = 0;

  const send = () => {
    while (waiting.length > 0 && idle.length > 0) {
      const dueMs = waiting.shift()!;
      const connection = idle.pop()!;
      connection.ask().then((status) => {
        if (status !== 200) return done.reject(new Error(`an answer has status ${status}`));
        took.push(performance.now() - dueMs);
        idle.push(connection);
        if (took.length === total) done.resolve();
        else send();
      }, done.reject);
    }
  };
  const pace = setInterval(() => {
    const nowMs = performance.now();
    for (; sent < total; sent++) {
      const dueMs = startMs + (sent * 1000) / PER_SECOND;
      if (dueMs > nowMs) break;
      waiting.push(dueMs);
    }
    send();
  }, 1);
  await done.promise.finally(() => clearInterval(pace));
  return took;
}
