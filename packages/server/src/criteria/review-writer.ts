/**
 * Writes failed evaluations to the inbox, behind their answers. Bounded: a store that is away costs items, never an answer
 * nor the process.
 */
import type { FailureReport, Rejected, Reported } from '@redrive/engine';
import type { Logger } from 'pino';
import {
  type Clock,
  type CriterionError,
  type CriterionName,
  type CriterionResult,
  delayFor,
  type Policy,
} from 'redrive';
import type { CriterionCounts } from '../observe/metrics/criterion-counts.ts';
import type { EvaluationRequest } from './evaluator.ts';
import { type Kept, keptEntity, keyOf, reportOf, weightOf } from './review-item.ts';

type Report = (failures: readonly FailureReport[]) => Promise<(Reported | Rejected)[]>;

interface WriterOptions {
  clock: Clock;
  log: Logger;
  counts: Pick<CriterionCounts, 'dropped'>;
  maxPayloadBytes: number;
}

interface Waiting {
  readonly report: FailureReport;
  readonly bytes: number;
  /** How often it failed since it was last written. */
  count: number;
}

const MAX_WAITING = 10_000;
const MAX_WAITING_BYTES = 32 * 1024 * 1024;
/** An estimate of an entry's memory beside its payload and its settings. */
const ENTRY_BYTES = 1024;
/** Failures within this time are written together. */
const GATHER_MS = 100;
const MAX_BATCH = 500;
/** Of one entity in one batch: each is a write of its own. */
const MAX_OCCURRENCES = 50;
/** How long a stop waits for the store. */
const DRAIN_MS = 1500;
const WARN_EVERY_MS = 60_000;
/** Between two tries while the store is away. */
const pauses: Policy = { base: '500ms', cap: '10s', multiplier: 2, jitter: 'equal' };

export class ReviewWriter {
  readonly #options: WriterOptions;
  readonly #waiting = new Map<string, Waiting>();
  #bytes = 0;
  /** The batch that is being written. It counts as waiting until the store has confirmed it. */
  #underway: readonly Waiting[] = [];
  #report: Report | undefined;
  #timer: unknown;
  #writing: Promise<void> | undefined;
  #failures = 0;
  #isStopped = false;
  #dropped = 0;
  #warnedAt = -Infinity;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** Where items are written. Until then they wait. */
  attach(report: Report): void {
    this.#report = report;
    this.#plan(GATHER_MS);
  }

  /** How many entries are not written yet. */
  get size(): number {
    return this.#waiting.size + this.#underway.length;
  }

