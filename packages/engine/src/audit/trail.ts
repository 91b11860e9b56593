import { type AuditEntry, type DefinedPolicy, delayFor, policyEntry } from 'redrive';
import type { Host } from '../host.ts';
import { pause } from '../patience.ts';
import { ErasedMessages } from '../erase/erased-messages.ts';
import { EngineError } from '../errors.ts';
import {
  type AuditEvent,
  type AuditOptions,
  type AuditPage,
  type AuditQuery,
  type AuditSink,
  REGISTER_AGAIN_MS,
} from '../ports/audit.ts';
import { type TrailSettings, trailSettings } from './trail-options.ts';

const MAX_WAITING = 10_000;
const MAX_BATCH = 1000;
const MAX_REGISTERED = 10_000;
const TIMEOUT_MS = 5000;
/** So many tries of a batch: some seconds of a sink that is away cost nothing but memory. */
const MAX_TRIES = 5;
const pauses = { base: 100, cap: 5000, multiplier: 4, jitter: 'none' } as const;
/** Writes without an answer at once; past that the sink is not asked. */
const MAX_HUNG = 3;
const DROPPED = 'events_dropped';

/**
 * Hands events to the audit sink, in batches, beside the work and never in its way. What a sink cannot take is
 * counted and said, here and in the trail itself, never dropped in silence.
 */
export class Trail {
  readonly #settings: TrailSettings;
  readonly #host: Host;
  readonly #instance: string;
  /** Tells this run of an instance from the one before, whose numbers began at 1 too. */
  readonly #run: number;
  readonly #closing = new AbortController();
  /** Policies by fingerprint, and when they were registered. */
  readonly #registered = new Map<string, number>();
  readonly #erased = new ErasedMessages();
  readonly #own: AuditSink | undefined;
  readonly #hung = new Set<Promise<void>>();
  #waiting: AuditEvent[] = [];
  #work: Promise<void> | undefined;
  #sequence = 0;
  #last = { ms: NaN, text: '' };
  /** Dropped, and the trail does not say so yet. */
  #unsaid = 0;
  dropped = 0;

  /** `own`: the store's own sink, for where no other is given. */
  constructor(
    audit: boolean | AuditSink | AuditOptions | undefined,
    host: Host,
    instance: string,
    own?: AuditSink,
  ) {
    this.#settings = trailSettings(audit, own);
    this.#own = own;
    this.#host = host;
    this.#instance = instance;
    this.#run = Math.floor(host.clock.now());
  }

  get isOn(): boolean {
    return this.#settings.sink !== undefined;
  }

  /** Whether what worked is written too. */
  get hasSuccesses(): boolean {
    return this.#settings.successes;
  }

