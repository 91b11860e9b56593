import { isStoreError } from '../errors.ts';
import type { Host } from '../host.ts';
import { JobDocuments, type WrittenJob } from './job-documents.ts';
import {
  afterAct,
  afterFreeze,
  brokenJob,
  type Job,
  left,
  nextMove,
  WINDOW,
  CLOCKS_APART_MS,
} from '../model/jobs.ts';
import { pause } from '../patience.ts';
import type { Frozen, ItemAction, JobHold, JobTally } from '../ports/inbox.ts';
import type { Store } from '../ports/store.ts';

/** How long an instance may be silent about a job before another one takes it over, and how often it speaks. */
const TURN_MS = 30_000;
const RENEW_MS = 10_000;
const MAX_AT_ONCE = 100;
/** While nothing happens, a job looks less and less often. */
const LONGEST_LOOK_MS = 2000;
/** So many are made members in one commit, and so many are read in advance: some 10 ms and a few. */
const FREEZE_AT_ONCE = 10_000;
const READ_AHEAD = 5000;
/** For fewer it is worth to count what is under way. */
const ROOM = 1000;
/** After something that failed, so that a store in trouble is not asked without end. */
const REST_MS = 1000;

const NUDGED = 'nudged';
const NOTHING: JobTally = { underway: 0, blocked: 0, taken: 0, cancelled: 0, back: 0 };

interface RunnerParts {
  store: Store;
  host: Host;
  instance: string;
  /** The store's time. */
  nowMs: () => number;
  pollMs: number;
  /** Told when a job has come to an end, or stopped. */
  ended: (job: Job) => void;
}

/**
 * Carries out bulk jobs. The document of a job says how far it is, and every step is committed together with it: whoever
 * dies in between loses nothing, and whoever is too late does nothing.
 */
export class JobRunner {
  readonly #parts: RunnerParts;
  readonly #documents: JobDocuments;
  readonly #ending = new AbortController();
  readonly #running = new Map<number, Promise<void>>();
  /** Those of them that freeze or act at present: what waits takes no room from others. */
  readonly #busy = new Set<number>();
  /** Ends the wait of a job early: something of it was settled, or somebody has changed it. Absent: it does not wait. */
  readonly #nudges = new Map<number, AbortController>();
  /** What this instance has settled for good of a job, since that was last asked. */
  readonly #over = new Map<number, number>();
  /** Ends the wait for jobs early: somebody has begun or changed one. */
  #call = new AbortController();
  #isStarted = false;
  #work: Promise<void> | undefined;

  constructor(parts: RunnerParts) {
    this.#parts = parts;
    this.#documents = new JobDocuments(parts.store);
  }

