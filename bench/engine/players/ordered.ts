import type { Work } from '../player.ts';
import { Tally } from '../tally.ts';
import { CONCURRENCY, RedrivePlayer } from './redrive.ts';

const MAX_KEYS = 10_000;
const LEAST_PER_KEY = 10;

/** The same work under ordering keys, ten thousand of them where there is so much, stored in turns as producers would. */
export class OrderedPlayer extends RedrivePlayer {
  /** One batch after the other: the order of a key is that of its commits, and is to be known. */
  override async schedule(tasks: number): Promise<number> {
    const keys = keysOf(tasks);
    return this.submit('work', tasks, (n) => ({ orderingKey: `customer-${n % keys}` }), 1);
  }

  override async execute(tasks: number): Promise<number> {
    const tally = new Tally(tasks);
    const order = new OrderCheck(keysOf(tasks));
    const engine = await this.create();
    engine.handle('work', { concurrency: CONCURRENCY }, (payload: Work) => {
      order.did(payload);
      tally.did(payload);
    });
    await engine.start();
    const tookMs = await this.finish(engine, tally, 0);
    if (order.faults > 0) throw new Error(`${order.faults} tasks came out of their turn`);
    return tookMs;
  }
}

/** Sees to it that of each key the tasks come one after the other, as they were stored. */
export class OrderCheck {
  faults = 0;
  readonly #next: Uint32Array;

  constructor(keys: number) {
    this.#next = new Uint32Array(keys);
  }

  did({ n }: Pick<Work, 'n'>): void {
    const keys = this.#next.length;
    const place = Math.floor(n / keys);
    if (this.#next[n % keys] !== place) this.faults += 1;
    this.#next[n % keys] = place + 1;
  }
}

/** As many keys for fewer tasks: they, and not their followers, say how much can be done at once. */
export function keysOf(tasks: number): number {
  return Math.min(MAX_KEYS, Math.ceil(tasks / LEAST_PER_KEY));
}
