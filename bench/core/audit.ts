import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jsonlFile } from '@redrive/engine/jsonl';
import { decisionEntry, definePolicy, retry, type Runtime } from 'redrive';
import { Trail } from '../../packages/engine/src/audit/trail.ts';
import { hostOf } from '../../packages/engine/src/host.ts';
import type { Contestant } from '../harness.ts';
import { race } from '../race.ts';
import type { Case } from '../result.ts';
import { ANSWER, checker, codedError, failingWork } from './work.ts';

const CROWD = 64;
const FIRST_WAIT_MS = 10;
const MOST = 0.05;

export const audit: Case = {
  name: 'audit',
  about: `${CROWD} calls at once that fail twice, with waits of ${FIRST_WAIT_MS} and ${2 * FIRST_WAIT_MS} ms: with every decision in a JSONL file, and without`,
  async run(effort) {
    const folder = mkdtempSync(join(tmpdir(), 'redrive-bench-audit-'));
    const sink = jsonlFile({ path: join(folder, 'audit.jsonl'), maxBytes: 2 ** 24, keep: 0 });
    const trail = new Trail(sink, hostOf({}), 'bench');
    try {
      const result = await race(contestants(trail, true), effort);
      const thread = await race(contestants(trail, false), effort);
      const overhead = result.redrive / result.peers['off']! - 1;
      const eventNs = (thread.redrive - thread.peers['off']!) / 2;
      return {
        ...result,
        verdicts: [
          {
            target: `at most ${100 * MOST} % more time than off`,
            measured: `${(100 * overhead).toFixed(1)} %`,
            met: overhead <= MOST && trail.dropped === 0,
          },
        ],
        notes: [
          `an event takes ${(eventNs / 1000).toFixed(1)} µs of the thread`,
          `${trail.dropped} events were dropped`,
        ],
      };
    } finally {
      await trail.close();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

/** By the clock on the wall, or by the work of the thread. */
function contestants(trail: Trail, waits: boolean): Contestant[] {
  const check = checker(3);
  const policy = definePolicy({ maxAttempts: 4, base: FIRST_WAIT_MS, jitter: 'none' });
  const subject = { category: 'RETRY_API_REQUEST', operation: 'get_order' };
  trail.register(policy);
  const audited: Runtime = {
    on: {
      wait: ({ facts, decision }) =>
        trail.write(decisionEntry(subject, { policy, facts, decision })),
    },
  };
  // A listener in both, so that only the trail is compared.
  const off: Runtime = { on: { wait: () => undefined } };
  return Object.entries({ redrive: audited, off }).map(([name, runtime]) => ({
    name,
    expected: ANSWER * CROWD,
    opsPerCall: CROWD,
    waits,
    check,
    async call() {
      const calls: Promise<number>[] = [];
      for (let i = 0; i < CROWD; i++) calls.push(retry(failingWork(codedError), policy, runtime));
      return (await Promise.all(calls)).reduce((total, one) => total + one, 0);
    },
  }));
}
