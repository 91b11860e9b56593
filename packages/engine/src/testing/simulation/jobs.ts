import type { HandlerContext } from '../../dispatch/handlers.ts';
import { giveUp, retryIn, snooze } from '../../model/outcomes.ts';
import type { Instance } from './instance.ts';
import type { Transaction } from '../../ports/idempotency.ts';
import type { Ledger } from './ledger.ts';
import type { OnceLedger } from './once/once-ledger.ts';
import type { World } from './world.ts';

type Behaviour =
  | 'works'
  | 'fails'
  | 'permanent'
  | 'snoozes'
  | 'retriesIn'
  | 'givesUp'
  | 'hangs'
  | 'deaf'
  | 'kills';

export interface Job {
  n: number;
  behaviour: Behaviour;
  /** Executions that do not work, before one does. */
  failures: number;
  takesMs: number;
}

export interface MadeJob {
  id: string;
  job: Job;
  expiresIn: number | undefined;
  dueIn: number;
  to: 'job' | 'other' | 'pay';
  order: { orderingKey?: string; onDead?: 'release' };
}

export function makeJob(world: World): MadeJob {
  const n = Math.floor(world.random() * 2 ** 40);
  const id = `00000000-0000-4000-8000-${n.toString(16).padStart(12, '0')}`;
  const behaviour = world.pick<Behaviour>([
    'works',
    'works',
    'fails',
    'fails',
    'permanent',
    'snoozes',
    'retriesIn',
    'givesUp',
    'hangs',
    'deaf',
    'kills',
  ]);
  const failures = behaviour === 'works' ? 0 : world.between(1, 4);
  const takesMs = world.chance(0.2) ? world.between(100, 900) : world.between(0, 5);
  const expiresIn = world.chance(0.1) ? world.between(500, 10_000) : undefined;
  const dueIn = world.chance(0.3) ? world.between(0, 5000) : 0;
  const to = world.pick(['job', 'job', 'other'] as const);
  const order = world.chance(0.4)
    ? {
        orderingKey: world.pick(['a', 'b']),
        ...(world.chance(0.3) ? { onDead: 'release' as const } : {}),
      }
    : {};
  return { id, job: { n, behaviour, failures, takesMs }, expiresIn, dueIn, order, to };
}

/** Carries out the jobs, as they are made to be. */
export class Workshop {
  readonly #world: World;
  readonly #ledger: Ledger;
  readonly #executions = new Map<string, number>();

  constructor(world: World, ledger: Ledger) {
    this.#world = world;
    this.#ledger = ledger;
  }

  async work(instance: Instance, job: Job, context: HandlerContext): Promise<unknown> {
    const { id } = context;
    if (!instance.isAlive) return new Promise(nothing);
    const execution = (this.#executions.get(id) ?? 0) + 1;
    this.#executions.set(id, execution);
    if (job.behaviour === 'kills') {
      this.#ledger.workersKilled.set(id, (this.#ledger.workersKilled.get(id) ?? 0) + 1);
      instance.die();
      return new Promise(nothing);
    }
    await this.#world.sleep(job.takesMs, instance);
    const wish = execution <= job.failures ? await this.#fail(instance, job, context) : undefined;
    if (wish === undefined) this.#ledger.worked.add(id);
    return wish;
  }

  /** The same, as a job that is to happen once: its effect is counted, in a transaction where there is one. */
  async pay(
    instance: Instance,
    job: Job,
    context: HandlerContext & { tx?: Transaction },
    ledger: OnceLedger,
  ): Promise<unknown> {
    if (!instance.isAlive) return new Promise(nothing);
    const ended = ledger.began(instance, context);
    const key = ledger.keyOf(context.id);
    try {
      const wish = await this.work(instance, job, context);
      if (wish !== undefined || key === undefined) return wish;
      if (context.tx) await context.tx.query(key);
      else ledger.happened(key);
      return undefined;
    } finally {
      ended();
    }
  }

  async #fail(
    instance: Instance,
    { behaviour }: Job,
    { signal }: HandlerContext,
  ): Promise<unknown> {
    const world = this.#world;
    switch (behaviour) {
      case 'fails':
        throw Object.assign(new Error('made up'), world.chance(0.5) ? { code: 'ECONNRESET' } : {});
      case 'permanent':
        throw Object.assign(new Error('made up'), { status: 422 });
      case 'snoozes':
        return snooze(world.between(0, 500));
      case 'retriesIn':
        return retryIn(world.between(0, 500));
      case 'givesUp':
        return giveUp('made up');
      case 'hangs':
        return new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error));
        });
      case 'deaf':
        await world.sleep(world.between(500, 8000), instance);
        return undefined;
      case 'kills':
      case 'works':
        return undefined;
    }
  }
}

function nothing(): void {}
