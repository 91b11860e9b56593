import { join } from 'node:path';
import { test } from 'vitest';
import { expectAccounted, expectPoisonContained } from './crash/expectations.ts';
import { Fleet, TEST_TIMEOUT_MS } from './crash/fleet.ts';
import type { Place } from './crash/job.ts';
import { relaySubmitters, relayWorkers } from './crash/relay.ts';
import { mixedPlans, settleAccounts } from './crash/scene.ts';

function placeIn(fleet: Fleet): Place {
  return { kind: 'sqlite', file: join(fleet.folder, 'tasks.db') };
}

test.concurrent(
  'processes that share a file are killed again and again, and every accepted task is accounted for',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    await using fleet = new Fleet();
    const place = placeIn(fleet);
    // So many leases that no innocent can run out of them.
    const engine = { lease: '500ms', poll: '200ms', maxLostLeases: 100 } as const;
    const work = { concurrency: 2, paceMs: 10 };
    const submit = { from: 0, atOnce: 2, paceMs: 10, plans: mixedPlans };

    const [submitter] = await Promise.all([
      relaySubmitters(fleet, { name: 'submitter', place, submit }, [40, 60]),
      relayWorkers(fleet, { name: 'first', place, engine, work }, [30, 5, 60]),
      relayWorkers(fleet, { name: 'second', place, engine, work }, [50, 20, 40]),
    ]);
    submitter.tell('enough');
    expectAccounted(await settleAccounts(fleet, place, [submitter]));
  },
);

test.concurrent(
  'a task that kills its worker ends as WORKER_LOST after its leases, and takes nobody along',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    await using fleet = new Fleet();
    await expectPoisonContained(fleet, placeIn(fleet));
  },
);
