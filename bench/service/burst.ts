import { noiseNote } from '../engine/turns.ts';
import type { Case, Verdict } from '../result.ts';
import { retryMessage } from './stage/messages.ts';
import { redrive, Running } from './stage/program.ts';
import { LONGEST_MS, Stage } from './stage/stage.ts';

const MESSAGES = 20_000;

interface Absorbed {
  publishedMs: number;
  absorbedMs: number;
  deliveredMs: number;
  unacknowledged: number;
  lost: number;
  duplicates: number;
}

export const burst: Case = {
  name: 'burst',
  about: 'so many failures at once: the time until all are stored and acknowledged',
  async run({ tasks }) {
    const notes = [noiseNote()];
    const count = Math.min(MESSAGES, tasks);
    await using stage = new Stage();
    const found = await absorb(stage, count);
    const { absorbedMs, lost, unacknowledged } = found;
    const verdict: Verdict = {
      target: `${count.toLocaleString('en')} at once, all of them acknowledged, none lost`,
      measured: `${unacknowledged} not acknowledged, ${lost} lost`,
      met: unacknowledged === 0 && lost === 0,
    };
    return {
      metric: 'ms',
      redrive: absorbedMs,
      peers: {},
      verdicts: [verdict],
      notes: [noteOf(count, found), ...notes],
    };
  },
};

/** With the delays that the service has by itself, so that it is busy with nothing else while it takes in. */
async function absorb(stage: Stage, count: number): Promise<Absorbed> {
  const place = await stage.place();
  await using running = await Running.start(redrive, { env: place.env });
  const listener = await place.listen();
  const messages = Array.from({ length: count }, (_, n) => retryMessage(place.queues.work, n));
  const all = listener.expect(count, LONGEST_MS);
  const startMs = performance.now();
  const sinceStart = () => performance.now() - startMs;
  const delivered = all.then(sinceStart);
  const published = place.put(messages).then(sinceStart);
  await place.untilRows('true', count);
  const absorbedMs = sinceStart();
  // What is committed is acknowledged next. To ask the broker takes longer than that.
  const unacknowledged = await place.left();
  const [publishedMs, deliveredMs] = await Promise.all([published, delivered]);
  await place.untilRows(`status = 'retried'`, count);
  const { duplicates } = listener;
  const lost = count - listener.count;
  await listener.close();
  await running.stop();
  await place.remove();
  return { publishedMs, absorbedMs, deliveredMs, unacknowledged, lost, duplicates };
}

function noteOf(count: number, found: Absorbed): string {
  const { publishedMs, absorbedMs, deliveredMs, duplicates } = found;
  const perSecond = (count / absorbedMs).toFixed(1);
  return `published in ${publishedMs.toFixed(0)} ms, absorbed at ${perSecond} k/s, the last one delivered after ${deliveredMs.toFixed(0)} ms (delays of 2 to 3 s), ${duplicates} duplicates`;
}
