import { EngineError } from '../errors.ts';
import type { Job } from '../model/jobs.ts';
import { jobKey } from '../ports/inbox.ts';
import type { Schedule } from '../ports/schedule.ts';

const PREFIX = jobKey('');
const COUNTER = 'jobs';
const MAX_TRIES = 100;

export interface WrittenJob {
  job: Job;
  version: number;
}

/** The documents of bulk jobs. Whoever writes one names the version that he has read: one of two is too late. */
export class JobDocuments {
  readonly #store: Pick<Schedule, 'readState' | 'writeState'>;

  constructor(store: Pick<Schedule, 'readState' | 'writeState'>) {
    this.#store = store;
  }

  /** All of them, with the store's time. */
  async all(): Promise<{ nowMs: number; jobs: WrittenJob[] }> {
    const { nowMs, documents } = await this.#store.readState(PREFIX);
    const jobs = documents.map(({ value, version }) => ({ job: value as Job, version }));
    return { nowMs, jobs };
  }

  async find(id: number): Promise<WrittenJob | undefined> {
    const { documents } = await this.#store.readState(jobKey(id));
    const found = documents.find(({ key }) => key === jobKey(id));
    return found && { job: found.value as Job, version: found.version };
  }

  /** The store's time. */
  async time(id: number): Promise<number> {
    return (await this.#store.readState(jobKey(id))).nowMs;
  }

  /** False: somebody was faster. */
  write(job: Job, version: number): Promise<boolean> {
    return this.#store.writeState(jobKey(job.id), job, version);
  }

  /** Jobs have short numbers, one after the other. */
  async add(make: (id: number) => Job): Promise<Job> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const { documents } = await this.#store.readState(COUNTER);
      const known = documents.find(({ key }) => key === COUNTER);
      const job = make((Number(known?.value) || 0) + 1);
      const isMine = await this.#store.writeState(COUNTER, job.id, known?.version ?? 0);
      if (isMine && (await this.write(job, 0))) return job;
    }
    throw tooBusy();
  }

  /** Writes what `change` makes of a job, however often others are faster; undefined: it changes nothing. */
  async change(id: number, change: (job: Job) => Promise<Job>): Promise<Job | undefined> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const { job, version } = await this.read(id);
      const after = await change(job);
      if (after === job) return undefined;
      if (await this.write(after, version)) return after;
    }
    throw tooBusy();
  }

  async read(id: number): Promise<WrittenJob> {
    const found = await this.find(id);
    if (!found) throw new EngineError('JOB_UNKNOWN', `There is no job ${id}.`);
    return found;
  }
}

function tooBusy(): EngineError {
  return new EngineError('STORE_UNAVAILABLE', 'Others were faster again and again. Try again.');
}
