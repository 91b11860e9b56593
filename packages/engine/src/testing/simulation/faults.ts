import { EngineError } from '../../errors.ts';
import type { Store } from '../../ports/store.ts';
import type { Being, World } from './world.ts';

/** How often things go wrong in this world; all 0 once it has calmed down. */
export interface Weather {
  /** A call fails before it did anything. */
  failBefore: number;
  /** A call does its work, and its answer is lost. */
  failAfter: number;
  /** A call takes long; with a timeout, as every adapter has one. */
  slow: number;
  /** A state or a count is read at once, and its answer comes late: it tells how things were. */
  stale: number;
  /** The instance dies at this very await. */
  crash: number;
  /** A wake-up is lost. */
  deaf: number;
}

export const calm: Weather = { failBefore: 0, failAfter: 0, slow: 0, stale: 0, crash: 0, deaf: 0 };

/** Longer than a lease: an answer may come when it is worth nothing any more. */
const TIMEOUT_MS = 5000;

/** Waits as the weather has it, does the work, and answers, late or never. Before and after it, the caller may die. */
export async function suffer<T>(
  world: World,
  weather: Weather,
  being: Being & { die(): void },
  work: () => Promise<T>,
): Promise<T> {
  await pauseOrDie();
  if (world.chance(weather.failBefore)) throw away();
  const result = await work();
  await pauseOrDie();
  if (world.chance(weather.failAfter)) throw away();
  return result;

  async function pauseOrDie(): Promise<void> {
    const isSlow = world.chance(weather.slow);
    await world.sleep(isSlow ? world.between(50, TIMEOUT_MS) : world.between(0, 3), being);
    if (world.chance(weather.crash)) {
      being.die();
      await new Promise(nothing);
    }
  }
}

function nothing(): void {}

function away(): EngineError {
  return new EngineError('STORE_UNAVAILABLE', 'made up: the store did not answer');
}

const faulty = [
  'insert',
  'change',
  'claim',
  'abandon',
  'settle',
  'renew',
  'get',
  'list',
  'lanes',
  'blocked',
  'readState',
  'writeState',
  'dropState',
  'prune',
  'takeOutbox',
  'dropOutbox',
  'append',
  'item',
  'items',
  'attempts',
  'count',
  'groups',
  'annotate',
  'act',
  'erase',
  'freeze',
  'members',
  'tally',
  'forgetJob',
  'pruneItems',
] as const satisfies readonly (keyof Store)[];

const reads: readonly string[] = ['readState', 'tally'];

/** A bulk job of a few items takes several steps too. */
function inSmallPages(world: World, method: string, args: unknown[]): unknown[] {
  if (method === 'freeze') {
    const [filter, page, under] = args as Parameters<Store['freeze']>;
    return [filter, { ...page, limit: world.between(1, 3) }, under];
  }
  if (method !== 'members') return args;
  const [query] = args as Parameters<Store['members']>;
  return [{ ...query, limit: Math.min(query.limit, world.between(1, 3)) }];
}

/** The store as one instance sees it. `watchful` looks at every call at the moment it takes effect. */
export function faultyStore(
  world: World,
  weather: Weather,
  being: Being & { die(): void },
  store: Store,
  watchful: (
    method: string,
    args: readonly unknown[],
    work: () => Promise<unknown>,
  ) => Promise<unknown>,
): Store {
  const calls: Partial<Record<keyof Store, unknown>> = {
    open: () => Promise.resolve(),
    close: () => Promise.resolve(),
    capabilities: store.capabilities,
    watch: (listener: (hint: object) => void) =>
      store.watch((hint) => {
        if (being.isAlive && !world.chance(weather.deaf))
          world.at(world.between(0, 5), being, () => listener(hint));
      }),
  };
  for (const method of faulty) {
    const real = store[method].bind(store) as (...args: unknown[]) => Promise<unknown>;
    calls[method] = (...args: unknown[]) => {
      const asked = inSmallPages(world, method, args);
      return suffer(world, weather, being, async () => {
        const answer = await watchful(method, asked, () => real(...asked));
        const isStale = reads.includes(method) && world.chance(weather.stale);
        if (isStale) await world.sleep(world.between(50, TIMEOUT_MS), being);
        return answer;
      });
    };
  }
  return calls as Store;
}
