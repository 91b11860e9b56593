import type { Work } from '../player.ts';
import { Tally } from '../tally.ts';
import { CONCURRENCY, RedrivePlayer } from './redrive.ts';

/** Made once: its stack trace would be most of what a failure costs. */
const failure = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });

/** Every task fails once and is tried again at once, so that each has a decision for the trail. */
export class RetryingPlayer extends RedrivePlayer {
  override async execute(tasks: number): Promise<number> {
    const tally = new Tally(tasks);
    const engine = await this.create();
    // The breaker must not open: it is not what is measured.
    const lane = {
      concurrency: CONCURRENCY,
      failures: 1_000_000,
      policy: { base: 0, jitter: 'none' as const },
    };
    engine.handle('work', lane, (payload: Work, { attempt }) => {
      tally.begin();
      if (attempt === 1) throw failure;
      tally.did(payload);
    });
    await engine.start();
    return this.finish(engine, tally, this.audit === 'off' ? 0 : tasks);
  }
}
