import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { seededRandom, virtualClock } from 'redrive/testing';
import { expect, test } from 'vitest';
import { leaseOf } from '../../../model/line.ts';
import { accept, type Arrival, cancel, expedite } from '../../../model/moves.ts';
import { type ItemAction, type ItemFilter, jobKey } from '../../../ports/inbox.ts';
import type { Settlement } from '../../../ports/schedule.ts';
import type { Store } from '../../../ports/store.ts';
import type { NewTask, Task } from '../../../model/task.ts';
import { bytes, newTask, rawItem } from '../../../testing/fixtures.ts';
import { definePolicy } from 'redrive';
import { itemOf } from '../../../model/item.ts';
import { memory } from '../../memory/index.ts';
import { sqlite } from '../index.ts';

const policy = definePolicy({ maxAttempts: 3, strategy: 'fixed', base: '1s', jitter: 'none' });
const STEPS = 250;
const LANES = ['a', 'b'];
const KEYS = [undefined, 'k1', 'k2'];
const failures = [
  { class: 'technical' as const, code: 'EONE', message: 'No "x" here: Größe' },
  { class: 'transient' as const, message: 'order 7 is 100% late_' },
  { class: 'business' as const, code: 'E_THREE' },
];

/** The same for both stores: every choice is made before either is asked. */
type Step = (store: Store) => Promise<unknown>;

function play(seed: number) {
  const random = seededRandom(seed);
  const int = (end: number) => Math.floor(random() * end);
  const pick = <T>(from: readonly T[]): T => from[int(from.length)]!;
  const chance = (odds: number) => random() < odds;
  let lease = 0;
  let tasks = 1;
  let leases: Task[] = [];

  const uuid = (n: number) => `${n.toString(16).padStart(8, '0')}-0000-4000-8000-000000000000`;
  const failure = () => pick(failures);
  const someTask = (n = tasks++): NewTask => {
    const orderingKey = pick(KEYS);
    const address = pick(LANES);
    return newTask({
      messageId: uuid(n),
      destination: { kind: 'queue', address },
      lane: `queue:${address}`,
      ...(orderingKey === undefined ? {} : { orderingKey, blocked: true }),
      ...(chance(0.2) ? { onDead: 'release' } : {}),
      ...(chance(0.3) ? { context: { headers: { h: pick(['1', '2']) } } } : {}),
      ...(chance(0.15) ? { expiresAtMs: expiry() } : {}),
      due: { inMs: pick([0, 0, 500]) },
    });
  };
  const expiry = () => startMs + int(40_000);
  const action = (): ItemAction => {
    const by = chance(0.5) ? { by: pick(['ann', 'bob']) } : {};
    const edit = {
      ...(chance(0.4) ? { payload: bytes(pick(['', 'new'])) } : {}),
      ...(chance(0.4) ? { headers: { n: '1' } } : {}),
      ...(chance(0.4) ? { destination: { kind: 'queue', address: pick(LANES) } } : {}),
    };
    switch (int(9)) {
      case 0:
      case 1:
        return { type: 'replay', ...by };
      case 2:
        return { type: 'replay', ...by, job: 1 + int(2), ...(chance(0.5) ? { trial: true } : {}) };
      case 3:
        return { type: 'replay', ...by, edit };
      case 4:
        return { type: 'edit', edit: chance(0.8) ? { ...edit, ...by } : undefined };
      case 5:
        return { type: 'resolve', ...by };
      case 6:
        return { type: 'discard', ...by };
      case 7:
        return { type: 'restore', ...by };
      default:
        return { type: 'pass' };
    }
  };
  const filter = (): ItemFilter => ({
    ...(chance(0.15) ? { ids: ids() } : {}),
    ...(chance(0.4)
      ? { state: pick(['open', 'replayed', 'resolved', 'discarded', 'erased']) }
      : {}),
    ...(chance(0.2) ? { lane: `queue:${pick(LANES)}` } : {}),
    ...(chance(0.2)
      ? { fingerprint: itemOf('PERMANENT', failure(), `queue:${pick(LANES)}`).fingerprint }
      : {}),
    ...(chance(0.1) ? { messageId: uuid(int(tasks + 1)) } : {}),
    ...(chance(0.1) ? { reason: pick(['PERMANENT', 'EXPIRED', 'UNREADABLE']) } : {}),
    ...(chance(0.1) ? { orderingKey: 'k1' } : {}),
    ...(chance(0.1) ? { class: pick(['technical', 'transient', 'business']) } : {}),
    ...(chance(0.1) ? { text: pick(['', 'GRÖ', '%', 'e_', 'eone', '_']) } : {}),
    ...(chance(0.1) ? { fromMs: startMs + int(STEPS) } : {}),
    ...(chance(0.1) ? { toMs: startMs + int(STEPS) } : {}),
  });
  const ids = () => Array.from({ length: int(6) }, () => 1 + int(40));
  const settlement = (task: Task): Settlement => {
    const held = leaseOf(task);
    const attempt = task.attempt + 1;
    const record = { attempt, failure: failure(), durationMs: 5 };
    switch (int(6)) {
      case 0:
        return { ...held, to: 'done' };
      case 1:
        return { ...held, to: 'retried' };
      case 2:
        return { ...held, to: 'cancelled' };
      case 3: {
        const waits = { delayMs: pick([0, 700]), attempt, uncounted: 0, claims: 0, record };
        return { ...held, to: 'pending', reschedule: true, ...waits };
      }
      default: {
        const item = itemOf('PERMANENT', record.failure, task.lane);
        return { ...held, to: 'failed', attempt, item, record };
      }
    }
  };

  const step = (): Step => {
    switch (int(16)) {
      case 0:
      case 1:
      case 2: {
        const some = Array.from({ length: 1 + int(4) }, () => someTask());
        return (store) => store.insert(some);
      }
      case 3: {
        const from = {
          kind: 'due' as const,
          lanes: LANES.map((lane) => ({ lane: `queue:${lane}`, limit: 1 + int(3) })),
        };
        lease += 1;
        const request = { from, lease, leaseMs: pick([300, 5000]), maxBytes: 1e9 };
        return async (store) => {
          const claim = await store.claim(request);
          if (claim.tasks.length > 0) leases = claim.tasks;
          return claim;
        };
      }
      case 4: {
        const from = chance(0.5)
          ? { kind: 'lost' as const, lanes: LANES.map((lane) => `queue:${lane}`), limit: 5 }
          : { kind: 'expired' as const, limit: 5 };
        lease += 1;
        const request = { from, lease, leaseMs: 1000, maxBytes: 1e9 };
        return async (store) => {
          const { tasks: found } = await store.claim(request);
          if (found.length > 0) leases = found;
          return found;
        };
      }
      case 5:
      case 6:
      case 7: {
        const ends = leases.map(settlement);
        leases = [];
        return (store) => store.settle(ends);
      }
      case 8: {
        const [kept] = leases;
        return (store) => store.abandon(kept?.lease ?? 1);
      }
      case 9: {
        const task = someTask(chance(0.8) ? int(tasks) : tasks++);
        const arrival: Arrival = {
          type: 'failure',
          task: { ...task, attempt: 1 + int(2), failure: failure(), payload: bytes('again') },
          policy,
        };
        const move = pick([
          (known: Task | undefined, nowMs: number) => accept(arrival, known, nowMs, 0),
          cancel,
          expedite,
        ]);
        return (store) => store.change<unknown>([task], move);
      }
      case 10:
      case 11:
      case 12: {
        const [some, what] = [ids(), action()];
        return (store) => store.act(some, what);
      }
      case 13: {
        const [job, some, what, page] = [1 + int(2), ids(), action(), filter()];
        const [isStale, limit, before] = [chance(0.2), 1 + int(5), pick([1e9, 10])];
        return async (store) => {
          const found = (await store.readState(jobKey(job))).documents[0]?.version ?? 0;
          const version = isStale ? found + 1 : found;
          const frozen = await store.freeze(page, { before, limit }, hold(job, version));
          const next = version + Number(frozen !== undefined);
          return [frozen, await store.act(some, what, hold(job, next))];
        };
      }
      case 14: {
        const raw = rawItem('raw', { messageId: uuid(1000 + int(3)), failure: failure() });
        const messageId = chance(0.5) ? uuid(int(tasks + 1)) : uuid(1000 + int(3));
        return pick<Step>([
          // One more occurrence would take a number of the sequence, and those of the two stores would differ.
          async (store) => {
            const { messageId: known } = raw;
            const { items } = await store.items({ messageId: known, state: 'open', limit: 1 });
            return items.length === 0 && store.append([raw]);
          },
          (store) => store.erase(messageId, 'ann'),
          (store) => store.annotate(raw.fingerprint, { note: 'n' }),
          (store) => store.forgetJob(1, 1000),
        ]);
      }
      default: {
        const olderThanMs = { done: 500, retried: 900, cancelled: 900 };
        return chance(0.5)
          ? (store) => store.prune({ olderThanMs, limit: 1000 })
          : (store) => store.pruneItems({ closedForMs: 3000, limit: 1000 });
      }
    }
  };
  return { step, filter, advanceMs: () => 1 + int(300) };
}

