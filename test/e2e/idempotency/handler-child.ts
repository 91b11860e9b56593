/** An engine with one idempotent handler, which is killed at the point that it is told, or ends when its task is done. */
import { appendFileSync } from 'node:fs';
import {
  createEngine,
  type Store,
  type Transaction,
  type TransactionalIdempotency,
} from '@redrive/engine';
import { postgres } from '@redrive/engine/postgres';
import { sqlite } from '@redrive/engine/sqlite';
import pg from 'pg';
import type { IdempotencyStore } from 'redrive';
import type { HandlerJob, HandlerPoint } from './job.ts';

const job = JSON.parse(process.argv[2]!) as HandlerJob;

function at(point: HandlerPoint): void {
  if (job.dieAt === point) process.kill(process.pid, 'SIGKILL');
}

/** The keys, with a crash before and after each of their writes. */
function dyingKeys(keys: IdempotencyStore): IdempotencyStore {
  return {
    ...(keys.transactional ? { transactional: true } : {}),
    claim: async (request) => {
      at('before claim');
      const answer = await keys.claim(request);
      at('after claim');
      return answer;
    },
    record: async (key, owner, record) => {
      at('before record');
      const isMine = await keys.record(key, owner, record);
      at('after record');
      return isMine;
    },
    renew: (...args) => keys.renew(...args),
    read: (key) => keys.read(key),
    release: (...args) => keys.release(...args),
    prune: (limit) => keys.prune(limit),
  };
}

/** The same within transactions. The commit begins when the work has ended. */
function dyingTransactions(keys: TransactionalIdempotency): TransactionalIdempotency {
  return {
    ...dyingKeys(keys),
    async transaction(work, limits) {
      const result = await keys.transaction(async (tx, inside) => {
        const done = await work(tx, dyingKeys(inside));
        at('before commit');
        return done;
      }, limits);
      at('after commit');
      return result;
    },
  };
}

/** The store, with a crash around the claim and the settle of the task. */
function dyingStore<S extends Store>(store: S): S {
  const own: Partial<Store> = {
    async claim(request) {
      const claim = await store.claim(request);
      if (claim.tasks.length > 0) at('after the task is claimed');
      return claim;
    },
    async settle(settlements) {
      at('before settle');
      const settled = await store.settle(settlements);
      at('after settle');
      return settled;
    },
  };
  return new Proxy(store, {
    get(target, name): unknown {
      const value: unknown = own[name as keyof Store] ?? Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

let isPaying = false;

async function effect(tx: Transaction | undefined): Promise<void> {
  isPaying = true;
  at('before effect');
  if (tx && job.isInside) await tx.query('INSERT INTO effects VALUES ($1)', [job.id]);
  else appendFileSync(job.effects, 'x');
  at('after effect');
}

/** Its COMMIT is on the way to the server when the process dies. */
class DyingClient extends pg.Client {
  constructor(...args: ConstructorParameters<typeof pg.Client>) {
    super(...args);
    const query = this.query.bind(this) as (...sent: unknown[]) => unknown;
    this.query = ((...sent: unknown[]) => {
      const answer = query(...sent);
      if (isPaying && (sent[0] as { text?: string }).text === 'COMMIT') at('during commit');
      return answer;
    }) as typeof this.query;
  }
}

let over = () => {};
const ended = new Promise<void>((resolve) => {
  over = resolve;
});
const options = {
  lease: job.leaseMs,
  heartbeat: job.leaseMs / 3,
  poll: 100,
  on: ({ type }: { type: string }) => type === 'done' && over(),
};
const engine = (() => {
  if (job.store.kind === 'sqlite') {
    const store = sqlite(job.store.file);
    return createEngine({
      ...options,
      store: dyingStore(store),
      idempotency: dyingKeys(store.idempotency!),
    }).handle('pay', { idempotent: true }, (_order: object) => effect(undefined));
  }
  const pool = new pg.Pool({ connectionString: job.store.url, Client: DyingClient });
  const store = postgres({ pool, listen: false });
  const inside = dyingTransactions(store.idempotency);
  const outside = dyingKeys(store.idempotency);
  const keyed = { ...options, store: dyingStore(store) };
  return job.isInside
    ? createEngine({ ...keyed, idempotency: inside }).handle(
        'pay',
        { idempotent: true },
        (_order: object, { tx }) => effect(tx),
      )
    : createEngine({ ...keyed, idempotency: outside }).handle(
        'pay',
        { idempotent: true },
        (_order: object) => effect(undefined),
      );
})();
await engine.start();
const { status } = await engine.submit('pay', {}, { id: job.id });
const task = status === 'duplicate' ? await engine.get(job.id) : undefined;
// It may have been settled by the process that died.
if (task?.status !== 'done') await ended;
await engine.stop();
// Connections of a pool that is lent stay open.
process.exit();