  add(name: CriterionName, request: EvaluationRequest, { errors }: CriterionResult): void {
    const [error] = errors;
    if (!error) return;
    if (this.#isStopped || this.#isFull()) return this.#drop(1);
    try {
      this.#keep(name, request, error);
    } catch (err) {
      // An entity that cannot be read must not spoil its answer.
      this.#options.log.warn({ err }, 'a failed evaluation cannot be written down');
      this.#drop(1);
    }
  }

  #keep(name: CriterionName, request: EvaluationRequest, error: CriterionError): void {
    let kept: Kept | undefined;
    const keep = () => (kept ??= keptEntity(request.entity, this.#options.maxPayloadBytes));
    const messageId = keyOf(name, request, error, () => keep().payload);
    const known = this.#waiting.get(messageId);
    if (known) {
      known.count += 1;
      return;
    }
    const report = reportOf(messageId, name, request, error, keep());
    const bytes = weightOf(keep(), request) + ENTRY_BYTES;
    this.#waiting.set(messageId, { report, bytes, count: 1 });
    this.#bytes += bytes;
    this.#plan(GATHER_MS);
  }

  /** Writes what waits, as far as the store takes it in time. Nothing is taken in afterwards. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    const { clock, log } = this.#options;
    clock.clearTimer(this.#timer);
    this.#timer = undefined;
    let late: unknown;
    const limit = new Promise<void>((resolve) => {
      late = clock.setTimer(resolve, DRAIN_MS);
    });
    await Promise.race([this.#drain(), limit]);
    clock.clearTimer(late);
    const left = this.#count();
    if (left === 0) return;
    this.#options.counts.dropped(left);
    log.warn({ count: left }, 'stopped: failed evaluations were not written to the inbox');
  }

  async #drain(): Promise<void> {
    await this.#writing;
    while (this.#waiting.size > 0 && this.#failures === 0 && this.#report) await this.#write();
  }

  #isFull(): boolean {
    return this.size >= MAX_WAITING || this.#bytes >= MAX_WAITING_BYTES;
  }

  #count(): number {
    let count = 0;
    for (const entry of this.#waiting.values()) count += entry.count;
    for (const entry of this.#underway) count += entry.count;
    return count;
  }

  #plan(inMs: number): void {
    if (this.#timer !== undefined || this.#writing || this.#isStopped) return;
    if (!this.#report || this.#waiting.size === 0) return;
    this.#timer = this.#options.clock.setTimer(
      () => {
        this.#timer = undefined;
        void this.#write();
      },
      inMs,
      true,
    );
  }

  #write(): Promise<void> {
    this.#writing ??= this.#writeBatch().finally(() => {
      this.#writing = undefined;
      this.#plan(this.#pauseMs());
    });
    return this.#writing;
  }

  async #writeBatch(): Promise<void> {
    const batch = (this.#underway = this.#take());
    const reports = batch.flatMap(({ report, count }) =>
      Array.from({ length: Math.min(count, MAX_OCCURRENCES) }, () => report),
    );
    try {
      const answers = await this.#report!(reports);
      this.#underway = [];
      this.#wrote(batch, answers);
    } catch (err) {
      this.#underway = [];
      this.#putBack(batch, err);
    }
  }

  /** The oldest first. */
  #take(): Waiting[] {
    const batch: Waiting[] = [];
    let reports = 0;
    for (const [id, entry] of this.#waiting) {
      const count = Math.min(entry.count, MAX_OCCURRENCES);
      if (batch.length > 0 && reports + count > MAX_BATCH) break;
      reports += count;
      batch.push(entry);
      this.#waiting.delete(id);
      this.#bytes -= entry.bytes;
    }
    return batch;
  }

  #wrote(batch: readonly Waiting[], answers: readonly (Reported | Rejected)[]): void {
    const { log } = this.#options;
    if (this.#failures > 0) log.info('failed evaluations are written to the inbox again');
    this.#failures = 0;
    // Occurrences past MAX_OCCURRENCES were not written, so the item does not count them.
    let dropped = batch.reduce((sum, { count }) => sum + Math.max(0, count - MAX_OCCURRENCES), 0);
    const refused = answers.filter((answer): answer is Rejected => answer.status === 'rejected');
    dropped += refused.length;
    const [first] = refused;
    if (first) {
      const { code, message } = first;
      log.warn({ code, count: refused.length }, `the inbox refused failed evaluations: ${message}`);
    }
    if (dropped > 0) this.#drop(dropped);
  }

  #putBack(batch: readonly Waiting[], err: unknown): void {
    this.#failures += 1;
    if (this.#failures === 1) {
      const { log } = this.#options;
      log.warn({ err, waiting: batch.length }, 'failed evaluations wait for the store');
    }
    for (const entry of batch) {
      const { messageId } = entry.report;
      const newer = this.#waiting.get(messageId);
      if (newer) newer.count += entry.count;
      else {
        this.#waiting.set(messageId, entry);
        this.#bytes += entry.bytes;
      }
    }
  }

  #pauseMs(): number {
    if (this.#failures === 0) return GATHER_MS;
    return delayFor(pauses, { attempt: this.#failures, random: Math.random() });
  }

  #drop(count: number): void {
    const { clock, counts, log } = this.#options;
    counts.dropped(count);
    this.#dropped += count;
    const nowMs = clock.monotonic();
    if (nowMs - this.#warnedAt < WARN_EVERY_MS) return;
    this.#warnedAt = nowMs;
    log.warn(
      { count: this.#dropped, waiting: this.size },
      'failed evaluations are not written to the inbox: too many at once',
    );
    this.#dropped = 0;
  }
}
