import type { Work } from '../player.ts';
import { Tally, until } from '../tally.ts';
import { CONCURRENCY, RedrivePlayer } from './redrive.ts';

const DAY_MS = 86_400_000;
const LEASE_MS = 30_000;
const MAX_BYTES = 64 * 1024 * 1024;

/** Redrive beside much that waits. */
export class BacklogPlayer extends RedrivePlayer {
  /** Stores tasks of the same lane as the work that are due tomorrow and later. */
  async fillFuture(tasks: number): Promise<void> {
    const tomorrow = Date.now() + DAY_MS;
    await this.submit('work', tasks, (n) => ({ dueAt: tomorrow + n }));
    await this.close();
  }

  /** Stores tasks of a lane that is down. */
  async fillSick(tasks: number): Promise<void> {
    await this.submit('sick', tasks, () => ({}));
    await this.close();
  }

  /** Stores tasks that are due, and claims all of them, so many at once. The ms of each claim. */
  async claims(count: number, perClaim: number): Promise<number[]> {
    await this.submit('work', count * perClaim, () => ({}));
    await this.close();
    const store = this.storeHere();
    await store.open();
    const from = { kind: 'due' as const, lanes: [{ lane: 'handler:work', limit: perClaim }] };
    const tookMs: number[] = [];
    for (let lease = 1; lease <= count; lease++) {
      const startMs = performance.now();
      const { tasks } = await store.claim({ from, lease, leaseMs: LEASE_MS, maxBytes: MAX_BYTES });
      tookMs.push(performance.now() - startMs);
      if (tasks.length !== perClaim) throw new Error(`a claim gave ${tasks.length}`);
      await store.settle(tasks.map(({ id }) => ({ id, lease, to: 'done' as const })));
    }
    await store.close();
    return tookMs;
  }

  /** What this process takes of the machine's memory. */
  memoryBytes(): Promise<number> {
    globalThis.gc?.();
    return Promise.resolve(process.memoryUsage().rss);
  }

  /**
   * Does the work of a healthy lane while another one fails whatever it tries: its breaker opens, and lets a
   * probe through after half a second, a second, and so on. The ms from the start of the first to the durable completion of the last.
   */
  async healthy(tasks: number): Promise<number> {
    const tally = new Tally(tasks);
    let done = 0;
    const engine = await this.create({
      on: ({ type, ...event }) => {
        if (type === 'done' && 'lane' in event && event.lane === 'handler:work') done += 1;
      },
    });
    engine.handle('work', { concurrency: CONCURRENCY }, (payload: Work) => tally.did(payload));
    engine.handle('sick', { openFor: '500ms' }, () => {
      throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    });
    await engine.start();
    await tally.all;
    await until(() => done === tasks);
    return tally.elapsedMs;
  }
}