  start(): void {
    this.#isStarted = true;
    this.#work ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    this.wake();
    this.settled();
    await this.#work;
    await Promise.all(this.#running.values());
  }

  /** Looks for jobs at once. */
  wake(): void {
    if (!this.#isStarted) return;
    const call = this.#call;
    this.#call = new AbortController();
    // With a reason of its own: an error for it would be made each time.
    call.abort(NUDGED);
  }

  /** Something that this job, or any, has sent is settled, for good or not: it may have room, or its step may have passed. */
  settled(job?: number, isOver = false): void {
    if (job === undefined) {
      for (const id of this.#nudges.keys()) this.settled(id);
      return;
    }
    const over = this.#over.get(job);
    if (isOver && over !== undefined) this.#over.set(job, over + 1);
    const nudge = this.#nudges.get(job);
    if (!nudge) return;
    this.#nudges.delete(job);
    nudge.abort(NUDGED);
  }

  async #run(): Promise<void> {
    const { host, pollMs } = this.#parts;
    while (!this.#ending.signal.aborted) {
      const call = this.#call.signal;
      try {
        await this.#takeJobs();
      } catch (error) {
        host.log.warn({ err: error }, 'bulk jobs could not be read, trying again');
        await pause(host, REST_MS, this.#ending.signal);
      }
      await pause(host, pollMs, call);
    }
  }

  async #takeJobs(): Promise<void> {
    const { instance } = this.#parts;
    const { nowMs, jobs } = await this.#documents.all();
    for (const { job, version } of jobs) {
      if (job.state !== 'running') {
        this.settled(job.id);
        continue;
      }
      if (this.#running.has(job.id) || !isFree(job, instance, nowMs)) continue;
      if (this.#busy.size >= MAX_AT_ONCE || this.#ending.signal.aborted) return;
      const mine = this.#owned(job);
      if (!(await this.#documents.write(mine, version))) continue;
      const work = this.#carryOut(mine, version + 1).finally(() => {
        this.#running.delete(job.id);
        this.#nudges.delete(job.id);
        this.#over.delete(job.id);
        this.#makeRoom(job.id);
      });
      this.#running.set(job.id, work);
    }
  }

  async #carryOut(job: Job, version: number): Promise<void> {
    const { host } = this.#parts;
    let held: Held | undefined = { job, version };
    this.#busy.add(job.id);
    while (held && !this.#ending.signal.aborted) {
      try {
        held = await this.#step(held);
      } catch (error) {
        host.log.warn({ err: error, job: job.id }, 'a bulk job met an error, trying again');
        await pause(host, REST_MS, this.#ending.signal);
        held = await this.#reload(job.id);
      }
    }
    if (held) await this.#release(held);
  }

  #makeRoom(job: number): void {
    const isFull = this.#busy.size >= MAX_AT_ONCE;
    if (this.#busy.delete(job) && isFull) this.wake();
  }

  /** What is held after it; undefined: the job is over, or another's. */
  async #step(held: Held): Promise<Held | undefined> {
    const { job } = held;
    const nudge = this.#nudgeOf(job.id);
    const countedMs = await this.#countFromMs(job);
    const tally = await this.#tally(held);
    const move = nextMove(job, tally, this.#parts.nowMs(), countedMs);
    switch (move.do) {
      case 'leave':
        return undefined;
      case 'freeze':
        this.#busy.add(job.id);
        return this.#freeze(held);
      case 'act':
        this.#busy.add(job.id);
        return this.#act({ ...held, tally }, move);
      case 'wait':
        this.#makeRoom(job.id);
        return this.#wait(held, move, nudge);
      case 'write':
        return this.#write(move.job, held);
    }
  }

  #nudgeOf(job: number): AbortSignal {
    const known = this.#nudges.get(job);
    if (known) return known.signal;
    const nudge = new AbortController();
    this.#nudges.set(job, nudge);
    return nudge.signal;
  }

  async #freeze({ job, version }: Held): Promise<Held | undefined> {
    const { filter, before = 0 } = job;
    let next = job;
    const hold: JobHold<Frozen> = {
      job: job.id,
      version,
      next: (frozen) => (next = this.#owned(afterFreeze(job, frozen))),
    };
    const page = { before, limit: FREEZE_AT_ONCE };
    const frozen = await this.#parts.store.freeze(filter, page, hold);
    return frozen ? { job: next, version: version + 1 } : this.#reload(job.id);
  }

  async #wait(
    held: Held,
    { ms, isLook }: { ms: number; isLook?: true },
    nudge: AbortSignal,
  ): Promise<Held | undefined> {
    const { host, nowMs } = this.#parts;
    const { tally: _, looks: before = 0, ...rest } = held;
    const looks = isLook && !nudge.aborted ? before : 0;
    const longest = isLook ? Math.min(ms * 2 ** looks, LONGEST_LOOK_MS) : ms;
    await pause(host, Math.min(longest, RENEW_MS), nudge);
    const isLate = (held.job.owner?.untilMs ?? 0) - nowMs() < TURN_MS - RENEW_MS;
    if (isLate) return this.#write(held.job, held);
    return { ...rest, looks: nudge.aborted ? 0 : Math.min(looks + 1, 10) };
  }

  /** The store's time before a count. A canary asks for it: what was heard last may be from before the clock was set. */
  async #countFromMs({ id, canary }: Job): Promise<number> {
    return canary.length > 0 ? this.#documents.time(id) : this.#parts.nowMs();
  }

  /**
   * Counted anew only when it matters: in a canary, where failures stop the job, and where the window may be full. What is
   * settled in the moment of a count may be missed or taken off twice: the window is no exact limit.
   */
  async #tally({ job, tally }: Held): Promise<JobTally> {
    const isSending = job.state === 'running' && job.before === undefined;
    if (job.action !== 'replay' || !isSending) return NOTHING;
    const over = this.#over.get(job.id) ?? 0;
    this.#over.set(job.id, 0);
    const isExact = job.maxFailures !== undefined || job.step < job.canary.length;
    if (tally && !isExact && left(job) > 0) {
      const underway = Math.max(0, tally.underway - over);
      if (underway - job.parked <= WINDOW - ROOM) return { ...tally, underway };
    }
    // More than the window: what is above it must be seen to become less, or it would be taken for standing still.
    return this.#parts.store.tally(job.id, job.parked + 2 * WINDOW);
  }

