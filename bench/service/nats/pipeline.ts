import { cpuMs } from '../../engine/cpu.ts';
import { figureOf, noiseNote, spreadOf, takeTurns } from '../../engine/turns.ts';
import { share } from '../../engine/verdicts.ts';
import type { Case } from '../../result.ts';
import { retryMessage } from '../messages.ts';
import { bareNatsPipeline, type Program, redrive, Running } from '../program.ts';
import { LONGEST_MS } from '../stage.ts';
import { type NatsPlace, NatsStage } from './nats-stage.ts';

/** Due as soon as it is stored: what is measured is the road, not the wait. */
const atOnce = { policy: { base: 1, cap: 1, jitter: 'none' } };

const programs = { redrive, raw: bareNatsPipeline } as const satisfies Record<string, Program>;
type Name = keyof typeof programs;
const names = Object.keys(programs) as Name[];

/** One turn; CPU times in µs for each message. */
interface Turn {
  perSecond: number;
  own: number;
  database: number;
  broker: number;
}

export const natsPipeline: Case = {
  name: 'nats-pipeline',
  about: 'messages of 300 bytes from JetStream through PostgreSQL to JetStream',
  async run({ turns, tasks }) {
    const notes = [noiseNote()];
    await using stage = new NatsStage();
    const played = await takeTurns(names, turns, (name) => play(stage, name, tasks));
    const figures = names.map((name) => {
      return [name, figureOf(played[name].map(({ perSecond }) => perSecond))] as const;
    });
    const rates = Object.fromEntries(figures.map(([name, { median }]) => [name, median]));
    const { redrive: rate = Number.NaN, ...peers } = rates;
    return {
      metric: 'ops/s',
      redrive: rate,
      peers,
      spread: spreadOf(figures),
      verdicts: [share(0.6, rate, Number(peers['raw']), 'raw, the bare statements and publishes')],
      notes: [cpuNote(played), ...notes],
    };
  },
};

async function play(stage: NatsStage, name: Name, messages: number): Promise<Turn> {
  const place = await stage.place();
  const options = { env: place.env, config: atOnce };
  await using running = await Running.start(programs[name], options);
  const listener = await place.listen();
  // Once for nothing: everything is compiled, and the servers have grown their files, before it counts.
  await send(place, running, listener, messages);
  await place.database.rest();
  const turn = await send(place, running, listener, messages);
  if (listener.duplicates > 0) throw new Error(`${name}: ${listener.duplicates} came twice`);
  await listener.close();
  await running.stop();
  await place.remove();
  return turn;
}

/** Fills the stream while the contestant is held, and lets it go. */
async function send(
  place: NatsPlace,
  running: Running,
  listener: Awaited<ReturnType<NatsPlace['listen']>>,
  count: number,
): Promise<Turn> {
  const messages = Array.from({ length: count }, (_, n) => retryMessage(place.subjects.work, n));
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

function cpuNote(played: Record<Name, Turn[]>): string {
  const each = names.map((name) => {
    const middle = (part: keyof Turn) =>
      figureOf(played[name].map((turn) => turn[part])).median.toFixed(0);
    return `${name} ${middle('own')} + ${middle('database')} + ${middle('broker')}`;
  });
  return `CPU time of a message in µs, own process + PostgreSQL + NATS: ${each.join(', ')}`;
}
