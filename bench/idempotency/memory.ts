import { memoryIdempotency } from 'redrive';
import { race } from '../race.ts';
import type { Case } from '../result.ts';
import { crowd, effect, judged, redriveOn } from './crowd.ts';

const MAX_KEYS = 1_000_000_000;

export const memoryCase: Case = {
  name: 'memory',
  about: 'claim, run and record of a trivial effect in memory, 64 callers at once',
  async run(effort) {
    const bare = new Map<string, Promise<string>>();
    const result = await race(
      [
        crowd('redrive', redriveOn(memoryIdempotency({ maxKeys: MAX_KEYS }))),
        crowd('bare', (key) => {
          const found = bare.get(key) ?? effect();
          bare.set(key, found);
          return found;
        }),
      ],
      effort,
    );
    return { ...judged(result, 0.4), notes: ['bare: a map of promises'] };
  },
};