  write(entry: AuditEntry): void {
    if (!this.isOn) return;
    // Dropped or not, it has its number: a gap shows what is missing.
    this.#sequence += 1;
    if (this.#waiting.length >= MAX_WAITING) {
      if (this.#unsaid === 0) {
        this.#host.log.error(
          {},
          'the audit sink is too slow or away: events are dropped, and counted',
        );
      }
      this.#drop(1);
      return;
    }
    this.#waiting.push(this.#event(entry));
    this.#work ??= this.#flush();
  }

  /** Before a decision by this policy is written. */
  register(policy: DefinedPolicy): void {
    // Nothing in a strict trail refers to it.
    if (!this.isOn || this.#settings.strict) return;
    const { fingerprint } = policy;
    const nowMs = this.#host.clock.now();
    const ageMs = nowMs - (this.#registered.get(fingerprint) ?? -Infinity);
    // A clock that was set back: once more does no harm.
    if (ageMs >= 0 && ageMs < REGISTER_AGAIN_MS) return;
    if (this.#registered.size >= MAX_REGISTERED) this.#registered.clear();
    this.#registered.set(fingerprint, nowMs);
    this.write(policyEntry(policy));
  }

  /** What was written, the newest first. */
  async read(query: AuditQuery): Promise<AuditPage> {
    const { sink } = this.#settings;
    if (sink?.read) return sink.read(query);
    const message = sink
      ? 'The sink of the audit trail cannot be read back. Look where it writes to.'
      : 'There is no audit trail: it is off.';
    throw new EngineError('AUDIT_UNREADABLE', message);
  }

  /** Deletes what is past its retention, at most so much at once; answers how much. */
  async prune(limit: number): Promise<number> {
    const { sink, retentionMs } = this.#settings;
    if (retentionMs === undefined) return 0;
    return (await sink?.prune?.(retentionMs, limit)) ?? 0;
  }

  /**
   * Erases the events of a message: those that wait here, those that come later, and those in the sink. Also those in the
   * store's own sink, which may have been used before. False: what was written to the sink stays there. The sink cannot
   * erase, or the trail is strict, so that its events do not name their message.
   */
  async erase(messageId: string): Promise<boolean> {
    const nowMs = this.#host.clock.now();
    this.#erased.add(messageId, nowMs);
    // In place: a batch that is being written is tried again with the same objects.
    for (const event of this.#waiting) Object.assign(event, this.#erased.kept(event, nowMs));
    const { sink, strict } = this.#settings;
    await this.#own?.erase?.(messageId);
    if (sink !== this.#own) await sink?.erase?.(messageId);
    return sink === undefined || (sink.erase !== undefined && !strict);
  }

  /** Writes what waits, as far as the sink takes it, and lets go of the sink. */
  async close(): Promise<void> {
    this.#closing.abort();
    // Under way, it says so by itself, or has just seen that the sink takes nothing.
    if (!this.#work) this.#sayDropped();
    while (this.#work) await this.#work;
    await this.#settings.sink?.close?.();
  }

  #event({ redrive, ...fields }: AuditEntry): AuditEvent {
    const event = { ...fields, timestamp: this.#timestamp() } as AuditEvent;
    const place = { instance: this.#instance, run: this.#run, sequence: this.#sequence };
    event.redrive = { ...place, ...redrive };
    const kept = this.#erased.kept(event, this.#last.ms);
    if (this.#settings.strict) delete kept.redrive;
    return kept;
  }

  /** Many events have the same. */
  #timestamp(): string {
    const ms = Math.floor(this.#host.clock.now());
    if (this.#last.ms !== ms) this.#last = { ms, text: new Date(ms).toISOString() };
    return this.#last.text;
  }

  async #flush(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#host.defer(resolve);
    });
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, MAX_BATCH);
      const isWritten = await this.#persist(batch);
      // Nobody waits for a sink that fails while it is closed.
      const isOver = !isWritten && this.#closing.signal.aborted;
      const gone = this.#waiting.splice(0, isOver ? Infinity : batch.length);
      if (isWritten) this.#sayDropped();
      else this.#drop(gone.length, droppedIn(gone));
    }
    this.#work = undefined;
  }

  async #persist(batch: readonly AuditEvent[]): Promise<boolean> {
    for (let attempt = 1; ; attempt++) {
      const fault = await this.#try(batch);
      if (!fault) return true;
      if (attempt >= MAX_TRIES || this.#closing.signal.aborted) {
        this.#host.log.error(
          { err: fault.error, events: batch.length },
          'the audit sink failed: these events are lost, and counted',
        );
        return false;
      }
      await pause(this.#host, delayFor(pauses, { attempt }), this.#closing.signal);
    }
  }

  /** After a timeout the events may be written all the same, and then twice: their numbers show it. */
  async #try(batch: readonly AuditEvent[]): Promise<{ error: unknown } | undefined> {
    const { clock } = this.#host;
    if (this.#hung.size >= MAX_HUNG) return { error: noAnswer() };
    let timer: unknown;
    const late = new Promise<'late'>((resolve) => {
      timer = clock.setTimer(() => resolve('late'), TIMEOUT_MS);
    });
    // In a function: a sink may throw at once.
    const writing = (async () => this.#settings.sink?.write(batch))();
    try {
      if ((await Promise.race([writing, late])) !== 'late') return undefined;
    } catch (error) {
      return { error };
    } finally {
      clock.clearTimer(timer);
    }
    const over = () => void this.#hung.delete(hung);
    // Its events are counted as lost already, whatever it says in the end.
    const hung: Promise<void> = writing.then(over, over);
    this.#hung.add(hung);
    return { error: noAnswer() };
  }

  #drop(count: number, unsaid = 0): void {
    this.dropped += count;
    this.#unsaid += count + unsaid;
    // A registration may be among them.
    this.#registered.clear();
  }

  /** In the trail itself, once the sink works again. */
  #sayDropped(): void {
    if (this.#unsaid === 0) return;
    const count = this.#unsaid;
    this.#unsaid = 0;
    this.write({ event_type: DROPPED, count });
  }
}

/** What was said to be dropped must be said again when the saying itself is lost. */
function droppedIn(events: readonly AuditEvent[]): number {
  let count = 0;
  for (const event of events) if (event.event_type === DROPPED) count += event['count'] as number;
  return count;
}

function noAnswer(): Error {
  return new Error(`The audit sink did not answer within ${TIMEOUT_MS} ms.`);
}
