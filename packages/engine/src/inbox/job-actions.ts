import { filterFacts, type OperatorFacts } from '../audit/audit-facts.ts';
import type { By, JobReport } from './engine-inbox.ts';
import { EngineError } from '../errors.ts';
import { JobDocuments } from './job-documents.ts';
import {
  cancelledJob,
  isOver,
  type Job,
  left,
  MAX_JOBS,
  newJob,
  pausedJob,
  resumedJob,
  whyNow,
} from '../model/jobs.ts';
import type {
  ActResult,
  InboxItem,
  ItemFilter,
  ItemPage,
  JobTally,
  Member,
} from '../ports/inbox.ts';
import type { Store } from '../ports/store.ts';
import {
  checkedBy,
  checkedNumber,
  checkedPlace,
  checkedReplay,
  checkedResult,
  checkNames,
  checkedSelection,
  type ReplayOptions,
  type Selection,
} from './selection.ts';
import { checkedLimit } from '../intake/submission.ts';
import type { Submitter } from '../intake/submitter.ts';
import { laneOf } from '../model/task.ts';

export interface JobActionsParts {
  /** The store, once it is open. */
  store: () => Promise<Store>;
  submitter: Submitter;
  nowMs: () => number;
  /** A job is there to be carried out, or was changed. */
  wakeRunner: () => void;
  /** Something is redirected to this lane: perhaps nobody is there. */
  sentTo: (lane: string) => void;
  /** For the audit trail. */
  acted: (action: string, facts: OperatorFacts) => void;
  /** Told when somebody has cancelled a job. */
  ended: (job: Job) => void;
}

const SAMPLE = 10;
const MOST_COUNTED = 1_000_000;

/** What operators do to many items at once. */
export class JobActions {
  readonly #parts: JobActionsParts;

  constructor(parts: JobActionsParts) {
    this.#parts = parts;
  }

  async preview(selection: Selection): Promise<{ count: number; sample: InboxItem[] }> {
    const filter: ItemFilter = { ...checkedSelection(selection), state: 'open' };
    const store = await this.#parts.store();
    const count = await store.count(filter);
    const sample: InboxItem[] = [];
    let page: ItemPage = { items: [], next: Infinity };
    while (page.next !== undefined && sample.length < Math.min(SAMPLE, count)) {
      const before = page.next === Infinity ? {} : { before: page.next };
      page = await store.items({ ...filter, ...before, limit: SAMPLE - sample.length });
      sample.push(...page.items);
    }
    return { count, sample };
  }

  async replayAll(selection: Selection, options: ReplayOptions = {}): Promise<JobReport> {
    return this.#begin('replay', selection, checkedReplay(options));
  }

  async resolveAll(selection: Selection, options: By = {}): Promise<JobReport> {
    return this.#begin('resolve', selection, { canary: [], observeMs: 0, ...checkedBy(options) });
  }

  async discardAll(selection: Selection, options: By = {}): Promise<JobReport> {
    return this.#begin('discard', selection, { canary: [], observeMs: 0, ...checkedBy(options) });
  }

  async job(id: number): Promise<JobReport> {
    return this.#report(await this.#read(id));
  }

