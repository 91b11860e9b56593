import { noiseNote, percentile } from '../engine/turns.ts';
import type { Case, Verdict } from '../result.ts';
import { dueAtOf } from './stage/messages.ts';
import { redrive, Running } from './stage/program.ts';
import { LONGEST_MS, Stage, type StoreName } from './stage/stage.ts';

const PER_SECOND = 500;
const MAX_P99_MS = 100;
/** Of each message, before it is due. */
const DELAY_MS = 1000;
/** Of all messages: the first ones meet a process that has compiled nothing. */
const LEAD_IN = 1 / 10;

const stores = { redrive: 'postgres', 'redrive-sqlite': 'sqlite' } as const;
type Name = keyof typeof stores;
const names = Object.keys(stores) as Name[];

export const drift: Case = {
  name: 'drift',
  about: `the p99 of how late messages are on their queue, ${PER_SECOND} a second`,
  async run({ spanMs }) {
    const notes = [noiseNote()];
    await using stage = new Stage();
    const lateMs = {} as Record<Name, number[]>;
    for (const name of names) lateMs[name] = await lateness(stage, stores[name], spanMs * 2.5);
    const p99 = (name: Name) => percentile(lateMs[name], 0.99);
    return {
      metric: 'ms',
      redrive: p99('redrive'),
      peers: { 'redrive-sqlite': p99('redrive-sqlite') },
      verdicts: [judge('PostgreSQL', p99('redrive')), judge('SQLite', p99('redrive-sqlite'))],
      notes: [...names.map((name) => noteOf(name, lateMs[name])), ...notes],
    };
  },
};

/** How many ms after its due time each message was on its queue, by the clock of who waits there. */
async function lateness(stage: Stage, store: StoreName, spanMs: number): Promise<number[]> {
  const place = await stage.place(store);
  await using running = await Running.start(redrive, { env: place.env });
  const lateMs: number[] = [];
  const listener = await place.listen((payload) => {
    lateMs.push(Date.now() - dueAtOf(payload));
  });
  const count = Math.round((PER_SECOND * spanMs) / 1000);
  const all = listener.expect(count, spanMs + LONGEST_MS);
  await place.putEvenly(count, spanMs, DELAY_MS);
  await all;
  if (lateMs.some((ms) => ms < 0)) throw new Error('a message was there before it was due');
  await listener.close();
  await running.stop();
  await place.remove();
  return lateMs.slice(count * LEAD_IN);
}

function judge(where: string, p99: number): Verdict {
  return {
    target: `${where}: p99 under ${MAX_P99_MS} ms`,
    measured: `${p99} ms`,
    met: p99 < MAX_P99_MS,
  };
}

function noteOf(name: Name, lateMs: readonly number[]): string {
  const [p50, worst] = [percentile(lateMs, 0.5), percentile(lateMs, 1)];
  return `${name}: p50 ${p50} ms, the latest ${worst} ms, of ${lateMs.length.toLocaleString('en')}`;
}