  async #act(
    held: Held,
    { limit, isTrial }: { limit: number; isTrial: boolean },
  ): Promise<Held | undefined> {
    const { job, most = Infinity } = held;
    const ahead = await this.#ahead(held, Math.min(limit, most));
    const ids = ahead.slice(0, Math.min(limit, most));
    if (ids.length === 0) return this.#write(brokenJob(job, this.#parts.nowMs()), held);
    held = { ...held, ahead };
    try {
      return await this.#actOn(held, ids, actionOf(job, isTrial));
    } catch (error) {
      // One of them cannot be written, or is locked by somebody: by halves until it stands alone.
      if (ids.length > 1 && !this.#ending.signal.aborted)
        return this.#halved(held, ids.length, error);
      if (isStoreError(error)) throw error;
      this.#parts.host.log.error(
        { err: error, job: job.id, item: ids[0] },
        'an item is passed over',
      );
      return this.#actOn(held, ids, { type: 'pass' });
    }
  }

  /** As it is now: what failed may have been written all the same. */
  async #halved({ job }: Held, count: number, error: unknown): Promise<Held | undefined> {
    const { host } = this.#parts;
    host.log.warn({ err: error, job: job.id }, 'a bulk job met an error, trying fewer at a time');
    if (isStoreError(error)) await pause(host, REST_MS, this.#ending.signal);
    const held = await this.#reload(job.id);
    return held && { ...held, most: count >> 1 };
  }

  /** The next members, so many at least as long as there are any. They never change, so some are read in advance. */
  async #ahead({ job, ahead = [] }: Held, wanted: number): Promise<number[]> {
    if (ahead.length >= Math.min(wanted, left(job))) return ahead;
    const page = {
      job: job.id,
      after: ahead.at(-1) ?? job.cursor,
      limit: Math.max(wanted, READ_AHEAD),
    };
    const more = await this.#parts.store.members(page);
    return [...ahead, ...more.map(({ itemId }) => itemId)];
  }

  async #actOn(
    { job, version, most = Infinity, ahead = [], tally }: Held,
    ids: readonly number[],
    action: ItemAction,
  ): Promise<Held | undefined> {
    const { store, nowMs } = this.#parts;
    let next = job;
    const acting = store.act(ids, action, {
      job: job.id,
      version,
      next: (all) => (next = this.#owned(afterAct(job, ids, all, nowMs()))),
    });
    // The next ones are read meanwhile. Where that fails they are read when they are due, and whoever is at it then tells.
    const reading = this.#ahead({ job, version, ahead }, 2 * ids.length).catch(() => ahead);
    const results = await acting;
    const known = await reading;
    if (!results) return this.#reload(job.id);
    const sent = next.done - job.done;
    const guess = tally ? { tally: { ...tally, underway: tally.underway + sent } } : {};
    return {
      job: next,
      version: version + 1,
      most: most * 2,
      ahead: known.slice(ids.length),
      ...guess,
    };
  }

  /** Says something else of it; its members stay where they are. */
  async #write(after: Job, { version, ahead }: Held): Promise<Held | undefined> {
    const job = this.#owned(after);
    if (!(await this.#documents.write(job, version))) return this.#reload(job.id);
    if (job.state !== 'running') this.#parts.ended(job);
    return { job, version: version + 1, ...(ahead ? { ahead } : {}) };
  }

  /** As it is now, if it is still this instance's to carry out. */
  async #reload(id: number): Promise<Held | undefined> {
    const { instance, host } = this.#parts;
    while (!this.#ending.signal.aborted) {
      try {
        const found = await this.#documents.find(id);
        const isMine = found?.job.owner?.by === instance && found.job.state === 'running';
        return isMine ? found : undefined;
      } catch (error) {
        host.log.warn({ err: error, job: id }, 'a bulk job could not be read, trying again');
        await pause(host, REST_MS, this.#ending.signal);
      }
    }
    return undefined;
  }

  /** So that another instance need not wait until the turn is over. */
  async #release({ job, version }: Held): Promise<void> {
    const { owner: _, ...rest } = job;
    try {
      await this.#documents.write(rest, version);
    } catch (error) {
      this.#parts.host.log.warn({ err: error, job: job.id }, 'a bulk job is handed over late');
    }
  }

  #owned(job: Job): Job {
    const { instance, nowMs } = this.#parts;
    return { ...job, owner: { by: instance, untilMs: nowMs() + TURN_MS } };
  }
}

/** A turn that is longer than any was given by a clock that was set back since. */
function isFree({ owner }: Job, instance: string, nowMs: number): boolean {
  if (!owner || owner.by === instance) return true;
  return owner.untilMs <= nowMs || owner.untilMs > nowMs + TURN_MS + CLOCKS_APART_MS;
}

interface Held extends WrittenJob {
  /** Not more at once: something among the next ones cannot be written. */
  most?: number;
  /** The items of the next members, from the cursor on. */
  ahead?: number[];
  /** As it was counted last, and what was sent since. */
  tally?: JobTally;
  /** How often it has looked in vain. */
  looks?: number;
}

function actionOf(job: Job, isTrial: boolean): ItemAction {
  const by = job.by === undefined ? {} : { by: job.by };
  if (job.action !== 'replay') return { type: job.action, ...by };
  return {
    type: 'replay',
    ...by,
    job: job.id,
    ...(isTrial ? { trial: true } : {}),
    ...(job.to ? { edit: { destination: job.to } } : {}),
  };
}
