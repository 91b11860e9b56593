import type { Engine } from '@redrive/engine';
import { BATCH, type Work, workOf } from '../player.ts';
import { Tally, until } from '../tally.ts';
import { percentile } from '../turns.ts';
import { type Cause, fill, fingerprintOf } from './fill.ts';
import { CONCURRENCY, RedrivePlayer, type Tasks } from './redrive.ts';

/** How fresh tasks fare, in the lane that is replayed and in another one. */
export interface Freshness {
  /** Done of both lanes, while the replay ran. */
  perSecond: number;
  offered: number;
  same: Lateness;
  other: Lateness;
  /** What was replayed meanwhile. */
  replayedPerSecond: number;
}

interface Lateness {
  p50: number;
  p99: number;
}

/** How often fresh tasks are submitted: what is due by then in one batch. */
const TICK_MS = 10;
const CAUSES = 100;

/** Redrive with an inbox that is replayed as a whole. */
export class ReplayPlayer extends RedrivePlayer {
  /** Fills the inbox. */
  override async schedule(tasks: number): Promise<number> {
    const store = this.storeHere();
    await store.open();
    const tookMs = await fill(store, tasks, causeOf);
    await store.close();
    return tookMs;
  }

  /** Replays all of it. The ms from the order to the durable completion of the last. */
  override async execute(tasks: number): Promise<number> {
    const tally = new Tally(tasks);
    const engine = await this.create();
    engine.handle('work', { concurrency: CONCURRENCY }, (payload: Work) => tally.did(payload));
    await engine.start();
    tally.begin();
    const { id } = await engine.inbox.replayAll({ all: true });
    const tookMs = await this.finish(engine, tally, 0);
    await checkJob(engine, id, tasks);
    return tookMs;
  }

  /**
   * Submits fresh tasks at a steady rate, in turn to the lane of the inbox and to another one, until all of the inbox
   * is replayed; with nothing to replay, for so long. A task is late by the clock of the rate, not of its submit.
   */
  async fresh(perSecond: number, forMs: number, replays: number): Promise<Freshness> {
    const replayed = new Tally(replays);
    const lateMs: Record<string, number[]> = { work: [], other: [] };
    const doneOf = (lane: string) => lateMs[lane]?.length ?? 0;
    const engine = await this.create();
    for (const lane of Object.keys(lateMs)) {
      engine.handle(lane, { concurrency: CONCURRENCY }, (payload: Work) => {
        if (payload.dueAtMs === 0) replayed.did(payload);
        else lateMs[lane]?.push(Date.now() - payload.dueAtMs);
      });
    }
    await engine.start();
    const startMs = Date.now();
    const job = replays > 0 ? await engine.inbox.replayAll({ all: true }) : undefined;
    let isOver = false;
    const over = (job ? replayed.all : pause(forMs)).finally(() => {
      isOver = true;
    });
    const sending = sendSteadily(engine, perSecond, startMs, () => isOver);
    await Promise.race([over, sending]);
    const seconds = (Date.now() - startMs) / 1000;
    const done = doneOf('work') + doneOf('other');
    const sent = await sending;
    await until(() => doneOf('work') + doneOf('other') === sent && engine.stats().held === 0);
    if (job) await checkJob(engine, job.id, replays);
    return {
      perSecond: done / seconds,
      offered: perSecond,
      same: latenessOf(lateMs['work'] ?? []),
      other: latenessOf(lateMs['other'] ?? []),
      replayedPerSecond: replays / seconds,
    };
  }
}

/** How many were sent until it was over. */
async function sendSteadily(
  engine: Engine<Tasks>,
  perSecond: number,
  startMs: number,
  isOver: () => boolean,
): Promise<number> {
  let sent = 0;
  while (!isOver()) {
    const due = Math.floor(((Date.now() - startMs) * perSecond) / 1000);
    const count = Math.min(due - sent, BATCH);
    if (count > 0) {
      const first = sent;
      const batch = Array.from({ length: count }, (_, i) => {
        const dueAtMs = startMs + Math.floor(((first + i) * 1000) / perSecond);
        return {
          to: (first + i) % 2 === 0 ? 'work' : 'other',
          payload: workOf(first + i, dueAtMs),
        };
      });
      await engine.submitMany(batch);
      sent += count;
    }
    if (due - sent < BATCH) await pause(TICK_MS);
  }
  return sent;
}

async function checkJob(engine: Engine<Tasks>, id: number, items: number): Promise<void> {
  await until(async () => (await engine.inbox.job(id)).state === 'finished');
  const { done, back } = await engine.inbox.job(id);
  if (done !== items || back !== 0) throw new Error(`${done} of ${items} sent, ${back} came back`);
}

function causeOf(n: number): Cause {
  const number = n % CAUSES;
  const message = `order ${n} was refused by rule ${number}`;
  const failure = { class: 'technical' as const, code: `E_RULE_${number}`, message };
  const item = { reason: 'PERMANENT' as const, failure, fingerprint: fingerprintOf(failure.code) };
  return { to: 'work', item };
}

function latenessOf(lateMs: readonly number[]): Lateness {
  return { p50: percentile(lateMs, 0.5), p99: percentile(lateMs, 0.99) };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
