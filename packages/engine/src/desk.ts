import type { OperatorFacts } from './audit-facts.ts';
import {
  type Changes,
  byOf,
  checkedBy,
  checkNames,
  checkedChanges,
  checkedFilter,
  checkedNumber,
  checkedPlace,
  checkedText,
  checkedNote,
  checkedReplay,
  checkedSelection,
  type ReplayOptions,
  type Selection,
} from './selection.ts';
import type { By, EngineInbox, JobReport } from './engine-inbox.ts';
import { EngineError } from './errors.ts';
import { replayedId } from './item-moves.ts';
import {
  cancelledJob,
  isOver,
  type Job,
  left,
  MAX_JOBS,
  newJob,
  pausedJob,
  resumedJob,
} from './jobs.ts';
import type {
  ActResult,
  Group,
  GroupQuery,
  Inbox,
  InboxItem,
  ItemAction,
  ItemFilter,
  ItemPage,
  ItemQuery,
  JobTally,
  Member,
} from './ports/inbox.ts';
import { jobKey } from './ports/inbox.ts';
import type { Store } from './ports/store.ts';
import { refusal, unknownItem } from './refusal.ts';
import { checkedLimit } from './submission.ts';
import type { Submitter } from './submitter.ts';
import { laneOf } from './task.ts';

interface DeskParts {
  /** The store, once it is open. */
  store: () => Promise<Store>;
  submitter: Submitter;
  maxPayloadBytes: number;
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
const MAX_SAME = 10_000;
const COUNTER = 'jobs';
const MAX_TRIES = 100;
const MOST_COUNTED = 1_000_000;

/** Where operators stand. See the interface `EngineInbox` for what each method promises. */
export class Desk implements EngineInbox {
  readonly #parts: DeskParts;

  constructor(parts: DeskParts) {
    this.#parts = parts;
  }

