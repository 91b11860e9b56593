import type { EngineEvent } from '../events.ts';
import type { Host } from '../host.ts';
import { JobDocuments } from './job-documents.ts';
import { cancelledJob, isOver, type Job, MAX_JOBS } from '../model/jobs.ts';
import { pause } from '../patience.ts';
import type { Store } from '../ports/store.ts';

const STEP = 1000;
const MAX_STEPS = 1000;
/** Rests between steps, so that live work always goes first. */
const REST_MS = 50;
/** Counting a full inbox is not cheap. */
const COUNT_EVERY_MS = 60_000;
const WARN_AT = 0.8;

interface KeeperParts {
  store: Store;
  host: Host;
  /** The store's time. */
  nowMs: () => number;
  settings: { retentionMs: number; maxItems: number };
  tell: (event: EngineEvent) => void;
  /** Told when a job is cancelled because nobody has let it go on. */
  ended: (job: Job) => void;
}

/** Deletes what was closed long ago, and warns before the inbox is full. What is open is never deleted. */
export class InboxKeeper {
  readonly #parts: KeeperParts;
  #countedAt = -Infinity;

  constructor(parts: KeeperParts) {
    this.#parts = parts;
  }

  async round(until: AbortSignal): Promise<void> {
    await this.#prune(this.#parts.settings.retentionMs, until);
    await this.#forgetJobs(until);
    await this.#measure(until);
  }

  async #prune(closedForMs: number, until: AbortSignal): Promise<void> {
    const { store, host } = this.#parts;
    for (let step = 0; step < MAX_STEPS && !until.aborted; step++) {
      if ((await store.pruneItems({ closedForMs, limit: STEP })) < STEP) return;
      await pause(host, REST_MS, until);
    }
  }

  async #forgetJobs(until: AbortSignal): Promise<void> {
    const { store, host, nowMs, settings, ended } = this.#parts;
    const documents = new JobDocuments(store);
    const { jobs } = await documents.all();
    const over = jobs.map(({ job }) => job).filter(isOver);
    const tooMany = new Set(over.sort(latestFirst).slice(MAX_JOBS));
    for (const { job, version } of jobs) {
      const isOld = (job.finishedAtMs ?? Infinity) < nowMs() - settings.retentionMs;
      if (!isOld && !tooMany.has(job)) continue;
      if (!isOver(job)) {
        // Nobody has let it go on. If somebody does at this moment, one of the two writes is too late.
        const after = cancelledJob(job, nowMs());
        if (await documents.write(after, version)) ended(after);
        continue;
      }
      while (!until.aborted && !(await store.forgetJob(job.id, STEP))) {
        await pause(host, REST_MS, until);
      }
    }
  }

  async #measure(until: AbortSignal): Promise<void> {
    const { store, host, settings, tell } = this.#parts;
    const now = host.clock.monotonic();
    if (now - this.#countedAt < COUNT_EVERY_MS) return;
    this.#countedAt = now;
    const { maxItems } = settings;
    const open = await store.count({ state: 'open' });
    if (open < maxItems * WARN_AT) return;
    const isFull = open >= maxItems;
    tell({ type: isFull ? 'inboxFull' : 'inboxFilling', open, maxItems });
    const what = isFull ? 'the inbox is full' : 'the inbox is filling up';
    host.log[isFull ? 'error' : 'warn'](
      { open, maxItems },
      `${what}: nothing open is deleted, so replay, resolve or discard`,
    );
    // The room is for what is open.
    if (isFull) await this.#prune(0, until);
  }
}

function latestFirst(a: Job, b: Job): number {
  return (b.finishedAtMs ?? 0) - (a.finishedAtMs ?? 0) || b.id - a.id;
}
