import { type PostgresServer, startPostgres } from '@redrive/services';
import { describePostgres, everyPostgres } from '@redrive/services/vitest';
import pg from 'pg';
import { expect, test } from 'vitest';
import { expectAccounted, expectPoisonContained } from './crash/expectations.ts';
import { type Child, Fleet, TEST_TIMEOUT_MS } from './crash/fleet.ts';
import type { Place } from './crash/job.ts';
import { relaySubmitters, relayWorkers } from './crash/relay.ts';
import { mixedPlans, settleAccounts } from './crash/scene.ts';

const work = { concurrency: 2, paceMs: 10 };
const submit = { from: 0, atOnce: 2, paceMs: 10, plans: mixedPlans };

describePostgres((postgres) => {
  test.concurrent(
    'processes that share a database are killed again and again, and every accepted task is accounted for',
    { timeout: TEST_TIMEOUT_MS },
    async () => {
      await using database = await postgres.freshDatabase();
      await using fleet = new Fleet();
      const place: Place = { kind: 'postgres', url: database.url };
      const engine = { lease: '500ms', poll: '200ms', maxLostLeases: 100 } as const;
      const [submitter] = await Promise.all([
        relaySubmitters(fleet, { name: 'submitter', place, submit }, [40, 60]),
        relayWorkers(fleet, { name: 'first', place, engine, work }, [30, 5]),
        relayWorkers(fleet, { name: 'second', place, engine, work }, [50, 20]),
        relayWorkers(fleet, { name: 'third', place, engine, work }, [40, 60]),
      ]);
      submitter.tell('enough');
      expectAccounted(await settleAccounts(fleet, place, [submitter]));
    },
  );

  test.concurrent(
    'a task that kills its worker ends as WORKER_LOST after its leases, and takes nobody along',
    { timeout: TEST_TIMEOUT_MS },
    async () => {
      await using database = await postgres.freshDatabase();
      await using fleet = new Fleet();
      await expectPoisonContained(fleet, { kind: 'postgres', url: database.url });
    },
  );

  test.concurrent(
    'the server is restarted, crashes, and cuts connections: everything goes on by itself, and nothing is lost',
    { timeout: TEST_TIMEOUT_MS },
    async () => {
      await using server = await startPostgres({ version: postgres.version });
      await using fleet = new Fleet();
      const place: Place = { kind: 'postgres', url: server.url };
      const engine = {
        lease: '3s',
        poll: '500ms',
        onUnavailable: 'wait',
        maxLostLeases: 100,
      } as const;
      const submitter = fleet.start({ name: 'submitter', place, engine, submit });
      const workers = ['first', 'second', 'third'].map((name) =>
        fleet.start({ name, place, engine, work }),
      );
      const all = [submitter, ...workers];
      await fleet.until('everything runs', () => all.every(isWorking));
      for (const trouble of [cutAll, restart, crash, cutAll, crash, restart]) {
        await trouble(server, fleet);
        const before = all.map(progress);
        await fleet.until('each has gone on', () =>
          all.every((child, i) => progress(child) >= before[i]! + 5),
        );
      }
      submitter.tell('enough');
      expectAccounted(await settleAccounts(fleet, place, [submitter]));
      expect(submitter.counts.refused).toBe(0);
    },
  );
}, everyPostgres);

function isWorking(child: Child): boolean {
  return progress(child) >= 5;
}

function progress({ counts }: Child): number {
  return counts.accepted + counts.done;
}

function restart(server: PostgresServer): Promise<void> {
  return server.restart();
}

async function crash(server: PostgresServer, fleet: Fleet): Promise<void> {
  await server.kill9();
  await fleet.until('the server is back', async () => {
    try {
      await server.start();
      return true;
    } catch (error) {
      // On a busy machine a process that was killed takes a moment to go, and its memory with it.
      if (!String(error).includes('shared memory block')) throw error;
      return false;
    }
  });
}

/** Ends every connection but its own. */
async function cutAll({ url }: PostgresServer): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'`,
  );
  await client.end();
}