let startMs = 0;

function hold(job: number, version: number) {
  return { job, version, next: (result: unknown) => ({ result }) };
}

/** Everything that can be seen of it. */
async function look(store: Store, filter: ItemFilter): Promise<unknown> {
  const tasks = await store.list({ limit: 1000 });
  const pages = [];
  for (let before: number | undefined = 1e9; before !== undefined;) {
    const page = await store.items({ ...filter, before, limit: 3 });
    pages.push(page);
    before = page.next;
  }
  return {
    tasks,
    attempts: await Promise.all(tasks.map(({ id }) => store.attempts(id))),
    items: await store.items({ limit: 1000 }),
    pages,
    count: await store.count(filter),
    groups: await store.groups({ limit: 1000 }),
    all: await store.groups({ all: true, limit: 1000 }),
    lane: await store.groups({ lane: 'queue:a', limit: 2 }),
    members: await store.members({ job: 1, after: 0, limit: 100 }),
    failed: await store.members({ job: 1, result: 'closed', after: 0, limit: 100 }),
    tally: await store.tally(1, 3),
    state: await store.readState(''),
    lanes: await store.lanes({ limit: 10 }),
  };
}

test.for([1, 2, 3, 4])(
  'lines and inbox are as in the memory store after random steps, seed %i',
  async (seed) => {
    const folder = mkdtempSync(join(tmpdir(), 'redrive-sqlite-'));
    const clock = virtualClock();
    startMs = clock.now();
    const file = join(folder, 'tasks.db');
    const [store, model] = [sqlite(file, { clock }), memory({ clock })];
    await store.open();
    const { step, filter, advanceMs } = play(seed);
    try {
      for (let i = 0; i < STEPS; i++) {
        const apply = step();
        const answer = await apply(store);
        expect(answer, `step ${i}`).toEqual(await apply(model));
        const some = filter();
        expect(await look(store, some), `step ${i}`).toEqual(await look(model, some));
        clock.jump(advanceMs());
      }
    } finally {
      await store.close();
      const db = new DatabaseSync(file);
      expect(db.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
      db.close();
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