  async jobs(page: { before?: number; limit?: number } = {}): Promise<JobReport[]> {
    checkNames(page, ['before', 'limit'], 'A page of jobs');
    const { before, limit = 100 } = page;
    const most = checkedLimit(limit);
    const below = before === undefined ? Infinity : checkedPlace(before, 'before');
    const jobs = (await this.#all()).filter(({ id }) => id < below);
    const shown = jobs.sort((a, b) => b.id - a.id).slice(0, most);
    return Promise.all(shown.map((job) => this.#report(job)));
  }

  async members(
    job: number,
    asks: { result?: ActResult; after?: number; limit?: number } = {},
  ): Promise<Member[]> {
    checkNames(asks, ['result', 'after', 'limit'], 'A query of members');
    const { result, after = 0, limit = 100 } = asks;
    const { cursor } = await this.#read(job);
    const query = { job, after: checkedPlace(after, 'after'), limit: checkedLimit(limit) };
    const asked = result === undefined ? query : { ...query, result: checkedResult(result) };
    const store = await this.#parts.store();
    const members = await store.members(result === 'done' ? { ...asked, upTo: cursor } : asked);
    return members.map((one) => (one.itemId > cursor ? one : { result: 'done', ...one }));
  }

  pauseJob(id: number, options: By = {}): Promise<JobReport> {
    return this.#changeJob(id, 'pause', options, pausedJob);
  }

  resumeJob(id: number, options: By = {}): Promise<JobReport> {
    return this.#changeJob(id, 'resume', options, resumedJob);
  }

  cancelJob(id: number, options: By = {}): Promise<JobReport> {
    return this.#changeJob(id, 'cancel', options, (job) => cancelledJob(job, this.#parts.nowMs()));
  }

  async #begin(
    action: Job['action'],
    selection: Selection,
    options: Pick<Job, 'canary' | 'observeMs'> & Partial<Job>,
  ): Promise<JobReport> {
    const filter = checkedSelection(selection);
    if (options.to) {
      await this.#parts.submitter.check(options.to, undefined, undefined);
      this.#parts.sentTo(laneOf(options.to));
    }
    const store = await this.#parts.store();
    const open: ItemFilter = { ...filter, state: 'open' };
    const [count, newest] = [
      await store.count(open),
      (await store.items({ state: 'open', limit: 1 })).items[0],
    ];
    if (count === 0 || !newest) {
      const message = `None of the ${await store.count({ state: 'open' })} open items matches. Look at the groups, or at items of another state.`;
      throw new EngineError('NOTHING_MATCHES', message);
    }
    await this.#checkRoom();
    const createdAtMs = Math.floor(this.#parts.nowMs());
    const ignored = filter.ids ? new Set(filter.ids).size - count : 0;
    const fresh = { ...options, action, filter, createdAtMs, before: newest.id + 1, ignored };
    const job = await new JobDocuments(store).add((id) => newJob({ ...fresh, id }));
    const { by, ...details } = options;
    const asked = Object.keys(filter).length === 0 ? { all: true } : filterFacts(filter);
    this.#parts.acted(`${action}All`, {
      job: job.id,
      by,
      messageId: filter.messageId,
      details: { filter: asked, count, ...details },
    });
    this.#parts.wakeRunner();
    return this.#report(job);
  }

  async #checkRoom(): Promise<void> {
    const count = (await this.#all()).filter((job) => !isOver(job)).length;
    if (count < MAX_JOBS) return;
    throw new EngineError(
      'TOO_MANY_JOBS',
      `${count} bulk jobs are not over yet. Let them finish, or cancel some that are paused or stopped.`,
    );
  }

  async #changeJob(
    id: number,
    action: string,
    options: By,
    change: (job: Job, tally: JobTally) => Job,
  ): Promise<JobReport> {
    const facts = { job: checkedNumber(id), ...checkedBy(options) };
    const store = await this.#parts.store();
    const documents = new JobDocuments(store);
    // Its runner writes often: whoever is faster, the other one looks again.
    const after = await documents.change(id, async (job) => {
      if (isOver(job)) {
        const message = `Job ${id} is ${job.state}: it cannot ${action} any more.`;
        throw new EngineError('JOB_OVER', message);
      }
      return change(job, await store.tally(id, MOST_COUNTED));
    });
    if (!after) return this.job(id);
    this.#parts.acted(`${action}Job`, facts);
    if (isOver(after)) this.#parts.ended(after);
    this.#parts.wakeRunner();
    return this.#report(after);
  }

  async #all(): Promise<Job[]> {
    const { jobs } = await new JobDocuments(await this.#parts.store()).all();
    return jobs.map(({ job }) => job);
  }

  async #read(id: number): Promise<Job> {
    const store = await this.#parts.store();
    return (await new JobDocuments(store).read(checkedNumber(id))).job;
  }

  async #report(job: Job): Promise<JobReport> {
    const store = await this.#parts.store();
    const { underway, taken, back, failure } = await store.tally(job.id, MOST_COUNTED);
    const { id, action, why, by, total, done, skipped, failed, canary, perSecond } = job;
    const { createdAtMs, finishedAtMs, step, ignored = 0 } = job;
    const isFreezing = job.state === 'running' && job.before !== undefined;
    return {
      id,
      action,
      state: isFreezing ? 'freezing' : job.state,
      ...(why === undefined ? {} : { why: whyNow(why, failure) }),
      ...(by === undefined ? {} : { by }),
      ...(ignored > 0 ? { ignored } : {}),
      total,
      done,
      skipped,
      failed,
      left: left(job),
      underway,
      taken,
      back,
      canary,
      ...(step < canary.length ? { step: step + 1 } : {}),
      ...(perSecond === undefined ? {} : { perSecond }),
      createdAtMs,
      ...(finishedAtMs === undefined ? {} : { finishedAtMs }),
    };
  }
}