  async item(id: number): Promise<InboxItem | undefined> {
    return (await this.#parts.store()).item(checkedNumber(id));
  }

  async items(asked: ItemQuery): Promise<ItemPage> {
    const { before, limit, ...filter } = Object(asked) as ItemQuery;
    const query = { ...checkedFilter(filter), limit: checkedLimit(limit) };
    const page = before === undefined ? {} : { before: checkedPlace(before, 'before') };
    return (await this.#parts.store()).items({ ...query, ...page });
  }

  async attempts(taskId: number): ReturnType<Inbox['attempts']> {
    return (await this.#parts.store()).attempts(checkedNumber(taskId, 'taskId'));
  }

  async groups({ limit = 100, ...query }: Partial<GroupQuery> = {}): Promise<Group[]> {
    checkNames(query, ['fingerprint', 'lane', 'all', 'before'], 'A query of groups');
    const { fingerprint, lane, before } = query;
    if (fingerprint !== undefined) checkedText(fingerprint, 'fingerprint');
    if (lane !== undefined) checkedText(lane, 'lane');
    if (before !== undefined) {
      checkedPlace(before.lastSeenMs, 'before.lastSeenMs');
      checkedText(before.fingerprint, 'before.fingerprint');
    }
    return (await this.#parts.store()).groups({ ...query, limit: checkedLimit(limit) });
  }

  async annotate(
    fingerprint: string,
    given: { note?: string; owner?: string } & By,
  ): Promise<void> {
    const { by, ...notes } = Object(given) as typeof given;
    const who = byOf(by);
    const checked = checkedNote(notes);
    const store = await this.#parts.store();
    if (!(await store.annotate(checkedText(fingerprint, 'fingerprint'), checked))) {
      throw new EngineError('ITEM_UNKNOWN', `There is no group '${fingerprint}'.`);
    }
    this.#parts.acted('annotate', { group: fingerprint, ...who });
  }

  async replay(id: number, { by, ...changes }: Changes & By = {}): Promise<void> {
    const isChanged = Object.values(changes).some((one) => one !== undefined);
    const edit = isChanged ? { edit: await this.#checkedEdit(id, changes, by) } : {};
    await this.#act(id, { type: 'replay', ...byOf(by), ...edit });
  }

  async edit(
    id: number,
    changes: (Changes & By) | undefined,
    options: By = {},
  ): Promise<InboxItem> {
    const { by = options.by, ...rest } = changes ?? {};
    const edit = changes && (await this.#checkedEdit(id, rest, by));
    await this.#act(id, { type: 'edit', ...byOf(by), edit });
    return (await this.item(id))!;
  }

  async resolve(id: number, options: By = {}): Promise<void> {
    await this.#act(id, { type: 'resolve', ...checkedBy(options) });
  }

  async discard(id: number, options: By = {}): Promise<void> {
    await this.#act(id, { type: 'discard', ...checkedBy(options) });
  }

  async restore(id: number, options: By = {}): Promise<void> {
    await this.#act(id, { type: 'restore', ...checkedBy(options) });
  }

  async erase(id: number, options: By = {}): Promise<void> {
    const { by } = checkedBy(options);
    const { messageId, taskId } = await this.#known(id);
    const store = await this.#parts.store();
    const result = await store.erase(messageId, by);
    let isBusy = result === 'busy';
    if (taskId === undefined) {
      // What could not be read goes under a new id when it is replayed. From now on it cannot be any more.
      const { items } = await store.items({ messageId, limit: MAX_SAME });
      for (const item of items) {
        if ((await store.erase(replayedId(item), by)) === 'busy') isBusy = true;
      }
    }
    // Also where a replay of it is still on its way: something is gone already.
    if (result !== 'busy') this.#parts.acted('erase', { item: id, messageId, ...byOf(by) });
    if (isBusy) {
      throw new EngineError(
        'ITEM_BUSY',
        `The message of item ${id} is on its way again. Cancel it, or wait until it is settled; then erase it once more.`,
      );
    }
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
    return this.#report((await this.#read(id)).job);
  }

  async jobs({ before, limit = 100 }: { before?: number; limit?: number } = {}): Promise<
    JobReport[]
  > {
    const most = checkedLimit(limit);
    const below = before === undefined ? Infinity : checkedPlace(before, 'before');
    const jobs = (await this.#allJobs()).filter(({ id }) => id < below);
    const shown = jobs.sort((a, b) => b.id - a.id).slice(0, most);
    return Promise.all(shown.map((job) => this.#report(job)));
  }

  async members(
    job: number,
    { result, after = 0, limit = 100 }: { result?: ActResult; after?: number; limit?: number } = {},
  ): Promise<Member[]> {
    const { cursor } = (await this.#read(job)).job;
    const query = { job, after: checkedPlace(after, 'after'), limit: checkedLimit(limit) };
    const asked = result === undefined ? query : { ...query, result };
    const store = await this.#parts.store();
    const members = await store.members(result === 'done' ? { ...asked, upTo: cursor } : asked);
    return members.map((one) => (one.itemId > cursor ? one : { result: 'done', ...one }));
  }

  pauseJob(id: number, options: By = {}): Promise<JobReport> {
    return this.#changeJob(id, 'pause', options, pausedJob);
  }

  resumeJob(id: number, options: By = {}): Promise<JobReport> {
    return this.#changeJob(id, 'resume', options, (job, tally) => resumedJob(job, tally));
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
      throw new EngineError(
        'NOTHING_MATCHES',
        'No open item matches. Look at the groups, or at items of another state.',
      );
    }
    await this.#checkRoom();
    const nowMs = Math.floor(this.#parts.nowMs());
    const job = newJob({
      ...options,
      id: await this.#nextId(store),
      action,
      filter,
      createdAtMs: nowMs,
      before: newest.id + 1,
    });
    if (!(await store.writeState(jobKey(job.id), job, 0))) throw busy();
    const { by, ...details } = options;
    this.#parts.acted(`${action}All`, { job: job.id, by, details: { filter, ...details } });
    this.#parts.wakeRunner();
    return this.#report(job);
  }

  async #checkRoom(): Promise<void> {
    const count = (await this.#allJobs()).filter((job) => !isOver(job)).length;
    if (count < MAX_JOBS) return;
    throw new EngineError(
      'TOO_MANY_JOBS',
      `${count} bulk jobs are not over yet. Let them finish, or cancel some that are paused or stopped.`,
    );
  }

  async #allJobs(): Promise<Job[]> {
    const { documents } = await (await this.#parts.store()).readState('job:');
    return documents.map(({ value }) => value as Job);
  }

  /** Jobs have short numbers, one after the other. */
  async #nextId(store: Store): Promise<number> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const { documents } = await store.readState(COUNTER);
      const known = documents.find(({ key }) => key === COUNTER);
      const id = (Number(known?.value) || 0) + 1;
      if (await store.writeState(COUNTER, id, known?.version ?? 0)) return id;
    }
    throw busy();
  }

  async #changeJob(
    id: number,
    action: string,
    options: By,
    change: (job: Job, tally: JobTally) => Job,
  ): Promise<JobReport> {
    const facts = { job: id, ...checkedBy(options) };
    const store = await this.#parts.store();
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const { job, version } = await this.#read(id);
      if (isOver(job)) {
        throw new EngineError(
          'JOB_OVER',
          `Job ${id} is ${job.state}: it cannot ${action} any more.`,
        );
      }
      const after = change(job, await store.tally(id, MOST_COUNTED));
      if (after === job) return this.#report(job);
      // Its runner writes often: whoever is faster, the other one looks again.
      if (!(await store.writeState(jobKey(id), after, version))) continue;
      this.#parts.acted(`${action}Job`, facts);
      if (isOver(after)) this.#parts.ended(after);
      this.#parts.wakeRunner();
      return this.#report(after);
    }
    throw busy();
  }

  async #read(id: number): Promise<{ job: Job; version: number }> {
    checkedNumber(id);
    const store = await this.#parts.store();
    const { documents } = await store.readState(jobKey(id));
    const found = documents.find(({ key }) => key === jobKey(id));
    if (!found) throw new EngineError('JOB_UNKNOWN', `There is no job ${id}.`);
    return { job: found.value as Job, version: found.version };
  }

  async #report(job: Job): Promise<JobReport> {
    const store = await this.#parts.store();
    const { underway, taken, back } = await store.tally(job.id, MOST_COUNTED);
    const { id, action, why, by, total, done, skipped, failed, canary, perSecond } = job;
    const { createdAtMs, finishedAtMs, step } = job;
    const isFreezing = job.state === 'running' && job.before !== undefined;
    return {
      id,
      action,
      state: isFreezing ? 'freezing' : job.state,
      ...(why === undefined ? {} : { why }),
      ...(by === undefined ? {} : { by }),
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

  async #act(id: number, action: ItemAction): Promise<void> {
    const store = await this.#parts.store();
    const [result] = await store.act([checkedNumber(id)], action);
    if (result !== 'done') throw refusal(id, result!, action, await store.item(id));
    const { type, ...facts } = action;
    this.#parts.acted(type, { item: id, ...('by' in facts ? byOf(facts.by) : {}) });
  }

  async #known(id: number): Promise<InboxItem> {
    const item = await this.item(id);
    if (!item) throw unknownItem(id);
    return item;
  }

  /** Held to what a submit to that destination is held to. */
  async #checkedEdit(id: number, changes: Changes, by: string | undefined) {
    const edit = checkedChanges(changes, this.#parts.maxPayloadBytes, by);
    const item = await this.#known(id);
    const headers = edit.headers ?? item.context?.headers;
    const destination = edit.destination ?? item.destination;
    if (edit.destination) this.#parts.sentTo(laneOf(edit.destination));
    if (destination.kind !== 'source') {
      await this.#parts.submitter.check(destination, changes.payload, {
        ...item.context,
        ...(headers ? { headers } : {}),
      });
    }
    return edit;
  }
}

function busy(): EngineError {
  return new EngineError('STORE_UNAVAILABLE', 'Others were faster again and again. Try again.');
}
