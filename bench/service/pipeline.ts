import { cpuMs } from '../engine/cpu.ts';
import type { Place } from '../engine/grounds.ts';
import { figureOf, noiseNote, spreadOf, takeTurns } from '../engine/turns.ts';
import { share } from '../engine/verdicts.ts';
import type { Case } from '../result.ts';
import type { Arrivals } from './stage/arrivals.ts';
import { retryMessage } from './stage/messages.ts';
import { type Program, Running } from './stage/program.ts';
import { LONGEST_MS } from './stage/stage.ts';

/** Due as soon as it is stored: what is measured is the road, not the wait. */
const atOnce = { policy: { base: 1, cap: 1, jitter: 'none' } };

export interface Contestant {
  program: Program;
  env?: Readonly<Record<string, string>>;
}

export interface Pipeline {
  name: string;
  about: string;
  /** As the notes call it. */
  broker: string;
  contestants: Readonly<Record<'redrive' | 'raw', Contestant>> &
    Readonly<Record<string, Contestant>>;
  openStage: () => PipelineStage;
}

interface PipelineStage extends AsyncDisposable {
  place(): Promise<PipelinePlace>;
}

/** What a turn has to itself. */
interface PipelinePlace {
  readonly env: Readonly<Record<string, string>>;
  readonly queues: { readonly work: string };
  readonly database: Place | undefined;
  listen(): Promise<Heard>;
  put(messages: readonly Buffer[]): Promise<void>;
  untilSettled(): Promise<void>;
  cpuMs(): { database: number; broker: number };
  remove(): Promise<void>;
}

type Heard = Pick<Arrivals, 'expect' | 'duplicates'> & { close(): Promise<void> };

/** One turn; CPU times in µs for each message. */
interface Turn {
  perSecond: number;
  own: number;
  database: number;
  broker: number;
}

/** A case: messages from a broker through PostgreSQL back to the broker, until the last is on its queue. */
export function pipelineCase({ name, about, broker, contestants, openStage }: Pipeline): Case {
  return {
    name,
    about,
    async run({ turns, tasks }) {
      const notes = [noiseNote()];
      const names = Object.keys(contestants);
      await using stage = openStage();
      const played = await takeTurns(names, turns, async (contestant) => {
        return play(await stage.place(), contestant, contestants[contestant]!, tasks);
      });
      const figures = names.map((contestant) => {
        return [
          contestant,
          figureOf(played[contestant]!.map(({ perSecond }) => perSecond)),
        ] as const;
      });
      const rates = Object.fromEntries(figures.map(([each, { median }]) => [each, median]));
      const { redrive: rate = Number.NaN, ...peers } = rates;
      return {
        metric: 'ops/s',
        redrive: rate,
        peers,
        spread: spreadOf(figures),
        verdicts: [
          share(0.6, rate, Number(peers['raw']), 'raw, the bare statements and publishes'),
        ],
        notes: [cpuNote(broker, played), ...notes],
      };
    },
  };
}

async function play(
  place: PipelinePlace,
  name: string,
  { program, env = {} }: Contestant,
  messages: number,
): Promise<Turn> {
  await using running = await Running.start(program, {
    env: { ...place.env, ...env },
    config: atOnce,
  });
  const listener = await place.listen();
  // Once for nothing: everything is compiled, and the servers have grown their files, before it counts.
  await send(place, running, listener, messages);
  await place.database?.rest();
  const turn = await send(place, running, listener, messages);
  if (listener.duplicates > 0) throw new Error(`${name}: ${listener.duplicates} came twice`);
  await listener.close();
  await running.stop();
  await place.remove();
  return turn;
}

/** Fills the queue while the contestant is held, and lets it go. */
async function send(
  place: PipelinePlace,
  running: Running,
  listener: Heard,
  count: number,
): Promise<Turn> {
  const messages = Array.from({ length: count }, (_, n) => retryMessage(place.queues.work, n));
  running.hold();
  await place.put(messages);
  const used = () => ({ own: cpuMs(running.pid), ...place.cpuMs() });
  const before = used();
  const all = listener.expect(count, LONGEST_MS);
  const startMs = performance.now();
  running.goOn();
  await all;
  const tookMs = performance.now() - startMs;
  // The last settlement comes after its message.
  await place.untilSettled();
  const after = used();
  const each = (part: keyof typeof after) => ((after[part] - before[part]) * 1000) / count;
  return {
    perSecond: (count * 1000) / tookMs,
    own: each('own'),
    database: each('database'),
    broker: each('broker'),
  };
}

/** On a busy machine this says more than the clock: who needs less is faster where nothing else runs. */
function cpuNote(broker: string, played: Readonly<Record<string, readonly Turn[]>>): string {
  const each = Object.entries(played).map(([name, turns]) => {
    const middle = (part: keyof Turn) =>
      figureOf(turns.map((turn) => turn[part])).median.toFixed(0);
    return `${name} ${middle('own')} + ${middle('database')} + ${middle('broker')}`;
  });
  return `CPU time of a message in µs, own process + PostgreSQL + ${broker}: ${each.join(', ')}`;
}
